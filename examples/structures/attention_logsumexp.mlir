// Softmax as exp(x - logsumexp(x)).
func.func @attention_logsumexp(%q: tensor<?x?x64xf16, #graph.dims<["heads", "seq"]>>,
    %k: tensor<?x?x64xf16, #graph.dims<["heads", "keys"]>>,
    %v: tensor<?x?x64xf16, #graph.dims<["heads", "keys"]>>)
    -> tensor<?x?x64xf16, #graph.dims<["heads", "seq"]>> {
  %s = graph.matmul %q, %k {transpose_b}
  %c = graph.constant dense<0.125> : tensor<f16>
  %t = graph.mul %s, %c
  %m = graph.reduce_max %t {axes = [-1], keepdims}
  %d = graph.sub %t, %m
  %e = graph.exp %d
  %l = graph.reduce_sum %e {axes = [-1], keepdims}
  %g = graph.log %l
  %z = graph.add %g, %m
  %w = graph.sub %t, %z
  %p = graph.exp %w
  %y = graph.matmul %p, %v
  func.return %y : tensor<?x?x64xf16, #graph.dims<["heads", "seq"]>>
}
