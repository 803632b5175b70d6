// Weights are sigmoids: nothing is normalised.
func.func @attention_sigmoid(%q: tensor<?x?x64xf16, #graph.dims<["heads", "seq"]>>,
    %k: tensor<?x?x64xf16, #graph.dims<["heads", "keys"]>>,
    %v: tensor<?x?x64xf16, #graph.dims<["heads", "keys"]>>)
    -> tensor<?x?x64xf16, #graph.dims<["heads", "seq"]>> {
  %s = graph.matmul %q, %k {transpose_b}
  %c = graph.constant dense<0.125> : tensor<f16>
  %t = graph.mul %s, %c
  %p = graph.sigmoid %t
  %y = graph.matmul %p, %v
  func.return %y : tensor<?x?x64xf16, #graph.dims<["heads", "seq"]>>
}
