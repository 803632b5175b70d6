// The covariance of two sets of columns.
func.func @statistics_covariance(%x: tensor<?x?xf32, #graph.dims<["samples", "rows"]>>,
    %z: tensor<?x?xf32, #graph.dims<["samples", "cols"]>>)
    -> tensor<?x?xf32, #graph.dims<["rows", "cols"]>> {
  %mx = graph.reduce_mean %x {axes = [0], keepdims}
  %mz = graph.reduce_mean %z {axes = [0], keepdims}
  %cx = graph.sub %x, %mx
  %cz = graph.sub %z, %mz
  %tx = graph.transpose %cx {permutation = [1, 0]}
  %p = graph.matmul %tx, %cz
  %n = graph.constant dense<0.001> : tensor<f32>
  %y = graph.mul %p, %n
  func.return %y : tensor<?x?xf32, #graph.dims<["rows", "cols"]>>
}
