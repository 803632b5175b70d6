// Residual, RMS norm, SiLU.
func.func @norm_rms(%x: tensor<?x?xf32, #graph.dims<["rows", "cols"]>>,
    %r: tensor<?x?xf32, #graph.dims<["rows", "cols"]>>,
    %g: tensor<?xf32, #graph.dims<["cols"]>>)
    -> tensor<?x?xf32, #graph.dims<["rows", "cols"]>> {
  %z = graph.add %x, %r
  %sq = graph.square %z
  %ms = graph.reduce_mean %sq {axes = [-1], keepdims}
  %eps = graph.constant dense<1.0e-5> : tensor<f32>
  %ve = graph.add %ms, %eps
  %rs = graph.rsqrt %ve
  %nx = graph.mul %z, %rs
  %nb = graph.mul %nx, %g
  %sg = graph.sigmoid %nb
  %y = graph.mul %nb, %sg
  func.return %y : tensor<?x?xf32, #graph.dims<["rows", "cols"]>>
}
