// Softmax over rows whose length is no multiple of any block.
func.func @softmax_rows(%x: tensor<300x1000xf16>) -> tensor<300x1000xf16> {
  %y = graph.softmax %x {axis = -1 : i64} : tensor<300x1000xf16>
  func.return %y : tensor<300x1000xf16>
}
