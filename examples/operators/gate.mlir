// silu(a)·b as a custom operator, for all matrices of f16 or bf16, with two kernels.
//   tilewright run FILE --random 0 --use examples/operators/gate.mlir

#wide = affine_map<(d0, d1, d2, d3) -> (d0 * 16 + d2, d1 * 32 + d3)>
#wide_valid = affine_map<(d0, d1)[s0, s1] -> (16, s1 - d1 * 32)>
#narrow = affine_map<(d0, d1, d2, d3) -> (d0 * 4 + d2, d1 * 32 + d3)>
#narrow_valid = affine_map<(d0, d1)[s0, s1] -> (s0 - d0 * 4, s1 - d1 * 32)>

// For one machine, and whole tiles of 16 rows: s0 is m, s1 is n.
tile.kernel @wide(%0: tensor<?x?xf16, #graph.dims<["m", "n"]>>, %1: tensor<?x?xf16, #graph.dims<["m", "n"]>>) -> (%2: tensor<?x?xf16, #graph.dims<["m", "n"]>>)
    attributes {tilewright.targets = ["unified"], tilewright.elements = [f16, bf16],
      tilewright.shapes = affine_set<()[s0, s1] : (s0 mod 16 == 0)>} {
  tile.for %a = 0 to affine_map<()[s0] -> (s0 ceildiv 16)>() {axis = "a", kind = "grid"} {
    tile.for %b = 0 to affine_map<()[s0, s1] -> (s1 ceildiv 32)>() {axis = "b", kind = "grid"} {
      %3 = tile.load %0, %a, %b {map = #wide, valid = #wide_valid} : !tile.tile<16x32xf16>
      %4 = tile.load %1, %a, %b {map = #wide, valid = #wide_valid} : !tile.tile<16x32xf16>
      %5 = tile.map %3 {fn = "sigmoid"} : !tile.tile<16x32xf32>
      %6 = tile.map %3, %5 {fn = "mul"} : !tile.tile<16x32xf16>
      %7 = tile.map %6, %4 {fn = "mul"} : !tile.tile<16x32xf16>
      tile.store %7, %2, %a, %b {map = #wide, valid = #wide_valid}
      tile.yield
    }
    tile.yield
  }
}

// For what is left: any machine, any sizes.
tile.kernel @narrow(%0: tensor<?x?xf16, #graph.dims<["m", "n"]>>, %1: tensor<?x?xf16, #graph.dims<["m", "n"]>>) -> (%2: tensor<?x?xf16, #graph.dims<["m", "n"]>>)
    attributes {tilewright.elements = [f16, bf16]} {
  tile.for %a = 0 to affine_map<()[s0] -> (s0 ceildiv 4)>() {axis = "a", kind = "grid"} {
    tile.for %b = 0 to affine_map<()[s0, s1] -> (s1 ceildiv 32)>() {axis = "b", kind = "grid"} {
      %3 = tile.load %0, %a, %b {map = #narrow, valid = #narrow_valid} : !tile.tile<4x32xf16>
      %4 = tile.load %1, %a, %b {map = #narrow, valid = #narrow_valid} : !tile.tile<4x32xf16>
      %5 = tile.map %3 {fn = "sigmoid"} : !tile.tile<4x32xf32>
      %6 = tile.map %3, %5 {fn = "mul"} : !tile.tile<4x32xf16>
      %7 = tile.map %6, %4 {fn = "mul"} : !tile.tile<4x32xf16>
      tile.store %7, %2, %a, %b {map = #narrow, valid = #narrow_valid}
      tile.yield
    }
    tile.yield
  }
}

func.func private @gate(%a: tensor<?x?xf16, #graph.dims<["m", "n"]>>, %b: tensor<?x?xf16, #graph.dims<["m", "n"]>>) -> tensor<?x?xf16, #graph.dims<["m", "n"]>>
    attributes {tilewright.kernels = [@wide, @narrow], tilewright.elements = [f16, bf16]} {
  %y = graph.silu %a
  %g = graph.mul %y, %b
  return %g : tensor<?x?xf16, #graph.dims<["m", "n"]>>
}
