// RUN: tilewright opt %s -p bufferize --target unified --split-input-file --verify-diagnostics | filecheck %s

// The dead operand of an elementwise operation is overwritten: one buffer does.
tile.kernel @k(%0: tensor<8x16xf32>) -> (%1: tensor<8x16xf32>) {
  %2 = tile.load %0 {map = affine_map<(d0, d1) -> (d0, d1)>, valid = affine_map<() -> (8, 16)>} : !tile.tile<8x16xf32, "scratchpad">
  %3 = tile.map %2 {fn = "exp"} : !tile.tile<8x16xf32, "scratchpad">
  tile.store %3, %1 {map = affine_map<(d0, d1) -> (d0, d1)>, valid = affine_map<() -> (8, 16)>}
}
func.func @main(%x: tensor<8x16xf32>) -> tensor<8x16xf32> {
  %y = tile.launch %x {callee = @k} : tensor<8x16xf32>
  return %y : tensor<8x16xf32>
}
// CHECK:      tile.kernel @k
// CHECK-NEXT:   [[B:%.*]] = tile.alloc : !tile.buffer<8x16xf32, "scratchpad"
// CHECK-NEXT:   tile.load %0, [[B]] {{.*}}into}
// CHECK-NEXT:   tile.map [[B]], [[B]] {fn = "exp", into}
// CHECK-NEXT:   tile.store [[B]], %1
// CHECK:      func.func @main({{.*}}) attributes {tilewright.outputs = 1 : i64}
// CHECK-NEXT:   tile.launch %x, %y {callee = @k, into}

// -----

tile.kernel @unplaced(%0: tensor<8x16xf32>) -> (%1: tensor<8x16xf32>) {
  // expected-error@+1 {{names no memory of target 'unified': run place first}}
  %2 = tile.load %0 {map = affine_map<(d0, d1) -> (d0, d1)>, valid = affine_map<() -> (8, 16)>} : !tile.tile<8x16xf32>
  tile.store %2, %1 {map = affine_map<(d0, d1) -> (d0, d1)>, valid = affine_map<() -> (8, 16)>}
}
