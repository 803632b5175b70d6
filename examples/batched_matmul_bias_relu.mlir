// A batch of matrix products with bias and ReLU; no size is a multiple of the matrix engine's block.
func.func @batched_matmul_bias_relu(%x: tensor<3x77x130xf16>, %w: tensor<3x130x201xf16>, %bias: tensor<201xf16>)
    -> tensor<3x77x201xf16> {
  %product = graph.matmul %x, %w : tensor<3x77x201xf16>
  %sum = graph.add %product, %bias : tensor<3x77x201xf16>
  %y = graph.relu %sum : tensor<3x77x201xf16>
  func.return %y : tensor<3x77x201xf16>
}
