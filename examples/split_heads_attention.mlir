// Attention over heads that lie side by side in each row: split by reshape and transpose, joined again afterwards.
func.func @split_heads_attention(%q: tensor<128x256xf16>, %k: tensor<128x256xf16>, %v: tensor<128x256xf16>)
    -> tensor<128x256xf16> {
  %q0 = graph.reshape %q : tensor<128x4x64xf16>
  %k0 = graph.reshape %k : tensor<128x4x64xf16>
  %v0 = graph.reshape %v : tensor<128x4x64xf16>
  %q1 = graph.transpose %q0 {permutation = array<i64: 1, 0, 2>} : tensor<4x128x64xf16>
  %k1 = graph.transpose %k0 {permutation = array<i64: 1, 0, 2>} : tensor<4x128x64xf16>
  %v1 = graph.transpose %v0 {permutation = array<i64: 1, 0, 2>} : tensor<4x128x64xf16>
  %scale = graph.constant dense<0.125> : tensor<f16>
  %s = graph.matmul %q1, %k1 {transpose_b} : tensor<4x128x128xf16>
  %t = graph.mul %s, %scale : tensor<4x128x128xf16>
  %p = graph.softmax %t {axis = -1 : i64} : tensor<4x128x128xf16>
  %h = graph.matmul %p, %v1 : tensor<4x128x64xf16>
  %j = graph.transpose %h {permutation = array<i64: 1, 0, 2>} : tensor<128x4x64xf16>
  %o = graph.reshape %j : tensor<128x256xf16>
  func.return %o : tensor<128x256xf16>
}
