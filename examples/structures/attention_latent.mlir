// Keys and values are the same latent rows; a part of the score has a position of its own.
func.func @attention_latent(%q: tensor<?x?x64xf16, #graph.dims<["heads", "seq"]>>,
    %qr: tensor<?x?x16xf16, #graph.dims<["heads", "seq"]>>,
    %c: tensor<1x?x64xf16, #graph.dims<["keys"]>>,
    %kr: tensor<1x?x16xf16, #graph.dims<["keys"]>>)
    -> tensor<?x?x64xf16, #graph.dims<["heads", "seq"]>> {
  %s1 = graph.matmul %q, %c {transpose_b}
  %s2 = graph.matmul %qr, %kr {transpose_b}
  %s = graph.add %s1, %s2
  %f = graph.constant dense<0.11> : tensor<f16>
  %t = graph.mul %s, %f
  %m = graph.reduce_max %t {axes = [-1], keepdims}
  %d = graph.sub %t, %m
  %e = graph.exp %d
  %l = graph.reduce_sum %e {axes = [-1], keepdims}
  %p = graph.div %e, %l
  %y = graph.matmul %p, %c
  func.return %y : tensor<?x?x64xf16, #graph.dims<["heads", "seq"]>>
}
