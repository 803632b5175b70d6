// RUN: tilewright opt %s -p emit --target unified --split-input-file --verify-diagnostics | filecheck %s

tile.kernel @k(%0: !tile.buffer<8x16xf32, "gm", #tile.layout<[8, 64], [16, 4]>>) -> (%1: !tile.buffer<8x16xf32, "gm", #tile.layout<[8, 64], [16, 4]>>) {
  %2 = tile.alloc {offset = 64 : i64} : !tile.buffer<8x16xf32, "scratchpad", #tile.layout<[8, 64], [16, 4]>>
  tile.load %0, %2 {map = affine_map<(d0, d1) -> (d0, d1)>, valid = affine_map<() -> (8, 16)>, into}
  tile.map %2, %2 {fn = "exp", into}
  tile.store %2, %1 {map = affine_map<(d0, d1) -> (d0, d1)>, valid = affine_map<() -> (8, 16)>}
}
// CHECK:      hardware.kernel @k
// CHECK-NEXT:   [[B:%.*]] = hardware.buffer {offset = 64 : i64, role = "local"} : !tile.buffer<8x16xf32, "scratchpad"
// CHECK-NEXT:   [[S:%.*]] = hardware.view %0
// CHECK-NEXT:   [[D:%.*]] = hardware.view [[B]]
// CHECK-NEXT:   hardware.dma [[S]], [[D]] {engine = "load", fresh}
// CHECK:        hardware.vector {{.*}} {fn = "exp", engine = "vector"}
// CHECK:        hardware.dma {{.*}} {engine = "store"}

// -----

tile.kernel @unplanned(%0: !tile.buffer<8x16xf32, "gm", #tile.layout<[8, 64], [16, 4]>>) -> (%1: !tile.buffer<8x16xf32, "gm", #tile.layout<[8, 64], [16, 4]>>) {
  // expected-error@+1 {{buffer (8x16xf32) has no offset}}
  %2 = tile.alloc : !tile.buffer<8x16xf32, "scratchpad", #tile.layout<[8, 64], [16, 4]>>
  tile.load %0, %2 {map = affine_map<(d0, d1) -> (d0, d1)>, valid = affine_map<() -> (8, 16)>, into}
  tile.store %2, %1 {map = affine_map<(d0, d1) -> (d0, d1)>, valid = affine_map<() -> (8, 16)>}
}
