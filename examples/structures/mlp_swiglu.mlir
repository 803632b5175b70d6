// A SiLU gate times a second product.
func.func @mlp_swiglu(%x: tensor<?x?xf16, #graph.dims<["rows", "cols"]>>,
    %w: tensor<?x?xf16, #graph.dims<["cols", "wide"]>>,
    %v: tensor<?x?xf16, #graph.dims<["cols", "wide"]>>)
    -> tensor<?x?xf16, #graph.dims<["rows", "wide"]>> {
  %a = graph.matmul %x, %w
  %c = graph.matmul %x, %v
  %g = graph.sigmoid %a
  %s = graph.mul %a, %g
  %y = graph.mul %s, %c
  func.return %y : tensor<?x?xf16, #graph.dims<["rows", "wide"]>>
}
