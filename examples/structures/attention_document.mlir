// Rows see keys of their own document only.
func.func @attention_document(%q: tensor<?x?x64xf16, #graph.dims<["heads", "seq"]>>,
    %k: tensor<?x?x64xf16, #graph.dims<["heads", "keys"]>>,
    %v: tensor<?x?x64xf16, #graph.dims<["heads", "keys"]>>,
    %row: tensor<?x1xi32, #graph.dims<["seq"]>>,
    %col: tensor<1x?xi32, #graph.dims<["keys"]>>)
    -> tensor<?x?x64xf16, #graph.dims<["heads", "seq"]>> {
  %s = graph.matmul %q, %k {transpose_b}
  %c = graph.constant dense<0.125> : tensor<f16>
  %t = graph.mul %s, %c
  %keep = graph.eq %row, %col
  %inf = graph.constant dense<0xFC00> : tensor<f16>
  %u = graph.where %keep, %t, %inf
  %m = graph.reduce_max %u {axes = [-1], keepdims}
  %d = graph.sub %u, %m
  %e = graph.exp %d
  %l = graph.reduce_sum %e {axes = [-1], keepdims}
  %p = graph.div %e, %l
  %y = graph.matmul %p, %v
  func.return %y : tensor<?x?x64xf16, #graph.dims<["heads", "seq"]>>
}
