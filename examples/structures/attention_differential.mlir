// The difference of two softmaxes weights the values.
func.func @attention_differential(%q1: tensor<?x?x64xf16, #graph.dims<["heads", "seq"]>>,
    %k1: tensor<?x?x64xf16, #graph.dims<["heads", "keys"]>>,
    %q2: tensor<?x?x64xf16, #graph.dims<["heads", "seq"]>>,
    %k2: tensor<?x?x64xf16, #graph.dims<["heads", "keys"]>>,
    %v: tensor<?x?x64xf16, #graph.dims<["heads", "keys"]>>,
    %lam: tensor<?x1x1xf32, #graph.dims<["heads"]>>)
    -> tensor<?x?x64xf32, #graph.dims<["heads", "seq"]>> {
  %c = graph.constant dense<0.125> : tensor<f16>
  %s1 = graph.matmul %q1, %k1 {transpose_b}
  %t1 = graph.mul %s1, %c
  %s2 = graph.matmul %q2, %k2 {transpose_b}
  %t2 = graph.mul %s2, %c
  %m1 = graph.reduce_max %t1 {axes = [-1], keepdims}
  %d1 = graph.sub %t1, %m1
  %e1 = graph.exp %d1
  %l1 = graph.reduce_sum %e1 {axes = [-1], keepdims}
  %p1 = graph.div %e1, %l1
  %m2 = graph.reduce_max %t2 {axes = [-1], keepdims}
  %d2 = graph.sub %t2, %m2
  %e2 = graph.exp %d2
  %l2 = graph.reduce_sum %e2 {axes = [-1], keepdims}
  %p2 = graph.div %e2, %l2
  %r = graph.mul %p2, %lam
  %df = graph.sub %p1, %r
  %v32 = graph.cast %v : tensor<?x?x64xf32, #graph.dims<["heads", "keys"]>>
  %y = graph.matmul %df, %v32 : tensor<?x?x64xf32, #graph.dims<["heads", "seq"]>>
  func.return %y : tensor<?x?x64xf32, #graph.dims<["heads", "seq"]>>
}
