// tilewright 0.1.0 failed in this command:
//   tilewright run examples/softmax_rows.mlir --target unified --random 0
// To see it again:
//   tilewright compile tilewright-crash-wxxxs8mh.mlir -p schedule,tile,place,bufferize,plan,emit,sync
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
  func.func @softmax_rows(%x: tensor<300x1000xf16>) -> tensor<300x1000xf16> {
    %y = graph.fused %x : tensor<300x1000xf16> ({
    ^bb0(%x_1: tensor<300x1000xf16>):
      %0 = graph.reduce %x_1 {monoid = "max", axes = array<i64: 1>, origin = 0 : i64} : tensor<300x1xf32>
      %1 = graph.map %x_1, %0 {fn = "sub", origin = 0 : i64} : tensor<300x1000xf32>
      %2 = graph.map %1 {fn = "exp", origin = 0 : i64} : tensor<300x1000xf32>
      %3 = graph.reduce %2 {monoid = "sum", axes = array<i64: 1>, origin = 0 : i64} : tensor<300x1xf32>
      %y_1 = graph.map %2, %3 {fn = "div", origin = 0 : i64} : tensor<300x1000xf16>
      graph.yield %y_1
    })
    func.return %y : tensor<300x1000xf16>
  }
}
