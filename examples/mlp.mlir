// A perceptron of two layers with GELU between them.
func.func @mlp(%x: tensor<64x128xf16>, %w1: tensor<128x512xf16>, %b1: tensor<512xf16>,
    %w2: tensor<512x128xf16>, %b2: tensor<128xf16>) -> tensor<64x128xf16> {
  %p1 = graph.matmul %x, %w1 : tensor<64x512xf16>
  %s1 = graph.add %p1, %b1 : tensor<64x512xf16>
  %h = graph.gelu %s1 : tensor<64x512xf16>
  %p2 = graph.matmul %h, %w2 : tensor<64x128xf16>
  %y = graph.add %p2, %b2 : tensor<64x128xf16>
  func.return %y : tensor<64x128xf16>
}
