// RUN: tilewright opt %s -p stages --target unified --split-input-file --verify-diagnostics | filecheck %s

// Two stages, the product one iteration ahead: what it makes has a slot more, what it alone uses has not.
tile.kernel @main_0(%0: !tile.buffer<48x16xf16, "gm", #tile.layout<[48, 32], [16, 2]>>, %1: !tile.buffer<16x16xf16, "gm", #tile.layout<[16, 32], [16, 2]>>) -> (%2: !tile.buffer<48x16xf32, "gm", #tile.layout<[48, 64], [16, 4]>>) attributes {schedule = {skew = array<i64: 1, 0>}} {
  %3 = tile.alloc : !tile.buffer<16x16xf16, "scratchpad", #tile.layout<[16, 32], [16, 2]>>
  tile.load %1, %3 {map = affine_map<(d0, d1) -> (d1, d0)>, valid = affine_map<() -> (16, 16)>, into}
  tile.for %a = 0 to 3 {axis = "a", kind = "grid"} {
    %4 = tile.alloc : !tile.buffer<16x16xf16, "scratchpad", #tile.layout<[16, 32], [16, 2]>>
    tile.load %0, %a, %4 {map = affine_map<(d0, d1, d2) -> (((d0 * 16) + d1), d2)>, valid = affine_map<(d0) -> (((d0 * -16) + 48), 16)>, into}
    %5 = tile.alloc : !tile.buffer<16x16xf32, "scratchpad", #tile.layout<[16, 64], [16, 4]>>
    tile.contract %4, %3, %5 {spec = "ac,bc->ab", into}
    tile.map %5, %5 {fn = "exp", into}
    tile.store %5, %2, %a {map = affine_map<(d0, d1, d2) -> (((d0 * 16) + d1), d2)>, valid = affine_map<(d0) -> (((d0 * -16) + 48), 16)>}
    tile.yield
  }
}
func.func @main(%0: !tile.buffer<48x16xf16, "gm", #tile.layout<[48, 32], [16, 2]>>, %1: !tile.buffer<16x16xf16, "gm", #tile.layout<[16, 32], [16, 2]>>, %out0: !tile.buffer<48x16xf32, "gm", #tile.layout<[48, 64], [16, 4]>>) attributes {tilewright.outputs = 1 : i64} {
  tile.launch %0, %1, %out0 {callee = @main_0, into}
  func.return
}
// CHECK:      tile.for %a = 0 to 3
// CHECK-NEXT:   [[X:%.*]] = tile.alloc : !tile.buffer<16x16xf16
// CHECK-NEXT:   tile.load %0, %a, [[X]] {{.*}}tilewright.ahead = 1 : i64}
// CHECK-NEXT:   [[P:%.*]] = tile.alloc {slots = 2 : i64} : !tile.buffer<16x16xf32
// CHECK-NEXT:   tile.contract [[X]], {{.*}}, [[P]] {{.*}}tilewright.ahead = 1 : i64}
// CHECK-NEXT:   tile.map [[P]], [[P]] {fn = "exp", into}
// CHECK-NEXT:   tile.store [[P]], {{.*}}affine_map<(d0) -> (((d0 * -16) + 48), 16)>}

// -----

// The elementwise stage cannot run ahead of the product that it reads.
tile.kernel @main_0(%0: !tile.buffer<48x16xf16, "gm", #tile.layout<[48, 32], [16, 2]>>, %1: !tile.buffer<16x16xf16, "gm", #tile.layout<[16, 32], [16, 2]>>) -> (%2: !tile.buffer<48x16xf32, "gm", #tile.layout<[48, 64], [16, 4]>>) attributes {schedule = {skew = array<i64: 0, 1>}} {
  %3 = tile.alloc : !tile.buffer<16x16xf16, "scratchpad", #tile.layout<[16, 32], [16, 2]>>
  tile.load %1, %3 {map = affine_map<(d0, d1) -> (d1, d0)>, valid = affine_map<() -> (16, 16)>, into}
  tile.for %a = 0 to 3 {axis = "a", kind = "grid"} {
    %4 = tile.alloc : !tile.buffer<16x16xf16, "scratchpad", #tile.layout<[16, 32], [16, 2]>>
    tile.load %0, %a, %4 {map = affine_map<(d0, d1, d2) -> (((d0 * 16) + d1), d2)>, valid = affine_map<(d0) -> (((d0 * -16) + 48), 16)>, into}
    %5 = tile.alloc : !tile.buffer<16x16xf32, "scratchpad", #tile.layout<[16, 64], [16, 4]>>
    tile.contract %4, %3, %5 {spec = "ac,bc->ab", into}
    // expected-error@+1 {{'tile.map' runs 1 iterations ahead and uses what is made only 0 ahead}}
    tile.map %5, %5 {fn = "exp", into}
    tile.store %5, %2, %a {map = affine_map<(d0, d1, d2) -> (((d0 * 16) + d1), d2)>, valid = affine_map<(d0) -> (((d0 * -16) + 48), 16)>}
    tile.yield
  }
}

// -----

// expected-error@+1 {{schedule 'skew' has an entry for each of 2 stages, got 3 (loop 'a': matrix, vector)}}
tile.kernel @main_0(%0: !tile.buffer<48x16xf16, "gm", #tile.layout<[48, 32], [16, 2]>>, %1: !tile.buffer<16x16xf16, "gm", #tile.layout<[16, 32], [16, 2]>>) -> (%2: !tile.buffer<48x16xf32, "gm", #tile.layout<[48, 64], [16, 4]>>) attributes {schedule = {skew = array<i64: 1, 0, 0>}} {
  %3 = tile.alloc : !tile.buffer<16x16xf16, "scratchpad", #tile.layout<[16, 32], [16, 2]>>
  tile.load %1, %3 {map = affine_map<(d0, d1) -> (d1, d0)>, valid = affine_map<() -> (16, 16)>, into}
  tile.for %a = 0 to 3 {axis = "a", kind = "grid"} {
    %4 = tile.alloc : !tile.buffer<16x16xf16, "scratchpad", #tile.layout<[16, 32], [16, 2]>>
    tile.load %0, %a, %4 {map = affine_map<(d0, d1, d2) -> (((d0 * 16) + d1), d2)>, valid = affine_map<(d0) -> (((d0 * -16) + 48), 16)>, into}
    %5 = tile.alloc : !tile.buffer<16x16xf32, "scratchpad", #tile.layout<[16, 64], [16, 4]>>
    tile.contract %4, %3, %5 {spec = "ac,bc->ab", into}
    tile.map %5, %5 {fn = "exp", into}
    tile.store %5, %2, %a {map = affine_map<(d0, d1, d2) -> (((d0 * 16) + d1), d2)>, valid = affine_map<(d0) -> (((d0 * -16) + 48), 16)>}
    tile.yield
  }
}
