// Log-softmax.
func.func @loss_log_softmax(%x: tensor<?x?xf32, #graph.dims<["rows", "cols"]>>)
    -> tensor<?x?xf32, #graph.dims<["rows", "cols"]>> {
  %m = graph.reduce_max %x {axes = [-1], keepdims}
  %d = graph.sub %x, %m
  %e = graph.exp %d
  %l = graph.reduce_sum %e {axes = [-1], keepdims}
  %g = graph.log %l
  %y = graph.sub %d, %g
  func.return %y : tensor<?x?xf32, #graph.dims<["rows", "cols"]>>
}
