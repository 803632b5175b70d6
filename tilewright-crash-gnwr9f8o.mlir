// tilewright 0.1.0 failed in this command:
//   tilewright run examples/residual_layernorm_gelu.mlir --target unified --random 0
// To see it again:
//   tilewright compile tilewright-crash-gnwr9f8o.mlir -p schedule,tile,place,bufferize,plan,emit,sync
//
// Traceback (most recent call last):
//   File "/work/main/tilewright/cli.py", line 44, in invoke
//     cli.invoke(context)
//   File "/work/venv/lib/python3.11/site-packages/click/core.py", line 2054, in invoke
//     return _process_result(sub_ctx.command.invoke(sub_ctx))
//                            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
//   File "/work/venv/lib/python3.11/site-packages/click/core.py", line 1414, in invoke
//     return ctx.invoke(self.callback, **ctx.params)
//            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
//   File "/work/venv/lib/python3.11/site-packages/click/core.py", line 911, in invoke
//     return callback(*args, **kwargs)
//            ^^^^^^^^^^^^^^^^^^^^^^^^^
//   File "/work/venv/lib/python3.11/site-packages/click/decorators.py", line 46, in new_func
//     return f(get_current_context().obj, *args, **kwargs)
//            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
//   File "/work/main/tilewright/cli_run.py", line 69, in run_command
//     program = compile(file, target, objective=objective, unfused=unfused, dims=dims, to=level, watch=session.watch)
//               ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
//   File "/work/main/tilewright/api.py", line 75, in compile
//     run_pipeline(op, passes, after=after)
//   File "/work/main/lowering/pipeline.py", line 164, in run_pipeline
//     step.apply(context, module)
//   File "/work/main/lowering/schedule.py", line 50, in apply
//     chosen[key] = self.choose(ctx, fused, costs, target)
//                   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
//   File "/work/main/lowering/schedule.py", line 62, in choose
//     cost = measure(ctx, fused, choice.schedule, target)
//            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
//   File "/work/main/lowering/measure.py", line 55, in measure
//     return Measured(result.read_bytes + result.write_bytes, result.cycles)
//                     ^^^^^^^^^^^^^^^^^
// AttributeError: 'MachineResult' object has no attribute 'read_bytes'
module attributes {tilewright.target = "unified"} {
  func.func @residual_layernorm_gelu(%x: tensor<256x1024xf16>, %residual: tensor<256x1024xf16>, %scale: tensor<1024xf16>, %bias: tensor<1024xf16>) -> tensor<256x1024xf16> {
    %y = graph.fused %x, %residual, %scale, %bias : tensor<256x1024xf16> ({
    ^bb0(%x_1: tensor<256x1024xf16>, %residual_1: tensor<256x1024xf16>, %scale_1: tensor<1024xf16>, %bias_1: tensor<1024xf16>):
      %sum = graph.map %x_1, %residual_1 {fn = "add", origin = 0 : i64} : tensor<256x1024xf16>
      %0 = graph.reduce %sum {monoid = "sum", axes = array<i64: 1>, origin = 1 : i64} : tensor<256x1xf32>
      %1 = graph.constant {value = dense<1.024000e+03> : tensor<f32>, origin = 1 : i64} : tensor<f32>
      %2 = graph.map %0, %1 {fn = "div", origin = 1 : i64} : tensor<256x1xf32>
      %3 = graph.map %sum, %2 {fn = "sub", origin = 1 : i64} : tensor<256x1024xf32>
      %4 = graph.map %3 {fn = "square", origin = 1 : i64} : tensor<256x1024xf32>
      %5 = graph.reduce %4 {monoid = "sum", axes = array<i64: 1>, origin = 1 : i64} : tensor<256x1xf32>
      %6 = graph.constant {value = dense<1.024000e+03> : tensor<f32>, origin = 1 : i64} : tensor<f32>
      %7 = graph.map %5, %6 {fn = "div", origin = 1 : i64} : tensor<256x1xf32>
      %8 = graph.constant {value = dense<1.000000e-05> : tensor<f32>, origin = 1 : i64} : tensor<f32>
      %9 = graph.map %7, %8 {fn = "add", origin = 1 : i64} : tensor<256x1xf32>
      %10 = graph.map %9 {fn = "rsqrt", origin = 1 : i64} : tensor<256x1xf32>
      %11 = graph.map %3, %10 {fn = "mul", origin = 1 : i64} : tensor<256x1024xf32>
      %12 = graph.map %11, %scale_1 {fn = "mul", origin = 1 : i64} : tensor<256x1024xf32>
      %norm = graph.map %12, %bias_1 {fn = "add", origin = 1 : i64} : tensor<256x1024xf16>
      %13 = graph.constant {value = dense<0.707106769> : tensor<f32>, origin = 2 : i64} : tensor<f32>
      %14 = graph.map %norm, %13 {fn = "mul", origin = 2 : i64} : tensor<256x1024xf32>
      %15 = graph.map %14 {fn = "erf", origin = 2 : i64} : tensor<256x1024xf32>
      %16 = graph.constant {value = dense<5.000000e-01> : tensor<f32>, origin = 2 : i64} : tensor<f32>
      %17 = graph.map %norm, %16 {fn = "mul", origin = 2 : i64} : tensor<256x1024xf32>
      %18 = graph.constant {value = dense<1.000000e+00> : tensor<f32>, origin = 2 : i64} : tensor<f32>
      %19 = graph.map %15, %18 {fn = "add", origin = 2 : i64} : tensor<256x1024xf32>
      %y_1 = graph.map %17, %19 {fn = "mul", origin = 2 : i64} : tensor<256x1024xf16>
      graph.yield %y_1
    })
    func.return %y : tensor<256x1024xf16>
  }
}
