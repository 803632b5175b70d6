// The variance of rows.
func.func @statistics_variance(%x: tensor<?x?xf32, #graph.dims<["rows", "cols"]>>)
    -> tensor<?xf32, #graph.dims<["rows"]>> {
  %mean = graph.reduce_mean %x {axes = [-1], keepdims}
  %cen = graph.sub %x, %mean
  %sq = graph.square %cen
  %y = graph.reduce_mean %sq {axes = [-1]}
  func.return %y : tensor<?xf32, #graph.dims<["rows"]>>
}
