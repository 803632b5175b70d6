// tilewright 0.1.0 failed in this command:
//   tilewright run examples/mlp.mlir --target unified --random 0
// To see it again:
//   tilewright compile tilewright-crash-_1t49a4l.mlir -p schedule,tile,place,bufferize,plan,emit,sync
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
  func.func @mlp(%x: tensor<64x128xf16>, %w1: tensor<128x512xf16>, %b1: tensor<512xf16>, %w2: tensor<512x128xf16>, %b2: tensor<128xf16>) -> tensor<64x128xf16> {
    %y = graph.fused %x, %w1, %b1, %w2, %b2 : tensor<64x128xf16> ({
    ^bb0(%x_1: tensor<64x128xf16>, %w1_1: tensor<128x512xf16>, %b1_1: tensor<512xf16>, %w2_1: tensor<512x128xf16>, %b2_1: tensor<128xf16>):
      %p1 = graph.contract %x_1, %w1_1 {spec = "mk,kn->mn", origin = 0 : i64} : tensor<64x512xf16>
      %s1 = graph.map %p1, %b1_1 {fn = "add", origin = 1 : i64} : tensor<64x512xf16>
      %0 = graph.constant {value = dense<0.707106769> : tensor<f32>, origin = 2 : i64} : tensor<f32>
      %1 = graph.map %s1, %0 {fn = "mul", origin = 2 : i64} : tensor<64x512xf32>
      %2 = graph.map %1 {fn = "erf", origin = 2 : i64} : tensor<64x512xf32>
      %3 = graph.constant {value = dense<5.000000e-01> : tensor<f32>, origin = 2 : i64} : tensor<f32>
      %4 = graph.map %s1, %3 {fn = "mul", origin = 2 : i64} : tensor<64x512xf32>
      %5 = graph.constant {value = dense<1.000000e+00> : tensor<f32>, origin = 2 : i64} : tensor<f32>
      %6 = graph.map %2, %5 {fn = "add", origin = 2 : i64} : tensor<64x512xf32>
      %h = graph.map %4, %6 {fn = "mul", origin = 2 : i64} : tensor<64x512xf16>
      %p2 = graph.contract %h, %w2_1 {spec = "mk,kn->mn", origin = 3 : i64} : tensor<64x128xf16>
      %y_1 = graph.map %p2, %b2_1 {fn = "add", origin = 4 : i64} : tensor<64x128xf16>
      graph.yield %y_1
    })
    func.return %y : tensor<64x128xf16>
  }
}
