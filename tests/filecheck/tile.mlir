// RUN: tilewright opt %s -p tile --target unified --split-input-file --verify-diagnostics | filecheck %s

// Four tiles of two rows.
func.func @rows(%x: tensor<8x16xf32>) -> tensor<8x16xf32> {
  %y = graph.fused %x {schedule = {axes = "ab", extents = array<i64: 8, 16>, tiles = array<i64: 2, 16>, order = "a", strategy = "resident", hold = ["a"], slots = array<i64: 2>}} : tensor<8x16xf32> ({
  ^bb0(%a: tensor<8x16xf32>):
    %b = graph.map %a {fn = "exp"} : tensor<8x16xf32>
    graph.yield %b
  })
  return %y : tensor<8x16xf32>
}
// CHECK:      tile.kernel @rows_0(%0: tensor<8x16xf32>) -> (%1: tensor<8x16xf32>)
// CHECK-NEXT:   tile.for %a = 0 to 4 {axis = "a", kind = "grid"} {
// CHECK-NEXT:     [[X:%.*]] = tile.load %0, %a {map = affine_map<(d0, d1, d2) -> (((d0 * 2) + d1), d2)>, valid = {{.*}}, slots = 2 : i64} : !tile.tile<2x16xf32>
// CHECK-NEXT:     [[Y:%.*]] = tile.map [[X]] {fn = "exp"} : !tile.tile<2x16xf32>
// CHECK-NEXT:     tile.store [[Y]], %1, %a
// CHECK-NEXT:     tile.yield
// CHECK:      func.func @rows
// CHECK-NEXT:   %y = tile.launch %x {callee = @rows_0} : tensor<8x16xf32>

// -----

func.func @unscheduled(%x: tensor<8x16xf32>) -> tensor<8x16xf32> {
  // expected-error@+1 {{this group has no schedule: run the schedule pass first}}
  %y = graph.fused %x : tensor<8x16xf32> ({
  ^bb0(%a: tensor<8x16xf32>):
    %b = graph.map %a {fn = "exp"} : tensor<8x16xf32>
    graph.yield %b
  })
  return %y : tensor<8x16xf32>
}

// -----

func.func @another(%x: tensor<8x16xf32>) -> tensor<8x16xf32> {
  // expected-error@+1 {{the schedule is for axes 'ab' of [8, 17], the group has a:8, b:16}}
  %y = graph.fused %x {schedule = {axes = "ab", extents = array<i64: 8, 17>, tiles = array<i64: 8, 17>, order = "", strategy = "resident", hold = [""], slots = array<i64: 1>}} : tensor<8x16xf32> ({
  ^bb0(%a: tensor<8x16xf32>):
    %b = graph.map %a {fn = "exp"} : tensor<8x16xf32>
    graph.yield %b
  })
  return %y : tensor<8x16xf32>
}
