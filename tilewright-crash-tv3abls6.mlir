// tilewright 0.1.0 failed in this command:
//   tilewright run examples/attention.mlir --target davinci --random 0
// To see it again:
//   tilewright compile tilewright-crash-tv3abls6.mlir -p schedule,tile,place,bufferize,plan,emit,sync
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
module attributes {tilewright.target = "davinci"} {
  func.func @attention(%q: tensor<8x512x64xf16>, %k: tensor<8x512x64xf16>, %v: tensor<8x512x64xf16>, %mask: tensor<512x512xf16>) -> tensor<8x512x64xf16> {
    %o = graph.fused %q, %k, %mask, %v : tensor<8x512x64xf16> ({
    ^bb0(%q_1: tensor<8x512x64xf16>, %k_1: tensor<8x512x64xf16>, %mask_1: tensor<512x512xf16>, %v_1: tensor<8x512x64xf16>):
      %scale = graph.constant dense<1.250000e-01> : tensor<f16>
      %s = graph.contract %q_1, %k_1 {spec = "amk,ank->amn", origin = 1 : i64} : tensor<8x512x512xf16>
      %t = graph.map %s, %scale {fn = "mul", origin = 2 : i64} : tensor<8x512x512xf16>
      %u = graph.map %t, %mask_1 {fn = "add", origin = 3 : i64} : tensor<8x512x512xf16>
      %0 = graph.reduce %u {monoid = "max", axes = array<i64: 2>, origin = 4 : i64} : tensor<8x512x1xf32>
      %1 = graph.map %u, %0 {fn = "sub", origin = 4 : i64} : tensor<8x512x512xf32>
      %2 = graph.map %1 {fn = "exp", origin = 4 : i64} : tensor<8x512x512xf32>
      %3 = graph.reduce %2 {monoid = "sum", axes = array<i64: 2>, origin = 4 : i64} : tensor<8x512x1xf32>
      %p = graph.map %2, %3 {fn = "div", origin = 4 : i64} : tensor<8x512x512xf16>
      %o_1 = graph.contract %p, %v_1 {spec = "amk,akn->amn", origin = 5 : i64} : tensor<8x512x64xf16>
      graph.yield %o_1
    })
    func.return %o : tensor<8x512x64xf16>
  }
}
