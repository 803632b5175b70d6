// a·sigmoid(a)·b as a custom operator, for all matrices of f16 or bf16, with two kernels.
//   tilewright run FILE --random 0 --use examples/operators/gate.mlir

!matrix = tensor<?x?xf16, #graph.dims<["m", "n"]>>
#wide = affine_map<(d0, d1, d2, d3) -> (d0 * 32 + d2, d1 * 64 + d3)>
#wide_valid = affine_map<(d0, d1)[s0, s1] -> (32, s1 - d1 * 64)>
#narrow = affine_map<(d0, d1, d2, d3) -> (d0 * 16 + d2, d1 * 64 + d3)>
#narrow_valid = affine_map<(d0, d1)[s0, s1] -> (s0 - d0 * 16, s1 - d1 * 64)>

// For one machine, and whole tiles of 32 rows: s0 is m, s1 is n.
tile.kernel @wide(%0: !matrix, %1: !matrix) -> (%2: !matrix)
    attributes {tilewright.targets = ["unified"], tilewright.elements = [f16, bf16],
      tilewright.shapes = affine_set<()[s0, s1] : (s0 mod 32 == 0)>} {
  tile.for %a = 0 to affine_map<()[s0] -> (s0 ceildiv 32)>() {axis = "a", kind = "grid"} {
    tile.for %b = 0 to affine_map<()[s0, s1] -> (s1 ceildiv 64)>() {axis = "b", kind = "grid"} {
      %3 = tile.load %0, %a, %b {map = #wide, valid = #wide_valid, slots = 2} : !tile.tile<32x64xf16>
      %4 = tile.load %1, %a, %b {map = #wide, valid = #wide_valid, slots = 2} : !tile.tile<32x64xf16>
      %5 = tile.map %3 {fn = "sigmoid"} : !tile.tile<32x64xf32>
      %6 = tile.map %3, %5 {fn = "mul"} : !tile.tile<32x64xf16>
      %7 = tile.map %6, %4 {fn = "mul", slots = 2} : !tile.tile<32x64xf16>
      tile.store %7, %2, %a, %b {map = #wide, valid = #wide_valid}
      tile.yield
    }
    tile.yield
  }
}

// For what is left: any machine, any sizes.
tile.kernel @narrow(%0: !matrix, %1: !matrix) -> (%2: !matrix)
    attributes {tilewright.elements = [f16, bf16]} {
  tile.for %a = 0 to affine_map<()[s0] -> (s0 ceildiv 16)>() {axis = "a", kind = "grid"} {
    tile.for %b = 0 to affine_map<()[s0, s1] -> (s1 ceildiv 64)>() {axis = "b", kind = "grid"} {
      %3 = tile.load %0, %a, %b {map = #narrow, valid = #narrow_valid, slots = 2} : !tile.tile<16x64xf16>
      %4 = tile.load %1, %a, %b {map = #narrow, valid = #narrow_valid, slots = 2} : !tile.tile<16x64xf16>
      %5 = tile.map %3 {fn = "sigmoid"} : !tile.tile<16x64xf32>
      %6 = tile.map %3, %5 {fn = "mul"} : !tile.tile<16x64xf16>
      %7 = tile.map %6, %4 {fn = "mul", slots = 2} : !tile.tile<16x64xf16>
      tile.store %7, %2, %a, %b {map = #narrow, valid = #narrow_valid}
      tile.yield
    }
    tile.yield
  }
}

func.func private @gate(%a: !matrix, %b: !matrix) -> !matrix
    attributes {tilewright.kernels = [@wide, @narrow], tilewright.elements = [f16, bf16]} {
  %s = graph.sigmoid %a
  %y = graph.mul %a, %s
  %g = graph.mul %y, %b
  return %g : !matrix
}
