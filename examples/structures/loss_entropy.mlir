// The entropy of a softmax.
func.func @loss_entropy(%x: tensor<?x?xf32, #graph.dims<["rows", "cols"]>>)
    -> tensor<?xf32, #graph.dims<["rows"]>> {
  %m = graph.reduce_max %x {axes = [-1], keepdims}
  %d = graph.sub %x, %m
  %e = graph.exp %d
  %l = graph.reduce_sum %e {axes = [-1], keepdims}
  %g = graph.log %l
  %p = graph.div %e, %l
  %ls = graph.sub %d, %g
  %pl = graph.mul %p, %ls
  %sum = graph.reduce_sum %pl {axes = [-1]}
  %y = graph.neg %sum
  func.return %y : tensor<?xf32, #graph.dims<["rows"]>>
}
