// Product, bias, GELU.
func.func @mlp_gelu(%x: tensor<?x?xf16, #graph.dims<["rows", "cols"]>>,
    %w: tensor<?x?xf16, #graph.dims<["cols", "wide"]>>,
    %b: tensor<?xf32, #graph.dims<["wide"]>>)
    -> tensor<?x?xf32, #graph.dims<["rows", "wide"]>> {
  %p = graph.matmul %x, %w
  %u = graph.add %p, %b
  %h1 = graph.constant dense<0.70710678> : tensor<f32>
  %h2 = graph.mul %u, %h1
  %h3 = graph.erf %h2
  %one = graph.constant dense<1.0> : tensor<f32>
  %h4 = graph.add %h3, %one
  %half = graph.constant dense<0.5> : tensor<f32>
  %h5 = graph.mul %u, %half
  %y = graph.mul %h5, %h4
  func.return %y : tensor<?x?xf32, #graph.dims<["rows", "wide"]>>
}
