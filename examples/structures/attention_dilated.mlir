// Every row sees every fourth key up to its own, its own included.
func.func @attention_dilated(%q: tensor<?x?x64xf16, #graph.dims<["heads", "seq"]>>,
    %k: tensor<?x?x64xf16, #graph.dims<["heads", "keys"]>>,
    %v: tensor<?x?x64xf16, #graph.dims<["heads", "keys"]>>)
    -> tensor<?x?x64xf16, #graph.dims<["heads", "seq"]>> {
  %s = graph.matmul %q, %k {transpose_b}
  %c = graph.constant dense<0.125> : tensor<f16>
  %t = graph.mul %s, %c
  %i = graph.iota {dim = 0 : i64} : tensor<?x1xi32, #graph.dims<["seq"]>>
  %j = graph.iota {dim = 1 : i64} : tensor<1x?xi32, #graph.dims<["keys"]>>
  %far = graph.sub %i, %j
  %four = graph.constant dense<4> : tensor<i32>
  %rest = graph.mod %far, %four
  %zero = graph.constant dense<0> : tensor<i32>
  %step = graph.eq %rest, %zero
  %before = graph.le %j, %i
  %keep = graph.and %step, %before
  %inf = graph.constant dense<0xFC00> : tensor<f16>
  %u = graph.where %keep, %t, %inf
  %m = graph.reduce_max %u {axes = [-1], keepdims}
  %d = graph.sub %u, %m
  %e = graph.exp %d
  %l = graph.reduce_sum %e {axes = [-1], keepdims}
  %p = graph.div %e, %l
  %y = graph.matmul %p, %v
  func.return %y : tensor<?x?x64xf16, #graph.dims<["heads", "seq"]>>
}
