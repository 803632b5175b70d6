// Cross-entropy with labels as numbers: the one-hot row is never stored.
func.func @loss_cross_entropy(%x: tensor<?x?xf32, #graph.dims<["rows", "cols"]>>,
    %label: tensor<?x1xi32, #graph.dims<["rows"]>>)
    -> tensor<?xf32, #graph.dims<["rows"]>> {
  %m = graph.reduce_max %x {axes = [-1], keepdims}
  %d = graph.sub %x, %m
  %e = graph.exp %d
  %l = graph.reduce_sum %e {axes = [-1], keepdims}
  %g = graph.log %l
  %ls = graph.sub %d, %g
  %k = graph.iota {dim = 1 : i64} : tensor<1x?xi32, #graph.dims<["cols"]>>
  %hot = graph.eq %k, %label
  %zero = graph.constant dense<0.0> : tensor<f32>
  %pick = graph.where %hot, %ls, %zero
  %sum = graph.reduce_sum %pick {axes = [-1]}
  %y = graph.neg %sum
  func.return %y : tensor<?xf32, #graph.dims<["rows"]>>
}
