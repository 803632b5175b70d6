// A 3×3 convolution with stride, padding, bias and ReLU: a sum over taps of strided products, no im2col buffer.
func.func @conv_bias_relu(%x: tensor<1x16x28x28xf16>, %w: tensor<32x16x3x3xf16>, %bias: tensor<32xf16>)
    -> tensor<1x32x14x14xf16> {
  %c = graph.conv %x, %w, %bias {strides = array<i64: 2, 2>, pads = array<i64: 1, 1, 1, 1>} : tensor<1x32x14x14xf16>
  %y = graph.relu %c : tensor<1x32x14x14xf16>
  func.return %y : tensor<1x32x14x14xf16>
}
