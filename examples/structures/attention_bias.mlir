// An additive mask, given as a tensor.
func.func @attention_bias(%q: tensor<?x?x64xf16, #graph.dims<["heads", "seq"]>>,
    %k: tensor<?x?x64xf16, #graph.dims<["heads", "keys"]>>,
    %v: tensor<?x?x64xf16, #graph.dims<["heads", "keys"]>>,
    %mask: tensor<?x?xf16, #graph.dims<["seq", "keys"]>>)
    -> tensor<?x?x64xf16, #graph.dims<["heads", "seq"]>> {
  %s = graph.matmul %q, %k {transpose_b}
  %c = graph.constant dense<0.125> : tensor<f16>
  %t = graph.mul %s, %c
  %u = graph.add %t, %mask
  %m = graph.reduce_max %u {axes = [-1], keepdims}
  %d = graph.sub %u, %m
  %e = graph.exp %d
  %l = graph.reduce_sum %e {axes = [-1], keepdims}
  %p = graph.div %e, %l
  %y = graph.matmul %p, %v
  func.return %y : tensor<?x?x64xf16, #graph.dims<["heads", "seq"]>>
}
