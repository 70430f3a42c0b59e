-- executions_wide: each execution with its operator call, step, launching call and device: most questions need no join.
-- grain: one row per kernel, memcpy, memset or whole-graph execution of the capture
-- reads: gpu_executions, operator_calls, steps, api_calls, devices
-- stored: view
-- columns:
--   trace_id BIGINT - capture
--   gpu_execution_id BIGINT - execution
--   kind VARCHAR - kernel, memcpy, memset or graph
--   execution_class VARCHAR - compute, copy or communication
--   name VARCHAR - short name
--   kernel_class VARCHAR - class by the name's rules
--   start_ns BIGINT ns start
--   end_ns BIGINT ns end
--   duration_ns BIGINT ns end - start
--   exclusive_ns DOUBLE ns share of compute time
--   stream_id BIGINT - stream
--   process_id BIGINT - process
--   device_id BIGINT - device
--   device_name VARCHAR - GPU
--   operator VARCHAR - operator
--   direction VARCHAR - forward, backward, update or ''
--   attribution VARCHAR - how the operator was found
--   path VARCHAR[] - ranges open at the launch, outermost first
--   step BIGINT - step by launch
--   step_label VARCHAR - text that marks the step
--   phase VARCHAR - phase of the step
--   shapes VARCHAR - sizes of the arguments of the call
--   dtype VARCHAR - type of the call
--   call_flop DOUBLE FLOP model FLOP of the whole call
--   call_bytes DOUBLE B fused bytes of the whole call
--   call_busy_ns BIGINT ns union of the executions of the call
--   call_sol_pct DOUBLE % T_SOL at the datasheet of the call, of its busy time
--   call_sol_measured_pct DOUBLE % T_SOL at the measured ceilings
--   api_name VARCHAR - launching call
--   launch_start_ns BIGINT ns start of the launching call
--   launch_to_start_ns BIGINT ns from the start of the call to that of the execution
SELECT
    executions.trace_id, executions.gpu_execution_id, executions.kind, executions.execution_class, executions.name,
    executions.kernel_class, executions.start_ns, executions.end_ns,
    executions.end_ns - executions.start_ns AS duration_ns,
    executions.exclusive_ns, executions.stream_id, executions.process_id, executions.device_id, devices.device_name,
    executions.operator, executions.direction, executions.attribution, executions.path, executions.step, steps.step_label,
    executions.phase, calls.shapes, calls.dtype, calls.flop AS call_flop, calls.bytes AS call_bytes, calls.busy_ns AS call_busy_ns,
    if(calls.busy_ns > 0, 100 * calls.ideal_ns / calls.busy_ns, NULL) AS call_sol_pct,
    if(calls.busy_ns > 0, 100 * calls.ideal_measured_ns / calls.busy_ns, NULL) AS call_sol_measured_pct,
    api_calls.api_name, api_calls.start_ns AS launch_start_ns,
    executions.start_ns - api_calls.start_ns AS launch_to_start_ns
FROM gpu_executions AS executions
LEFT JOIN operator_calls AS calls
    ON executions.trace_id = calls.trace_id AND executions.operator_call_id = calls.operator_call_id
LEFT JOIN steps
    ON
        executions.trace_id = steps.trace_id
        AND executions.process_id = steps.process_id
        AND executions.step = steps.step
LEFT JOIN api_calls ON executions.trace_id = api_calls.trace_id AND executions.api_call_id = api_calls.api_call_id
LEFT JOIN devices ON executions.trace_id = devices.trace_id AND executions.device_id = devices.device_id
