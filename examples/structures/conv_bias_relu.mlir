// Convolution, bias, ReLU.
func.func @conv_bias_relu(%x: tensor<?x16x?x?xf16, #graph.dims<["batch", "size", "size"]>>,
    %w: tensor<32x16x3x3xf16>,
    %b: tensor<32x1x1xf16>)
    -> tensor<?x32x?x?xf16, #graph.dims<["batch", "size", "size"]>> {
  %c = graph.conv %x, %w {pads = [1, 1, 1, 1]}
  %d = graph.add %c, %b
  %y = graph.relu %d
  func.return %y : tensor<?x32x?x?xf16, #graph.dims<["batch", "size", "size"]>>
}
