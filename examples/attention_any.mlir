// Attention of any sequence length: bind it with `--dim seq=128` (or 500, which no block divides).
func.func @attention_any(%q: tensor<2x?x64xf16, #graph.dims<["seq"]>>, %k: tensor<2x?x64xf16, #graph.dims<["seq"]>>,
    %v: tensor<2x?x64xf16, #graph.dims<["seq"]>>, %mask: tensor<?x?xf16, #graph.dims<["seq", "seq"]>>)
    -> tensor<2x?x64xf16, #graph.dims<["seq"]>> {
  %scale = graph.constant dense<0.125> : tensor<f16>
  %s = graph.matmul %q, %k {transpose_b}
  %t = graph.mul %s, %scale
  %u = graph.add %t, %mask
  %p = graph.softmax %u {axis = -1 : i64}
  %o = graph.matmul %p, %v
  func.return %o : tensor<2x?x64xf16, #graph.dims<["seq"]>>
}
