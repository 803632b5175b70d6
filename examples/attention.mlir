// Attention with scale and additive mask: one kernel, the scores never leave the chip.
func.func @attention(%q: tensor<8x512x64xf16>, %k: tensor<8x512x64xf16>, %v: tensor<8x512x64xf16>,
    %mask: tensor<512x512xf16>) -> tensor<8x512x64xf16> {
  %scale = graph.constant dense<0.125> : tensor<f16>
  %s = graph.matmul %q, %k {transpose_b} : tensor<8x512x512xf16>
  %t = graph.mul %s, %scale : tensor<8x512x512xf16>
  %u = graph.add %t, %mask : tensor<8x512x512xf16>
  %p = graph.softmax %u {axis = -1 : i64} : tensor<8x512x512xf16>
  %o = graph.matmul %p, %v : tensor<8x512x64xf16>
  func.return %o : tensor<8x512x64xf16>
}
