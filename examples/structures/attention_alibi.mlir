// Logits fall linearly with the distance, by a slope per head.
func.func @attention_alibi(%q: tensor<?x?x64xf16, #graph.dims<["heads", "seq"]>>,
    %k: tensor<?x?x64xf16, #graph.dims<["heads", "keys"]>>,
    %v: tensor<?x?x64xf16, #graph.dims<["heads", "keys"]>>,
    %slope: tensor<?x1x1xf32, #graph.dims<["heads"]>>)
    -> tensor<?x?x64xf16, #graph.dims<["heads", "seq"]>> {
  %s = graph.matmul %q, %k {transpose_b}
  %c = graph.constant dense<0.125> : tensor<f16>
  %t = graph.mul %s, %c
  %i = graph.iota {dim = 0 : i64} : tensor<?x1xf32, #graph.dims<["seq"]>>
  %j = graph.iota {dim = 1 : i64} : tensor<1x?xf32, #graph.dims<["keys"]>>
  %ij = graph.sub %j, %i
  %a = graph.abs %ij
  %b = graph.mul %a, %slope
  %u = graph.sub %t, %b
  %m = graph.reduce_max %u {axes = [-1], keepdims}
  %d = graph.sub %u, %m
  %e = graph.exp %d
  %l = graph.reduce_sum %e {axes = [-1], keepdims}
  %pw = graph.div %e, %l
  %p = graph.cast %pw : tensor<?x?x?xf16, #graph.dims<["heads", "seq", "keys"]>>
  %y = graph.matmul %p, %v
  func.return %y : tensor<?x?x64xf16, #graph.dims<["heads", "seq"]>>
}
