// The maximum is subtracted in two steps; the mean of the weights is taken as a product with ones.
func.func @attention_two_steps(%q: tensor<?x?x64xf16, #graph.dims<["heads", "seq"]>>,
    %k: tensor<?x?x64xf16, #graph.dims<["heads", "keys"]>>,
    %v: tensor<?x?x64xf16, #graph.dims<["heads", "keys"]>>)
    -> tensor<?x?x64xf16, #graph.dims<["heads", "seq"]>> {
  %s = graph.matmul %q, %k {transpose_b}
  %c = graph.constant dense<0.125> : tensor<f16>
  %t = graph.mul %s, %c
  %m1 = graph.reduce_max %t {axes = [-1], keepdims}
  %d1 = graph.sub %t, %m1
  %m2 = graph.reduce_max %d1 {axes = [-1], keepdims}
  %d = graph.sub %d1, %m2
  %e = graph.exp %d
  %l = graph.reduce_sum %e {axes = [-1], keepdims}
  %p = graph.div %e, %l
  %y = graph.matmul %p, %v
  func.return %y : tensor<?x?x64xf16, #graph.dims<["heads", "seq"]>>
}
