// Group norm feeds a product over positions.
func.func @norm_group_matmul(%x: tensor<?x?x4x?xf32, #graph.dims<["batch", "groups", "pos"]>>,
    %w: tensor<?x?xf32, #graph.dims<["pos", "wide"]>>)
    -> tensor<?x?x4x?xf32, #graph.dims<["batch", "groups", "wide"]>> {
  %mean = graph.reduce_mean %x {axes = [-2, -1], keepdims}
  %cen = graph.sub %x, %mean
  %sq = graph.square %cen
  %var = graph.reduce_mean %sq {axes = [-2, -1], keepdims}
  %eps = graph.constant dense<1.0e-5> : tensor<f32>
  %ve = graph.add %var, %eps
  %rs = graph.rsqrt %ve
  %nx = graph.mul %cen, %rs
  %y = graph.matmul %nx, %w
  func.return %y : tensor<?x?x4x?xf32, #graph.dims<["batch", "groups", "wide"]>>
}
