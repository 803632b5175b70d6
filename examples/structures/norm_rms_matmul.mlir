// RMS norm feeds a product.
func.func @norm_rms_matmul(%x: tensor<?x?xf32, #graph.dims<["rows", "cols"]>>,
    %g: tensor<?xf32, #graph.dims<["cols"]>>,
    %w: tensor<?x?xf32, #graph.dims<["cols", "wide"]>>)
    -> tensor<?x?xf32, #graph.dims<["rows", "wide"]>> {
  %sq = graph.square %x
  %ms = graph.reduce_mean %sq {axes = [-1], keepdims}
  %eps = graph.constant dense<1.0e-5> : tensor<f32>
  %ve = graph.add %ms, %eps
  %rs = graph.rsqrt %ve
  %nx = graph.mul %x, %rs
  %ng = graph.mul %nx, %g
  %y = graph.matmul %ng, %w
  func.return %y : tensor<?x?xf32, #graph.dims<["rows", "wide"]>>
}
