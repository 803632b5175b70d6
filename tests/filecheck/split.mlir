// RUN: tilewright opt %s -p split --target 'davinci{cores=32}' | filecheck %s

// One maximum of many numbers, which no loop over results could divide: parts of it, and the maximum of these.
func.func @main(%x: tensor<1048576xf32>) -> tensor<1xf32> {
  %y = graph.fused %x : tensor<1xf32> ({
  ^bb0(%0: tensor<1048576xf32>):
    %1 = graph.reduce %0 {monoid = "max", axes = array<i64: 0>} : tensor<1xf32>
    graph.yield %1
  })
  func.return %y : tensor<1xf32>
}
// CHECK:      [[P:%.*]] = graph.fused %x : tensor<[[N:[0-9]+]]xf32>
// CHECK:        graph.view {{.*}}maps = [affine_map<(d0, d1) -> (((d0 * {{[0-9]+}}) + d1))>]{{.*}} : tensor<[[N]]x{{[0-9]+}}xf32>
// CHECK:        graph.reduce {{.*}}monoid = "max"{{.*}} : tensor<[[N]]x1xf32>
// CHECK:      graph.fused [[P]] : tensor<1xf32>
// CHECK:        graph.reduce {{.*}}monoid = "max"{{.*}} : tensor<1xf32>
