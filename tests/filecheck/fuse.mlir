// RUN: tilewright opt %s -p fuse --target unified --objective traffic --split-input-file --verify-diagnostics | filecheck %s

func.func @chain(%x: tensor<8x16xf32>) -> tensor<8x16xf32> {
  %a = graph.map %x {fn = "tanh"} : tensor<8x16xf32>
  %b = graph.map %a, %x {fn = "mul"} : tensor<8x16xf32>
  return %b : tensor<8x16xf32>
}
// CHECK:      func.func @chain
// CHECK-NEXT:   %b = graph.fused %x : tensor<8x16xf32> ({
// CHECK-NEXT:   ^bb0([[X:%.*]]: tensor<8x16xf32>):
// CHECK-NEXT:     [[A:%.*]] = graph.map [[X]] {fn = "tanh"} : tensor<8x16xf32>
// CHECK-NEXT:     [[B:%.*]] = graph.map [[A]], [[X]] {fn = "mul"} : tensor<8x16xf32>
// CHECK-NEXT:     graph.yield [[B]]
// CHECK-NEXT:   })
// CHECK-NEXT:   func.return %b : tensor<8x16xf32>

// -----

// Values that go two ways are computed once: one group with two results.
func.func @both(%x: tensor<8x16xf32>) -> (tensor<8x16xf32>, tensor<8x16xf32>) {
  %a = graph.map %x {fn = "tanh"} : tensor<8x16xf32>
  %b = graph.map %a {fn = "exp"} : tensor<8x16xf32>
  return %a, %b : tensor<8x16xf32>, tensor<8x16xf32>
}
// CHECK:      func.func @both
// CHECK-NEXT:   %a, %b = graph.fused %x : tensor<8x16xf32>, tensor<8x16xf32> ({
// CHECK:          graph.yield {{.*}}, {{.*}}
// CHECK:        func.return %a, %b

// -----

func.func @named(%x: tensor<8x16xf32>) -> tensor<8x16xf32> {
  // expected-error@+1 {{'graph.exp' is not a primitive: run decompose first}}
  %y = graph.exp %x : tensor<8x16xf32>
  return %y : tensor<8x16xf32>
}
