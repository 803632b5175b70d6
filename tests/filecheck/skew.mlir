// RUN: tilewright opt %s -p skew --target unified --split-input-file --verify-diagnostics | filecheck %s

// The product runs one iteration ahead of the exponential: it is made once before the loop and used once after it.
hardware.kernel @main_0(%0: !tile.buffer<48x16xf16, "gm", #tile.layout<[48, 32], [16, 2]>>, %1: !tile.buffer<16x16xf16, "gm", #tile.layout<[16, 32], [16, 2]>>, %2: !tile.buffer<48x16xf32, "gm", #tile.layout<[48, 64], [16, 4]>>) {
  %3 = hardware.buffer {offset = 0 : i64, role = "local"} : !tile.buffer<16x16xf16, "scratchpad", #tile.layout<[16, 32], [16, 2]>>
  %4 = hardware.buffer {offset = 2560 : i64, role = "local"} : !tile.buffer<16x16xf16, "scratchpad", #tile.layout<[16, 32], [16, 2]>>
  %5 = hardware.buffer {offset = 512 : i64, slots = 2 : i64, role = "local"} : !tile.buffer<16x16xf32, "scratchpad", #tile.layout<[16, 64], [16, 4]>>
  %6 = hardware.view %1 {offset = affine_map<() -> (0)>, layout = #tile.layout<[16, 2], [16, 32]>} : !hardware.view<16x16xf16, "gm">
  %7 = hardware.view %3 {offset = affine_map<() -> (0)>, layout = #tile.layout<[16, 32], [16, 2]>} : !hardware.view<16x16xf16, "scratchpad">
  hardware.dma %6, %7 {engine = "load", fresh}
  hardware.for %a = 0 to 3 {axis = "a"} {
    %8 = hardware.view %0, %a {offset = affine_map<(d0) -> ((d0 * 512))>, layout = #tile.layout<[16, 32], [16, 2]>, tilewright.ahead = 1 : i64} : !hardware.view<16x16xf16, "gm">
    %9 = hardware.view %4 {offset = affine_map<() -> (0)>, layout = #tile.layout<[16, 32], [16, 2]>, tilewright.ahead = 1 : i64} : !hardware.view<16x16xf16, "scratchpad">
    hardware.dma %8, %9 {engine = "load", fresh, tilewright.ahead = 1 : i64}
    %10 = hardware.view %4 {offset = affine_map<() -> (0)>, layout = #tile.layout<[16, 32], [16, 2]>, tilewright.ahead = 1 : i64} : !hardware.view<16x16xf16, "scratchpad">
    %11 = hardware.view %3 {offset = affine_map<() -> (0)>, layout = #tile.layout<[16, 32], [16, 2]>, tilewright.ahead = 1 : i64} : !hardware.view<16x16xf16, "scratchpad">
    %12 = hardware.view %5, %a {offset = affine_map<(d0) -> (((d0 mod 2) * 1024))>, layout = #tile.layout<[16, 64], [16, 4]>, tilewright.ahead = 1 : i64} : !hardware.view<16x16xf32, "scratchpad">
    hardware.matmul %10, %11, %12 {spec = "ac,bc->ab", overwrite, engine = "matrix", fresh, tilewright.ahead = 1 : i64}
    %13 = hardware.view %5, %a {offset = affine_map<(d0) -> (((d0 mod 2) * 1024))>, layout = #tile.layout<[16, 64], [16, 4]>} : !hardware.view<16x16xf32, "scratchpad">
    %14 = hardware.view %5, %a {offset = affine_map<(d0) -> (((d0 mod 2) * 1024))>, layout = #tile.layout<[16, 64], [16, 4]>} : !hardware.view<16x16xf32, "scratchpad">
    hardware.vector %13, %14 {fn = "exp", engine = "vector"}
    %15 = hardware.view %5, %a {offset = affine_map<(d0) -> (((d0 mod 2) * 1024))>, layout = #tile.layout<[16, 64], [16, 4]>} : !hardware.view<16x16xf32, "scratchpad">
    %16 = hardware.view %2, %a {offset = affine_map<(d0) -> ((d0 * 1024))>, layout = #tile.layout<[16, 64], [16, 4]>} : !hardware.view<16x16xf32, "gm">
    hardware.dma %15, %16 {engine = "store"}
  }
}
// CHECK:      hardware.matmul
// CHECK:      hardware.for %a = 0 to 2
// CHECK-NEXT:   hardware.view %0, %a {offset = affine_map<(d0) -> (((d0 * 512) + 512))>
// CHECK:        hardware.view [[P:%.*]], %a {offset = affine_map<(d0) -> ((((d0 + 1) mod 2) * 1024))>
// CHECK-NEXT:   hardware.matmul {{.*}} {spec = "ac,bc->ab", overwrite, engine = "matrix", fresh}
// CHECK-NEXT:   hardware.view [[P]], %a {offset = affine_map<(d0) -> (((d0 mod 2) * 1024))>
// CHECK:        hardware.vector
// CHECK:        hardware.dma {{.*}} {engine = "store"}
// CHECK-NEXT: }
// CHECK-NEXT: hardware.view [[P]] {offset = affine_map<() -> (0)>
// CHECK:      hardware.vector {{.*}} {fn = "exp", engine = "vector"}
// CHECK:      hardware.view %2 {offset = affine_map<() -> (2048)>
// CHECK-NEXT: hardware.dma {{.*}} {engine = "store"}

// -----

// One slot does not hold what two iterations use at a time.
hardware.kernel @main_0(%0: !tile.buffer<48x16xf16, "gm", #tile.layout<[48, 32], [16, 2]>>, %1: !tile.buffer<16x16xf16, "gm", #tile.layout<[16, 32], [16, 2]>>, %2: !tile.buffer<48x16xf32, "gm", #tile.layout<[48, 64], [16, 4]>>) {
  %3 = hardware.buffer {offset = 0 : i64, role = "local"} : !tile.buffer<16x16xf16, "scratchpad", #tile.layout<[16, 32], [16, 2]>>
  %4 = hardware.buffer {offset = 2560 : i64, role = "local"} : !tile.buffer<16x16xf16, "scratchpad", #tile.layout<[16, 32], [16, 2]>>
  %5 = hardware.buffer {offset = 512 : i64, role = "local"} : !tile.buffer<16x16xf32, "scratchpad", #tile.layout<[16, 64], [16, 4]>>
  %6 = hardware.view %1 {offset = affine_map<() -> (0)>, layout = #tile.layout<[16, 2], [16, 32]>} : !hardware.view<16x16xf16, "gm">
  %7 = hardware.view %3 {offset = affine_map<() -> (0)>, layout = #tile.layout<[16, 32], [16, 2]>} : !hardware.view<16x16xf16, "scratchpad">
  hardware.dma %6, %7 {engine = "load", fresh}
  hardware.for %a = 0 to 3 {axis = "a"} {
    %8 = hardware.view %0, %a {offset = affine_map<(d0) -> ((d0 * 512))>, layout = #tile.layout<[16, 32], [16, 2]>, tilewright.ahead = 1 : i64} : !hardware.view<16x16xf16, "gm">
    %9 = hardware.view %4 {offset = affine_map<() -> (0)>, layout = #tile.layout<[16, 32], [16, 2]>, tilewright.ahead = 1 : i64} : !hardware.view<16x16xf16, "scratchpad">
    hardware.dma %8, %9 {engine = "load", fresh, tilewright.ahead = 1 : i64}
    %10 = hardware.view %4 {offset = affine_map<() -> (0)>, layout = #tile.layout<[16, 32], [16, 2]>, tilewright.ahead = 1 : i64} : !hardware.view<16x16xf16, "scratchpad">
    %11 = hardware.view %3 {offset = affine_map<() -> (0)>, layout = #tile.layout<[16, 32], [16, 2]>, tilewright.ahead = 1 : i64} : !hardware.view<16x16xf16, "scratchpad">
    %12 = hardware.view %5, %a {offset = affine_map<(d0) -> (((d0 mod 2) * 1024))>, layout = #tile.layout<[16, 64], [16, 4]>, tilewright.ahead = 1 : i64} : !hardware.view<16x16xf32, "scratchpad">
    // expected-error@+1 {{a buffer of 1 slot is used 1 and 0 iterations ahead: it has to hold 2 iterations at a time}}
    hardware.matmul %10, %11, %12 {spec = "ac,bc->ab", overwrite, engine = "matrix", fresh, tilewright.ahead = 1 : i64}
    %13 = hardware.view %5, %a {offset = affine_map<(d0) -> (((d0 mod 2) * 1024))>, layout = #tile.layout<[16, 64], [16, 4]>} : !hardware.view<16x16xf32, "scratchpad">
    %14 = hardware.view %5, %a {offset = affine_map<(d0) -> (((d0 mod 2) * 1024))>, layout = #tile.layout<[16, 64], [16, 4]>} : !hardware.view<16x16xf32, "scratchpad">
    hardware.vector %13, %14 {fn = "exp", engine = "vector"}
    %15 = hardware.view %5, %a {offset = affine_map<(d0) -> (((d0 mod 2) * 1024))>, layout = #tile.layout<[16, 64], [16, 4]>} : !hardware.view<16x16xf32, "scratchpad">
    %16 = hardware.view %2, %a {offset = affine_map<(d0) -> ((d0 * 1024))>, layout = #tile.layout<[16, 64], [16, 4]>} : !hardware.view<16x16xf32, "gm">
    hardware.dma %15, %16 {engine = "store"}
  }
}
