// RUN: tilewright opt %s -p match --split-input-file --verify-diagnostics | filecheck %s

// What the operator computes, with the operands of the product the other way round, becomes a group that names its kernel.
tile.kernel @by_hand(%0: tensor<?xf32, #graph.dims<["n"]>>, %1: tensor<?xf32, #graph.dims<["n"]>>)
    -> (%2: tensor<?xf32, #graph.dims<["n"]>>) attributes {tilewright.shapes = affine_set<()[s0] : (s0 mod 4 == 0)>} {
  tile.for %i = 0 to affine_map<()[s0] -> (s0 floordiv 4)>() {
    %3 = tile.load %0, %i {map = affine_map<(d0, d1) -> (d0 * 4 + d1)>, valid = affine_map<(d0) -> (4)>} : !tile.tile<4xf32>
    %4 = tile.load %1, %i {map = affine_map<(d0, d1) -> (d0 * 4 + d1)>, valid = affine_map<(d0) -> (4)>} : !tile.tile<4xf32>
    %5 = tile.map %3 {fn = "exp"} : !tile.tile<4xf32>
    %6 = tile.map %5, %4 {fn = "mul"} : !tile.tile<4xf32>
    tile.store %6, %2, %i {map = affine_map<(d0, d1) -> (d0 * 4 + d1)>, valid = affine_map<(d0) -> (4)>}
    tile.yield
  }
}
func.func private @exp_times(%a: tensor<?xf32, #graph.dims<["n"]>>, %b: tensor<?xf32, #graph.dims<["n"]>>)
    -> tensor<?xf32, #graph.dims<["n"]>> attributes {tilewright.match, tilewright.kernels = [@by_hand]} {
  %e = graph.exp %a
  %y = graph.mul %e, %b
  return %y : tensor<?xf32, #graph.dims<["n"]>>
}
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %e = graph.map %x {fn = "exp"} : tensor<8xf32>
  %z = graph.map %x, %e {fn = "mul"} : tensor<8xf32>
  return %z : tensor<8xf32>
}
// CHECK:      tile.kernel @by_hand_n8(%0: tensor<8xf32>, %1: tensor<8xf32>) -> (%2: tensor<8xf32>) {
// CHECK-NEXT:   tile.for %i = 0 to 2 {
// CHECK-NOT:  @exp_times
// CHECK:      func.func @main
// CHECK-NEXT:   %z = graph.fused %x, %x {tilewright.kernel = @by_hand_n8} : tensor<8xf32> ({
// CHECK-NEXT:   ^{{.*}}(%a: tensor<8xf32>, %b: tensor<8xf32>):
// CHECK-NEXT:     %e = graph.map %a {fn = "exp"
// CHECK-NEXT:     %y = graph.map %e, %b {fn = "mul"
// CHECK-NEXT:     graph.yield %y
// CHECK-NEXT:   })
// CHECK-NEXT:   func.return %z : tensor<8xf32>

// -----

// Nothing is looked for: the module stays as it is, unused functions too.
func.func private @unmarked(%a: tensor<4xf32>) -> tensor<4xf32> {
  %e = graph.map %a {fn = "exp"} : tensor<4xf32>
  return %e : tensor<4xf32>
}
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %e = graph.map %x {fn = "exp"} : tensor<4xf32>
  return %e : tensor<4xf32>
}
// CHECK:      func.func private @unmarked
// CHECK:        %e = graph.map %x {fn = "exp"} : tensor<4xf32>

// -----

tile.kernel @k(%0: tensor<4xf32>, %1: tensor<4xf32>) -> (%2: tensor<4xf32>) {
}
// expected-error@+1 {{@first cannot be looked for: its argument 1 has no effect}}
func.func private @first(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32>
    attributes {tilewright.match, tilewright.kernels = [@k]} {
  %e = graph.exp %a
  return %e : tensor<4xf32>
}
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %e = graph.map %x {fn = "exp"} : tensor<4xf32>
  return %e : tensor<4xf32>
}
