// RUN: tilewright opt %s -p reference --target unified --split-input-file --verify-diagnostics | filecheck %s

// A kernel for each operation in place of one, whether it was written by hand or was to be derived.
tile.kernel @by_hand(%0: tensor<4xf32>) -> (%1: tensor<4xf32>) {
}
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = graph.fused %x {tilewright.kernel = @by_hand} : tensor<4xf32> ({
  ^bb0(%a: tensor<4xf32>):
    %b = graph.map %a {fn = "exp", tilewright.origin = 0 : i64} : tensor<4xf32>
    %c = graph.map %b, %a {fn = "mul", tilewright.origin = 1 : i64} : tensor<4xf32>
    graph.yield %c : tensor<4xf32>
  })
  return %y : tensor<4xf32>
}
// CHECK-NOT:  @by_hand
// CHECK:      func.func @main
// CHECK-NEXT:   %b = graph.fused %x : tensor<4xf32> ({
// CHECK:          graph.map {{.*}} {fn = "exp"
// CHECK-NEXT:     graph.yield
// CHECK:        %c = graph.fused %b, %x : tensor<4xf32> ({
// CHECK:          graph.map {{.*}} {fn = "mul"
// CHECK-NEXT:     graph.yield
// CHECK:        func.return %c : tensor<4xf32>

// -----

func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+3 {{'graph.softmax' is not a primitive: run decompose first}}
  %y = graph.fused %x : tensor<4xf32> ({
  ^bb0(%a: tensor<4xf32>):
    %b = graph.softmax %a
    graph.yield %b : tensor<4xf32>
  })
  return %y : tensor<4xf32>
}
