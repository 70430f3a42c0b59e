-- gpu_executions: everything that a GPU executed, with the operator, range, step and call that it belongs to.
-- grain: one row per kernel, memcpy, memset or whole-graph execution of the capture
-- reads: _executions, _attributed, _call_ids, _sweep, _paths
-- columns:
--   trace_id BIGINT - capture
--   gpu_execution_id BIGINT - key within the trace
--   kind VARCHAR - kernel, memcpy, memset or graph
--   execution_class VARCHAR - compute (kernels, graphs, memsets, copies within one device), copy or communication
--   name VARCHAR - short name
--   demangled_name VARCHAR - name with template arguments
--   kernel_class VARCHAR - class by the name's rules, NULL for other kinds
--   name_dtype VARCHAR - type in the name, NULL when it has none
--   process_id BIGINT - process
--   device_id BIGINT - physical GPU
--   cuda_device BIGINT - CUDA ordinal within the process
--   stream_id BIGINT - stream
--   start_ns BIGINT ns start, NULL when the timestamps are invalid
--   end_ns BIGINT ns end, NULL when the timestamps are invalid
--   is_valid BOOLEAN - false: in no sum
--   correlation_id BIGINT - CUPTI correlation id, unique within a process only
--   api_call_id BIGINT - launching call, NULL when the capture has none
--   graph_node_id BIGINT - node of a CUDA graph
--   grid_x BIGINT - grid
--   grid_y BIGINT - grid
--   grid_z BIGINT - grid
--   block_x BIGINT - block
--   block_y BIGINT - block
--   block_z BIGINT - block
--   registers_per_thread BIGINT - registers
--   shared_memory_bytes BIGINT B static and dynamic shared memory of a block
--   copied_bytes BIGINT B bytes copied or set
--   range_id BIGINT - innermost range at the launch, over all domains
--   range_ids BIGINT[] - ranges open at the launch on its thread, outermost first
--   path VARCHAR[] - their names
--   operator_call_id BIGINT - operator call
--   operator_range_id BIGINT - range that names the operator
--   cost_range_id BIGINT - range whose declared or derived cost covers the execution
--   is_covered BOOLEAN - a cost encloses the execution, but it covers costed ranges inside and not this rest
--   graph_launch_id BIGINT - launching call when operator and cost come from the capture of a graph
--   step BIGINT - step by launch, NULL outside steps
--   phase VARCHAR - phase of the step, '' outside
--   operator VARCHAR - operator; '(unattributed)', '(library)' or '(step)' when no range names one
--   direction VARCHAR - forward, backward, update; '' for the '(..)' names
--   attribution VARCHAR - thread, sequence (autograd), phase (another thread), graph (where it was captured) or none
--   exclusive_ns DOUBLE ns share of compute time: 1/n of each slice in which n compute executions run; 0 for other classes
SELECT
    _executions.trace_id, _executions.gpu_execution_id, kind, execution_class, name, demangled_name, kernel_class, name_dtype,
    _executions.process_id, _executions.device_id, cuda_device, stream_id, _executions.start_ns, _executions.end_ns, is_valid,
    correlation_id, _attributed.api_call_id, graph_node_id, grid_x, grid_y, grid_z, block_x, block_y, block_z,
    registers_per_thread, shared_memory_bytes, copied_bytes, _attributed.range_id,
    coalesce(_attributed.range_ids, []) AS range_ids,
    coalesce(_paths.path, []) AS path,
    _call_ids.operator_call_id,
    operator_range_id, cost_range_id, is_covered, graph_launch_id, step, phase, operator, direction, attribution,
    CASE
        WHEN execution_class = 'compute' THEN coalesce(after.share_ns - before.share_ns, 0)
        ELSE 0
    END AS exclusive_ns
FROM _executions
INNER JOIN _attributed
    ON _executions.trace_id = _attributed.trace_id AND _executions.gpu_execution_id = _attributed.gpu_execution_id
INNER JOIN _call_ids
    ON _executions.trace_id = _call_ids.trace_id AND _executions.gpu_execution_id = _call_ids.gpu_execution_id
LEFT JOIN _paths ON _attributed.name_ids = _paths.name_ids
LEFT JOIN _sweep AS before
    ON
        _executions.trace_id = before.trace_id
        AND _executions.process_id = before.process_id
        AND _executions.device_id = before.device_id
        AND _executions.start_ns = before.at_ns
LEFT JOIN _sweep AS after
    ON
        _executions.trace_id = after.trace_id
        AND _executions.process_id = after.process_id
        AND _executions.device_id = after.device_id
        AND _executions.end_ns = after.at_ns
