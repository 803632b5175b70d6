// Residual, layer norm, SiLU.
func.func @norm_layer(%x: tensor<?x?xf32, #graph.dims<["rows", "cols"]>>,
    %r: tensor<?x?xf32, #graph.dims<["rows", "cols"]>>,
    %g: tensor<?xf32, #graph.dims<["cols"]>>,
    %b: tensor<?xf32, #graph.dims<["cols"]>>)
    -> tensor<?x?xf32, #graph.dims<["rows", "cols"]>> {
  %z = graph.add %x, %r
  %mean = graph.reduce_mean %z {axes = [-1], keepdims}
  %cen = graph.sub %z, %mean
  %sq = graph.square %cen
  %var = graph.reduce_mean %sq {axes = [-1], keepdims}
  %eps = graph.constant dense<1.0e-5> : tensor<f32>
  %ve = graph.add %var, %eps
  %rs = graph.rsqrt %ve
  %nx = graph.mul %cen, %rs
  %ng = graph.mul %nx, %g
  %nb = graph.add %ng, %b
  %sg = graph.sigmoid %nb
  %y = graph.mul %nb, %sg
  func.return %y : tensor<?x?xf32, #graph.dims<["rows", "cols"]>>
}
