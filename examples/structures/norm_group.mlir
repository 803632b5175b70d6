// Residual, group norm over 4 channels and all positions, ReLU.
func.func @norm_group(%x: tensor<?x?x4x?xf32, #graph.dims<["batch", "groups", "pos"]>>,
    %r: tensor<?x?x4x?xf32, #graph.dims<["batch", "groups", "pos"]>>,
    %g: tensor<?x4x1xf32, #graph.dims<["groups"]>>,
    %b: tensor<?x4x1xf32, #graph.dims<["groups"]>>)
    -> tensor<?x?x4x?xf32, #graph.dims<["batch", "groups", "pos"]>> {
  %z = graph.add %x, %r
  %mean = graph.reduce_mean %z {axes = [-2, -1], keepdims}
  %cen = graph.sub %z, %mean
  %sq = graph.square %cen
  %var = graph.reduce_mean %sq {axes = [-2, -1], keepdims}
  %eps = graph.constant dense<1.0e-5> : tensor<f32>
  %ve = graph.add %var, %eps
  %rs = graph.rsqrt %ve
  %nx = graph.mul %cen, %rs
  %ng = graph.mul %nx, %g
  %nb = graph.add %ng, %b
  %y = graph.relu %nb
  func.return %y : tensor<?x?x4x?xf32, #graph.dims<["batch", "groups", "pos"]>>
}
