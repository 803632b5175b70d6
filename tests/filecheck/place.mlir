// RUN: tilewright opt %s -p place --target davinci --split-input-file --verify-diagnostics | filecheck %s

// The vector engine works in its own memory: that is where the tile comes.
tile.kernel @k(%0: tensor<8x16xf32>) -> (%1: tensor<8x16xf32>) {
  %2 = tile.load %0 {map = affine_map<(d0, d1) -> (d0, d1)>, valid = affine_map<() -> (8, 16)>} : !tile.tile<8x16xf32>
  %3 = tile.map %2 {fn = "exp"} : !tile.tile<8x16xf32>
  tile.store %3, %1 {map = affine_map<(d0, d1) -> (d0, d1)>, valid = affine_map<() -> (8, 16)>}
}
// CHECK:      tile.kernel @k
// CHECK-NEXT:   [[X:%.*]] = tile.load %0 {{.*}} : !tile.tile<8x16xf32, "ub">
// CHECK-NEXT:   [[Y:%.*]] = tile.map [[X]] {fn = "exp"} : !tile.tile<8x16xf32, "ub">
// CHECK-NEXT:   tile.store [[Y]], %1

// -----

// expected-error@+1 {{this kernel is in buffer form: place comes before bufferize}}
tile.kernel @late(%0: !tile.buffer<8x16xf32, "gm", #tile.layout<[8, 64], [16, 4]>>) -> (%1: !tile.buffer<8x16xf32, "gm", #tile.layout<[8, 64], [16, 4]>>) {
  %2 = tile.alloc : !tile.buffer<8x16xf32, "ub", #tile.layout<[8, 64], [16, 4]>>
  tile.load %0, %2 {map = affine_map<(d0, d1) -> (d0, d1)>, valid = affine_map<() -> (8, 16)>, into}
  tile.store %2, %1 {map = affine_map<(d0, d1) -> (d0, d1)>, valid = affine_map<() -> (8, 16)>}
}
