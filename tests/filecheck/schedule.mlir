// RUN: tilewright opt %s -p schedule --target unified --objective traffic --split-input-file --verify-diagnostics | filecheck %s

func.func @rows(%x: tensor<8x16xf32>) -> tensor<8x16xf32> {
  %y = graph.fused %x : tensor<8x16xf32> ({
  ^bb0(%a: tensor<8x16xf32>):
    %b = graph.map %a {fn = "exp"} : tensor<8x16xf32>
    graph.yield %b
  })
  return %y : tensor<8x16xf32>
}
// CHECK:      func.func @rows
// CHECK-NEXT:   graph.fused %x {schedule = {axes = "ab", extents = array<i64: 8, 16>, tiles = array<i64: 8, 16>, order = "", strategy = "resident"

// -----

// A schedule that is there is kept.
func.func @kept(%x: tensor<8x16xf32>) -> tensor<8x16xf32> {
  %y = graph.fused %x {schedule = {axes = "ab", extents = array<i64: 8, 16>, tiles = array<i64: 2, 16>, order = "a", strategy = "resident", hold = ["a"], slots = array<i64: 1>}} : tensor<8x16xf32> ({
  ^bb0(%a: tensor<8x16xf32>):
    %b = graph.map %a {fn = "exp"} : tensor<8x16xf32>
    graph.yield %b
  })
  return %y : tensor<8x16xf32>
}
// CHECK:      func.func @kept
// CHECK-NEXT:   graph.fused %x {schedule = {axes = "ab", extents = array<i64: 8, 16>, tiles = array<i64: 2, 16>, order = "a"

// -----

func.func @loose(%x: tensor<8x16xf32>) -> tensor<8x16xf32> {
  // expected-error@+1 {{'graph.map' is in no group: run fuse first}}
  %y = graph.map %x {fn = "exp"} : tensor<8x16xf32>
  return %y : tensor<8x16xf32>
}
