// A bias per pair of rows, and a gated output.
func.func @attention_pair(%q: tensor<?x?x64xf16, #graph.dims<["heads", "seq"]>>,
    %k: tensor<?x?x64xf16, #graph.dims<["heads", "keys"]>>,
    %v: tensor<?x?x64xf16, #graph.dims<["heads", "keys"]>>,
    %bias: tensor<?x?x?xf16, #graph.dims<["heads", "seq", "keys"]>>,
    %gate: tensor<?x?x64xf16, #graph.dims<["heads", "seq"]>>)
    -> tensor<?x?x64xf16, #graph.dims<["heads", "seq"]>> {
  %s = graph.matmul %q, %k {transpose_b}
  %c = graph.constant dense<0.125> : tensor<f16>
  %t = graph.mul %s, %c
  %u = graph.add %t, %bias
  %m = graph.reduce_max %u {axes = [-1], keepdims}
  %d = graph.sub %u, %m
  %e = graph.exp %d
  %l = graph.reduce_sum %e {axes = [-1], keepdims}
  %p = graph.div %e, %l
  %o = graph.matmul %p, %v
  %g = graph.sigmoid %gate
  %y = graph.mul %o, %g
  func.return %y : tensor<?x?x64xf16, #graph.dims<["heads", "seq"]>>
}
