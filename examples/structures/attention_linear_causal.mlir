// Linear attention of which no row sees a later key.
func.func @attention_linear_causal(%q: tensor<?x?x64xf16, #graph.dims<["heads", "seq"]>>,
    %k: tensor<?x?x64xf16, #graph.dims<["heads", "keys"]>>,
    %v: tensor<?x?x64xf16, #graph.dims<["heads", "keys"]>>)
    -> tensor<?x?x64xf16, #graph.dims<["heads", "seq"]>> {
  %s = graph.matmul %q, %k {transpose_b}
  %i = graph.iota {dim = 0 : i64} : tensor<?x1xi32, #graph.dims<["seq"]>>
  %j = graph.iota {dim = 1 : i64} : tensor<1x?xi32, #graph.dims<["keys"]>>
  %keep = graph.le %j, %i
  %zero = graph.constant dense<0.0> : tensor<f16>
  %p = graph.where %keep, %s, %zero
  %y = graph.matmul %p, %v
  func.return %y : tensor<?x?x64xf16, #graph.dims<["heads", "seq"]>>
}
