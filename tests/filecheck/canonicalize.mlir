// RUN: tilewright opt %s -p canonicalize --split-input-file | filecheck %s

// x * 1 is x, and what nothing uses is gone.
func.func @one(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %c = graph.constant dense<1.0> : tensor<f32>
  %y = graph.mul %x, %c
  %unused = graph.exp %x
  return %y : tensor<4x8xf32>
}
// CHECK:      func.func @one(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
// CHECK-NEXT:   func.return %x : tensor<4x8xf32>

// -----

// x + 0 stays: it turns -0 into +0.
func.func @zero(%x: tensor<4xf32>) -> tensor<4xf32> {
  %c = graph.constant dense<0.0> : tensor<f32>
  %y = graph.add %x, %c
  return %y : tensor<4xf32>
}
// CHECK:      func.func @zero
// CHECK:      %y = graph.add %x, %c

// -----

// Two transposes that undo each other; the same value once.
func.func @twice(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %a = graph.transpose %x {permutation = [1, 0]}
  %b = graph.transpose %a {permutation = [1, 0]}
  %c = graph.exp %b
  %d = graph.exp %x
  %e = graph.add %c, %d
  return %e : tensor<4x8xf32>
}
// CHECK:      func.func @twice
// CHECK-NEXT:   [[E:%[a-z]+]] = graph.exp %x : tensor<4x8xf32>
// CHECK-NEXT:   %e = graph.add [[E]], [[E]] : tensor<4x8xf32>

// -----

// Scalars of constants are folded.
func.func @fold() -> tensor<2xf32> {
  %a = graph.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %b = graph.add %a, %a
  return %b : tensor<2xf32>
}
// CHECK:      func.func @fold
// CHECK-NEXT:   %b = graph.constant dense<[2.000000e+00, 4.000000e+00]> : tensor<2xf32>
