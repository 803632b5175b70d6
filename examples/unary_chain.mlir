// Three elementwise operations in a row: one kernel, the two intermediates never leave the chip.
func.func @unary_chain(%x: tensor<1000x257xf16>) -> tensor<1000x257xf16> {
  %a = graph.tanh %x : tensor<1000x257xf16>
  %b = graph.square %a : tensor<1000x257xf16>
  %y = graph.exp %b : tensor<1000x257xf16>
  func.return %y : tensor<1000x257xf16>
}
