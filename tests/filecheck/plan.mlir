// RUN: tilewright opt %s -p plan --target 'unified{memory.scratchpad.bytes=512}' --split-input-file --verify-diagnostics | filecheck %s

// Two buffers that are needed one after the other share their bytes.
tile.kernel @k(%0: !tile.buffer<8x16xf32, "gm", #tile.layout<[8, 64], [16, 4]>>) -> (%1: !tile.buffer<8x16xf32, "gm", #tile.layout<[8, 64], [16, 4]>>, %2: !tile.buffer<8x16xf32, "gm", #tile.layout<[8, 64], [16, 4]>>) {
  %3 = tile.alloc : !tile.buffer<8x16xf32, "scratchpad", #tile.layout<[8, 64], [16, 4]>>
  tile.load %0, %3 {map = affine_map<(d0, d1) -> (d0, d1)>, valid = affine_map<() -> (8, 16)>, into}
  tile.store %3, %1 {map = affine_map<(d0, d1) -> (d0, d1)>, valid = affine_map<() -> (8, 16)>}
  %4 = tile.alloc : !tile.buffer<8x16xf32, "scratchpad", #tile.layout<[8, 64], [16, 4]>>
  tile.load %0, %4 {map = affine_map<(d0, d1) -> (d0, d1)>, valid = affine_map<() -> (8, 16)>, into}
  tile.store %4, %2 {map = affine_map<(d0, d1) -> (d0, d1)>, valid = affine_map<() -> (8, 16)>}
}
// CHECK:      tile.kernel @k({{.*}}tilewright.memory = {scratchpad = [512 : i64, 512 : i64]}
// CHECK-NEXT:   tile.alloc {offset = 0 : i64} : !tile.buffer<8x16xf32
// CHECK:        tile.alloc {offset = 0 : i64} : !tile.buffer<8x16xf32

// -----

// Both at once are more than there is.
// expected-error-re@+1 {{1024 .*512}}
tile.kernel @large(%0: !tile.buffer<8x16xf32, "gm", #tile.layout<[8, 64], [16, 4]>>) -> (%1: !tile.buffer<8x16xf32, "gm", #tile.layout<[8, 64], [16, 4]>>, %2: !tile.buffer<8x16xf32, "gm", #tile.layout<[8, 64], [16, 4]>>) {
  %3 = tile.alloc : !tile.buffer<8x16xf32, "scratchpad", #tile.layout<[8, 64], [16, 4]>>
  tile.load %0, %3 {map = affine_map<(d0, d1) -> (d0, d1)>, valid = affine_map<() -> (8, 16)>, into}
  %4 = tile.alloc : !tile.buffer<8x16xf32, "scratchpad", #tile.layout<[8, 64], [16, 4]>>
  tile.load %0, %4 {map = affine_map<(d0, d1) -> (d0, d1)>, valid = affine_map<() -> (8, 16)>, into}
  tile.store %3, %1 {map = affine_map<(d0, d1) -> (d0, d1)>, valid = affine_map<() -> (8, 16)>}
  tile.store %4, %2 {map = affine_map<(d0, d1) -> (d0, d1)>, valid = affine_map<() -> (8, 16)>}
}
