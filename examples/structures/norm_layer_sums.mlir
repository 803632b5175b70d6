// The same from sums and sums of squares.
func.func @norm_layer_sums(%x: tensor<?x?xf32, #graph.dims<["rows", "cols"]>>,
    %r: tensor<?x?xf32, #graph.dims<["rows", "cols"]>>,
    %g: tensor<?xf32, #graph.dims<["cols"]>>,
    %b: tensor<?xf32, #graph.dims<["cols"]>>)
    -> tensor<?x?xf32, #graph.dims<["rows", "cols"]>> {
  %z = graph.add %x, %r
  %mean = graph.reduce_mean %z {axes = [-1], keepdims}
  %zz = graph.mul %z, %z
  %ms = graph.reduce_mean %zz {axes = [-1], keepdims}
  %mm = graph.square %mean
  %var = graph.sub %ms, %mm
  %eps = graph.constant dense<1.0e-5> : tensor<f32>
  %ve = graph.add %var, %eps
  %rs = graph.rsqrt %ve
  %cen = graph.sub %z, %mean
  %nx = graph.mul %cen, %rs
  %ng = graph.mul %nx, %g
  %nb = graph.add %ng, %b
  %sg = graph.sigmoid %nb
  %y = graph.mul %nb, %sg
  func.return %y : tensor<?x?xf32, #graph.dims<["rows", "cols"]>>
}
