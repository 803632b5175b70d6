// Layer norm feeds a product.
func.func @norm_layer_matmul(%x: tensor<?x?xf32, #graph.dims<["rows", "cols"]>>,
    %g: tensor<?xf32, #graph.dims<["cols"]>>,
    %b: tensor<?xf32, #graph.dims<["cols"]>>,
    %w: tensor<?x?xf32, #graph.dims<["cols", "wide"]>>)
    -> tensor<?x?xf32, #graph.dims<["rows", "wide"]>> {
  %mean = graph.reduce_mean %x {axes = [-1], keepdims}
  %cen = graph.sub %x, %mean
  %sq = graph.square %cen
  %var = graph.reduce_mean %sq {axes = [-1], keepdims}
  %eps = graph.constant dense<1.0e-5> : tensor<f32>
  %ve = graph.add %var, %eps
  %rs = graph.rsqrt %ve
  %nx = graph.mul %cen, %rs
  %ng = graph.mul %nx, %g
  %nb = graph.add %ng, %b
  %y = graph.matmul %nb, %w
  func.return %y : tensor<?x?xf32, #graph.dims<["rows", "wide"]>>
}
