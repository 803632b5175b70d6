// Integers times integers, scales per row and per channel.
func.func @quantised_matmul(%x: tensor<?x?xi8, #graph.dims<["rows", "cols"]>>,
    %w: tensor<?x?xi8, #graph.dims<["cols", "wide"]>>,
    %sr: tensor<?x1xf32, #graph.dims<["rows"]>>,
    %sc: tensor<1x?xf32, #graph.dims<["wide"]>>)
    -> tensor<?x?xf32, #graph.dims<["rows", "wide"]>> {
  %p = graph.matmul %x, %w : tensor<?x?xi32, #graph.dims<["rows", "wide"]>>
  %f = graph.cast %p : tensor<?x?xf32, #graph.dims<["rows", "wide"]>>
  %a = graph.mul %f, %sr
  %y = graph.mul %a, %sc
  func.return %y : tensor<?x?xf32, #graph.dims<["rows", "wide"]>>
}
