// Attention over the blocks of 16 keys that a list names, one list for every batch: pages of a cache, or block-sparse attention.
func.func @attention_paged(%q: tensor<?x?x64xf16, #graph.dims<["batch", "seq"]>>, %keys: tensor<?x16x64xf16, #graph.dims<["samples"]>>,
    %values: tensor<?x16x64xf16, #graph.dims<["samples"]>>, %block: tensor<?x6xi32, #graph.dims<["batch"]>>)
    -> tensor<?x?x64xf16, #graph.dims<["batch", "seq"]>> {
  %kb = graph.gather %keys, %block {axis = 0 : i64}
  %vb = graph.gather %values, %block {axis = 0 : i64}
  %k = graph.reshape %kb : tensor<?x96x64xf16, #graph.dims<["batch"]>>
  %v = graph.reshape %vb : tensor<?x96x64xf16, #graph.dims<["batch"]>>
  %s = graph.matmul %q, %k {transpose_b}
  %scale = graph.constant dense<0.125> : tensor<f16>
  %t = graph.mul %s, %scale
  %p = graph.softmax %t {axis = -1}
  %o = graph.matmul %p, %v
  func.return %o : tensor<?x?x64xf16, #graph.dims<["batch", "seq"]>>
}
