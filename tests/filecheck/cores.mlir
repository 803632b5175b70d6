// RUN: tilewright opt %s -p cores --target 'davinci{cores=8}' --split-input-file --verify-diagnostics | filecheck %s

// Six iterations among four cores: one or two each. What stands outside of the loop every core does.
hardware.kernel @main_0(%0: !tile.buffer<96xf32, "gm", #tile.layout<[96, 4]>>, %1: !tile.buffer<96xf32, "gm", #tile.layout<[96, 4]>>) {
  %2 = hardware.buffer {offset = 0 : i64, role = "local"} : !tile.buffer<16xf32, "ub", #tile.layout<[16, 4]>>
  %3 = hardware.view %2 {offset = affine_map<() -> (0)>, layout = #tile.layout<[16, 4]>} : !hardware.view<16xf32, "ub">
  hardware.fill %3 {value = 1.0 : f32, engine = "vector"}
  hardware.for %a = 0 to 6 {axis = "a", tilewright.cores = 4 : i64} {
    %4 = hardware.view %1, %a {offset = affine_map<(d0) -> ((d0 * 64))>, layout = #tile.layout<[16, 4]>} : !hardware.view<16xf32, "gm">
    hardware.dma %3, %4 {engine = "mte3"}
  }
}
// CHECK:      hardware.kernel
// CHECK-NEXT: hardware.buffer
// CHECK-NEXT: hardware.for %core_a = 0 to 4 {core} {
// CHECK-NEXT:   hardware.view
// CHECK-NEXT:   hardware.fill
// CHECK-NEXT:   hardware.for %a = affine_map<(d0) -> (((d0 * 6) floordiv 4))>(%core_a) to affine_map<(d0) -> ((((d0 * 6) + 6) floordiv 4))>(%core_a) {axis = "a"} {

// -----

// Loops over two axes: two loops over cores. Equal shares begin at a multiple.
hardware.kernel @main_0(%0: !tile.buffer<8x48xf32, "gm", #tile.layout<[8, 192], [48, 4]>>) {
  %1 = hardware.buffer {offset = 0 : i64, role = "local"} : !tile.buffer<16xf32, "ub", #tile.layout<[16, 4]>>
  hardware.for %a = 0 to 8 {axis = "a", tilewright.cores = 4 : i64} {
    hardware.for %b = 0 to 3 {axis = "b", tilewright.cores = 2 : i64} {
      %2 = hardware.view %1 {offset = affine_map<() -> (0)>, layout = #tile.layout<[16, 4]>} : !hardware.view<16xf32, "ub">
      hardware.fill %2 {value = 1.0 : f32, engine = "vector"}
      %3 = hardware.view %0, %a, %b {offset = affine_map<(d0, d1) -> ((d0 * 192 + d1 * 64))>, layout = #tile.layout<[16, 4]>} : !hardware.view<16xf32, "gm">
      hardware.dma %2, %3 {engine = "mte3"}
    }
  }
}
// CHECK:      hardware.for %core_a = 0 to 4 {core} {
// CHECK-NEXT:   hardware.for %core_b = 0 to 2 {core} {
// CHECK-NEXT:     hardware.for %a = affine_map<(d0) -> ((d0 * 2))>(%core_a)
// CHECK-NEXT:       hardware.for %b = affine_map<(d0) -> (((d0 * 3) floordiv 2))>(%core_b)

// -----

// expected-error@+1 {{the kernel is divided among 9 cores, the target has 8}}
hardware.kernel @main_0(%0: !tile.buffer<144xf32, "gm", #tile.layout<[144, 4]>>) {
  %1 = hardware.buffer {offset = 0 : i64, role = "local"} : !tile.buffer<16xf32, "ub", #tile.layout<[16, 4]>>
  hardware.for %a = 0 to 9 {axis = "a", tilewright.cores = 9 : i64} {
    %2 = hardware.view %1 {offset = affine_map<() -> (0)>, layout = #tile.layout<[16, 4]>} : !hardware.view<16xf32, "ub">
    hardware.fill %2 {value = 1.0 : f32, engine = "vector"}
    %3 = hardware.view %0, %a {offset = affine_map<(d0) -> ((d0 * 64))>, layout = #tile.layout<[16, 4]>} : !hardware.view<16xf32, "gm">
    hardware.dma %2, %3 {engine = "mte3"}
  }
}

// -----

hardware.kernel @main_0(%0: !tile.buffer<128xf32, "gm", #tile.layout<[128, 4]>>) {
  %1 = hardware.buffer {offset = 0 : i64, role = "local"} : !tile.buffer<16xf32, "ub", #tile.layout<[16, 4]>>
  %2 = hardware.view %1 {offset = affine_map<() -> (0)>, layout = #tile.layout<[16, 4]>} : !hardware.view<16xf32, "ub">
  hardware.for %a = 0 to 8 {axis = "a", tilewright.cores = 4 : i64} {
    hardware.fill %2 {value = 1.0 : f32, engine = "vector"}
  }
  // expected-error@+1 {{the loops over axis "a" are divided among 4 and among 2 cores}}
  hardware.for %a = 0 to 8 {axis = "a", tilewright.cores = 2 : i64} {
    %3 = hardware.view %0, %a {offset = affine_map<(d0) -> ((d0 * 64))>, layout = #tile.layout<[16, 4]>} : !hardware.view<16xf32, "gm">
    hardware.dma %2, %3 {engine = "mte3"}
  }
}

// -----

// A loop over cores stands around everything.
hardware.kernel @main_0(%0: !tile.buffer<128xf32, "gm", #tile.layout<[128, 4]>>) {
  %1 = hardware.buffer {offset = 0 : i64, role = "local"} : !tile.buffer<16xf32, "ub", #tile.layout<[16, 4]>>
  %2 = hardware.view %1 {offset = affine_map<() -> (0)>, layout = #tile.layout<[16, 4]>} : !hardware.view<16xf32, "ub">
  // expected-error@+1 {{'hardware.for' over cores stands around everything in the kernel but its buffers}}
  hardware.for %a = 0 to 8 {core} {
    hardware.fill %2 {value = 1.0 : f32, engine = "vector"}
  }
}
