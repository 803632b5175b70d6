// Token and position embeddings, added and normalised.
func.func @embedding_norm(%table: tensor<?x?xf16, #graph.dims<["samples", "wide"]>>, %token: tensor<?xi32, #graph.dims<["rows"]>>,
    %position: tensor<?x?xf16, #graph.dims<["rows", "wide"]>>, %gain: tensor<?xf16, #graph.dims<["wide"]>>,
    %shift: tensor<?xf16, #graph.dims<["wide"]>>) -> tensor<?x?xf16, #graph.dims<["rows", "wide"]>> {
  %row = graph.gather %table, %token {axis = 0 : i64}
  %sum = graph.add %row, %position
  %y = graph.layer_norm %sum, %gain, %shift
  func.return %y : tensor<?x?xf16, #graph.dims<["rows", "wide"]>>
}
