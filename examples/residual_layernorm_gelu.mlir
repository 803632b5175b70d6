// Residual connection, LayerNorm and GELU: rows stay on chip between the statistics and their use.
func.func @residual_layernorm_gelu(%x: tensor<256x1024xf16>, %residual: tensor<256x1024xf16>,
    %scale: tensor<1024xf16>, %bias: tensor<1024xf16>) -> tensor<256x1024xf16> {
  %sum = graph.add %x, %residual : tensor<256x1024xf16>
  %norm = graph.layer_norm %sum, %scale, %bias {axis = -1 : i64, epsilon = 1.0e-5 : f32} : tensor<256x1024xf16>
  %y = graph.gelu %norm : tensor<256x1024xf16>
  func.return %y : tensor<256x1024xf16>
}
