// A gate as an operator of one's own: the private function is its definition, its body is inlined and fused.
func.func private @gate(%a: tensor<96x160xf16>, %b: tensor<96x160xf16>) -> tensor<96x160xf16> {
  %s = graph.sigmoid %a : tensor<96x160xf16>
  %m = graph.mul %a, %s : tensor<96x160xf16>
  %g = graph.mul %m, %b : tensor<96x160xf16>
  func.return %g : tensor<96x160xf16>
}

func.func @gated_unit(%x: tensor<96x128xf16>, %w: tensor<128x160xf16>, %u: tensor<128x160xf16>) -> tensor<96x160xf16> {
  %a = graph.matmul %x, %w : tensor<96x160xf16>
  %b = graph.matmul %x, %u : tensor<96x160xf16>
  %y = func.call %a, %b {callee = @gate} : tensor<96x160xf16>
  func.return %y : tensor<96x160xf16>
}
