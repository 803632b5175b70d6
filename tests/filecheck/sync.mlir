// RUN: tilewright opt %s -p sync --target unified --split-input-file --verify-diagnostics | filecheck %s

// Load, compute in place, store: each waits for the one before it, and for nothing else.
hardware.kernel @k(%0: !tile.buffer<8x16xf32, "gm", #tile.layout<[8, 64], [16, 4]>>, %1: !tile.buffer<8x16xf32, "gm", #tile.layout<[8, 64], [16, 4]>>) {
  %2 = hardware.buffer {offset = 0 : i64, role = "local"} : !tile.buffer<8x16xf32, "scratchpad", #tile.layout<[8, 64], [16, 4]>>
  %3 = hardware.view %0 {offset = affine_map<() -> (0)>, layout = #tile.layout<[8, 64], [16, 4]>} : !hardware.view<8x16xf32, "gm">
  %4 = hardware.view %2 {offset = affine_map<() -> (0)>, layout = #tile.layout<[8, 64], [16, 4]>} : !hardware.view<8x16xf32, "scratchpad">
  hardware.dma %3, %4 {engine = "load", fresh}
  hardware.vector %4, %4 {fn = "exp", engine = "vector"}
  %5 = hardware.view %1 {offset = affine_map<() -> (0)>, layout = #tile.layout<[8, 64], [16, 4]>} : !hardware.view<8x16xf32, "gm">
  hardware.dma %4, %5 {engine = "store"}
}
// CHECK:      hardware.kernel @k
// CHECK:        hardware.dma {{.*}} {engine = "load", fresh}
// CHECK-NEXT:   hardware.signal {event = 0 : i64, from = "load", to = "vector"}
// CHECK-NEXT:   hardware.wait {event = 0 : i64, from = "load", to = "vector"}
// CHECK-NEXT:   hardware.vector {{.*}} {fn = "exp", engine = "vector"}
// CHECK-NEXT:   hardware.signal {event = 0 : i64, from = "vector", to = "store"}
// CHECK:        hardware.wait {event = 0 : i64, from = "vector", to = "store"}
// CHECK-NEXT:   hardware.dma {{.*}} {engine = "store"}
// CHECK-NOT:    hardware.signal

// -----

// A program for another machine.
hardware.kernel @foreign(%0: !tile.buffer<8x16xf32, "gm", #tile.layout<[8, 64], [16, 4]>>) {
  %2 = hardware.buffer {offset = 0 : i64, role = "local"} : !tile.buffer<8x16xf32, "scratchpad", #tile.layout<[8, 64], [16, 4]>>
  %3 = hardware.view %0 {offset = affine_map<() -> (0)>, layout = #tile.layout<[8, 64], [16, 4]>} : !hardware.view<8x16xf32, "gm">
  %4 = hardware.view %2 {offset = affine_map<() -> (0)>, layout = #tile.layout<[8, 64], [16, 4]>} : !hardware.view<8x16xf32, "scratchpad">
  // expected-error@+1 {{target 'unified' has no engine 'mte2'}}
  hardware.dma %3, %4 {engine = "mte2", fresh}
}
