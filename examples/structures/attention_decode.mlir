// One query row against many keys.
func.func @attention_decode(%q: tensor<?x1x64xf16, #graph.dims<["heads"]>>,
    %k: tensor<?x?x64xf16, #graph.dims<["heads", "keys"]>>,
    %v: tensor<?x?x64xf16, #graph.dims<["heads", "keys"]>>)
    -> tensor<?x1x64xf16, #graph.dims<["heads"]>> {
  %s = graph.matmul %q, %k {transpose_b}
  %c = graph.constant dense<0.125> : tensor<f16>
  %t = graph.mul %s, %c
  %m = graph.reduce_max %t {axes = [-1], keepdims}
  %d = graph.sub %t, %m
  %e = graph.exp %d
  %l = graph.reduce_sum %e {axes = [-1], keepdims}
  %p = graph.div %e, %l
  %y = graph.matmul %p, %v
  func.return %y : tensor<?x1x64xf16, #graph.dims<["heads"]>>
}
