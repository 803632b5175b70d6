// RUN: tilewright opt %s -p decompose --split-input-file --verify-diagnostics | filecheck %s

func.func @softmax(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %p = graph.softmax %x {axis = -1}
  return %p : tensor<4x8xf32>
}
// CHECK:      func.func @softmax
// CHECK-NEXT:   [[M:%.*]] = graph.reduce %x {monoid = "max", axes = array<i64: 1>, tilewright.origin = 0 : i64} : tensor<4x1xf32>
// CHECK-NEXT:   [[D:%.*]] = graph.map %x, [[M]] {fn = "sub", tilewright.origin = 0 : i64} : tensor<4x8xf32>
// CHECK-NEXT:   [[E:%.*]] = graph.map [[D]] {fn = "exp", tilewright.origin = 0 : i64} : tensor<4x8xf32>
// CHECK-NEXT:   [[S:%.*]] = graph.reduce [[E]] {monoid = "sum", axes = array<i64: 1>, tilewright.origin = 0 : i64} : tensor<4x1xf32>
// CHECK-NEXT:   %p = graph.map [[E]], [[S]] {fn = "div", tilewright.origin = 0 : i64} : tensor<4x8xf32>

// -----

// A private function is an operator: its body takes the place of the call.
func.func private @double(%a: tensor<4xf32>) -> tensor<4xf32> {
  %r = graph.add %a, %a
  return %r : tensor<4xf32>
}
func.func @call(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = call %x {callee = @double} : tensor<4xf32>
  return %y : tensor<4xf32>
}
// CHECK-NOT:  @double
// CHECK:      func.func @call
// CHECK-NEXT:   graph.map %x, %x {fn = "add", tilewright.origin = 0 : i64} : tensor<4xf32>

// -----

func.func private @again(%a: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{@again calls itself}}
  %r = call %a {callee = @again} : tensor<4xf32>
  return %r : tensor<4xf32>
}
func.func @recursion(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = call %x {callee = @again} : tensor<4xf32>
  return %y : tensor<4xf32>
}
