// Four query heads share one head of keys and values.
func.func @attention_grouped(%q: tensor<?x4x?x64xf16, #graph.dims<["heads", "seq"]>>,
    %k: tensor<?x1x?x64xf16, #graph.dims<["heads", "keys"]>>,
    %v: tensor<?x1x?x64xf16, #graph.dims<["heads", "keys"]>>)
    -> tensor<?x4x?x64xf16, #graph.dims<["heads", "seq"]>> {
  %s = graph.matmul %q, %k {transpose_b}
  %c = graph.constant dense<0.125> : tensor<f16>
  %t = graph.mul %s, %c
  %m = graph.reduce_max %t {axes = [-1], keepdims}
  %d = graph.sub %t, %m
  %e = graph.exp %d
  %l = graph.reduce_sum %e {axes = [-1], keepdims}
  %p = graph.div %e, %l
  %y = graph.matmul %p, %v
  func.return %y : tensor<?x4x?x64xf16, #graph.dims<["heads", "seq"]>>
}
