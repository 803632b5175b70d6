// Convolution, then a scale and a shift per channel from running statistics.
func.func @conv_batch_norm(%x: tensor<?x16x?x?xf16, #graph.dims<["batch", "size", "size"]>>,
    %w: tensor<32x16x3x3xf16>,
    %mean: tensor<32x1x1xf32>,
    %var: tensor<32x1x1xf32>,
    %g: tensor<32x1x1xf32>,
    %b: tensor<32x1x1xf32>)
    -> tensor<?x32x?x?xf32, #graph.dims<["batch", "size", "size"]>> {
  %c = graph.conv %x, %w {pads = [1, 1, 1, 1]}
  %d = graph.sub %c, %mean
  %eps = graph.constant dense<1.0e-5> : tensor<f32>
  %ve = graph.add %var, %eps
  %rs = graph.rsqrt %ve
  %n = graph.mul %d, %rs
  %s = graph.mul %n, %g
  %t = graph.add %s, %b
  %y = graph.relu %t
  func.return %y : tensor<?x32x?x?xf32, #graph.dims<["batch", "size", "size"]>>
}
