// Attention whose scores are kept within ±16 by a tanh, with a kernel for heads of 32 and 64 keys.
//   tilewright run FILE --random 0 --use examples/operators/capped_attention.mlir

#rows = affine_map<(d0, d1, d2, d3) -> (d0, d1 * 16 + d2, d3)>
#keys = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#values = affine_map<(d0, d1, d2) -> (d0, d2, d1)>

// s0 is b, s1 is m; a block of 16 rows of one head at a time, all keys of it held on chip.
tile.kernel @capped_rows(%0: tensor<?x?x32xf16, #graph.dims<["b", "m"]>>, %1: tensor<?x64x32xf16, #graph.dims<["b"]>>, %2: tensor<?x64x32xf16, #graph.dims<["b"]>>) -> (%3: tensor<?x?x32xf16, #graph.dims<["b", "m"]>>)
    attributes {tilewright.elements = [f16, bf16], tilewright.shapes = affine_set<()[s0, s1] : (s1 mod 16 == 0)>} {
  tile.for %b = 0 to affine_map<()[s0] -> (s0)>() {axis = "b", kind = "grid"} {
    %4 = tile.load %1, %b {map = #keys, valid = affine_map<(d0) -> (64, 32)>} : !tile.tile<64x32xf16>
    %5 = tile.load %2, %b {map = #values, valid = affine_map<(d0) -> (32, 64)>} : !tile.tile<32x64xf16>
    tile.for %m = 0 to affine_map<()[s0, s1] -> (s1 floordiv 16)>() {axis = "m", kind = "grid"} {
      %6 = tile.load %0, %b, %m {map = #rows, valid = affine_map<(d0, d1) -> (16, 32)>} : !tile.tile<16x32xf16>
      %7 = tile.contract %6, %4 {spec = "mk,tk->mt"} : !tile.tile<16x64xf32>
      %8 = tile.map %7 {fn = "mul", immediates = [0 : index, 0.0625 : f32]} : !tile.tile<16x64xf32>
      %9 = tile.map %8 {fn = "tanh"} : !tile.tile<16x64xf32>
      %10 = tile.map %9 {fn = "mul", immediates = [0 : index, 16.0 : f32]} : !tile.tile<16x64xf32>
      %11 = tile.reduce %10 {monoid = "max", axes = [1]} : !tile.tile<16x1xf32>
      %12 = tile.map %10, %11 {fn = "sub"} : !tile.tile<16x64xf32>
      %13 = tile.map %12 {fn = "exp"} : !tile.tile<16x64xf32>
      %14 = tile.reduce %13 {monoid = "sum", axes = [1]} : !tile.tile<16x1xf32>
      %15 = tile.map %13, %14 {fn = "div"} : !tile.tile<16x64xf16>
      %16 = tile.contract %15, %5 {spec = "mt,kt->mk"} : !tile.tile<16x32xf32>
      tile.store %16, %3, %b, %m {map = #rows, valid = affine_map<(d0, d1) -> (16, 32)>}
      tile.yield
    }
    tile.yield
  }
}

func.func private @capped_attention(%q: tensor<?x?x?xf16, #graph.dims<["b", "m", "d"]>>, %k: tensor<?x?x?xf16, #graph.dims<["b", "t", "d"]>>, %v: tensor<?x?x?xf16, #graph.dims<["b", "t", "d"]>>) -> tensor<?x?x?xf16, #graph.dims<["b", "m", "d"]>>
    attributes {tilewright.kernels = [@capped_rows], tilewright.elements = [f16, bf16]} {
  %inverse = graph.constant dense<0.0625> : tensor<f32>
  %cap = graph.constant dense<16.0> : tensor<f32>
  %s = graph.matmul %q, %k {transpose_b} : tensor<?x?x?xf32, #graph.dims<["b", "m", "t"]>>
  %r = graph.mul %s, %inverse
  %h = graph.tanh %r
  %t = graph.mul %h, %cap
  %p = graph.softmax %t
  %w = graph.cast %p : tensor<?x?x?xf16, #graph.dims<["b", "m", "t"]>>
  %o = graph.matmul %w, %v
  return %o : tensor<?x?x?xf16, #graph.dims<["b", "m", "d"]>>
}
