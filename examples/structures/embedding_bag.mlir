// Weighted sums of the rows of a table that lists of indices name: the rows are read, and never stored.
func.func @embedding_bag(%table: tensor<?x?xf16, #graph.dims<["samples", "wide"]>>, %index: tensor<?x8xi32, #graph.dims<["rows"]>>,
    %weight: tensor<?x8x1xf16, #graph.dims<["rows"]>>) -> tensor<?x?xf16, #graph.dims<["rows", "wide"]>> {
  %row = graph.gather %table, %index {axis = 0 : i64}
  %scaled = graph.mul %row, %weight
  %bag = graph.reduce_sum %scaled {axes = [1]}
  func.return %bag : tensor<?x?xf16, #graph.dims<["rows", "wide"]>>
}
