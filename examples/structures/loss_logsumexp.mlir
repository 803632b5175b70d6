// Log-sum-exp.
func.func @loss_logsumexp(%x: tensor<?x?xf32, #graph.dims<["rows", "cols"]>>)
    -> tensor<?xf32, #graph.dims<["rows"]>> {
  %m = graph.reduce_max %x {axes = [-1], keepdims}
  %d = graph.sub %x, %m
  %e = graph.exp %d
  %l = graph.reduce_sum %e {axes = [-1], keepdims}
  %g = graph.log %l
  %z = graph.add %g, %m
  %y = graph.reshape %z : tensor<?xf32, #graph.dims<["rows"]>>
  func.return %y : tensor<?xf32, #graph.dims<["rows"]>>
}
