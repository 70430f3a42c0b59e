-- _executions: everything the GPU executed, each row of the capture once.
-- grain: one row per kernel, memcpy, memset or whole-graph execution
-- reads: raw_kernels, raw_memcpys, raw_memsets, raw_graph_traces, raw_api_calls, _kernel_names, _device_map
-- columns:
--   trace_id BIGINT - capture
--   gpu_execution_id BIGINT - 4 * row in the source + 0 kernel, 1 memcpy, 2 memset, 3 graph
--   kind VARCHAR - kernel, memcpy, memset or graph
--   execution_class VARCHAR - compute (kernels, graphs, memsets, copies within one device), copy or communication
--   name VARCHAR - short name
--   demangled_name VARCHAR - name with template arguments
--   kernel_class VARCHAR - class by name, of kernels
--   name_dtype VARCHAR - type in the name, of kernels
--   process_id BIGINT - process
--   device_id BIGINT - physical GPU
--   cuda_device BIGINT - CUDA ordinal within the process
--   stream_id BIGINT - stream
--   start_ns BIGINT ns start, NULL when the timestamps are invalid
--   end_ns BIGINT ns end, NULL when the timestamps are invalid
--   is_valid BOOLEAN - false: never collected (0, 0), ends before it starts, or beyond 52 days
--   correlation_id BIGINT - CUPTI correlation id
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
WITH single_process AS (
    SELECT
        trace_id,
        min(global_tid & -16777216) AS process_id
    FROM raw_api_calls
    GROUP BY trace_id
    HAVING count(DISTINCT global_tid & -16777216) = 1
),

kernels AS (
    SELECT
        raw_kernels.trace_id, 4 * row_id AS gpu_execution_id, 'kernel' AS kind,
        if(kernel_class = 'communication', 'communication', 'compute') AS execution_class,
        name, demangled_name, kernel_class, name_dtype,
        global_pid, device_id AS cuda_device, stream_id, start_ns, end_ns, correlation_id, graph_node_id,
        grid_x, grid_y, grid_z, block_x, block_y, block_z, registers_per_thread,
        static_shared_memory_bytes + dynamic_shared_memory_bytes AS shared_memory_bytes,
        NULL::BIGINT AS copied_bytes
    FROM raw_kernels
    LEFT JOIN _kernel_names
        ON
            raw_kernels.trace_id = _kernel_names.trace_id
            AND coalesce(raw_kernels.demangled_name_id, -1) = coalesce(_kernel_names.demangled_name_id, -1)
            AND coalesce(raw_kernels.short_name_id, -1) = coalesce(_kernel_names.short_name_id, -1)
),

copies AS (
    SELECT
        trace_id, 4 * row_id + 1 AS gpu_execution_id, 'memcpy' AS kind,
        if(copy_kind = 8 AND coalesce(src_device_id = dst_device_id, true), 'compute', 'copy') AS execution_class,
        CASE copy_kind
            WHEN 1 THEN 'memcpy HtoD' WHEN 2 THEN 'memcpy DtoH' WHEN 8 THEN 'memcpy DtoD' WHEN 9 THEN 'memcpy HtoH'
            WHEN 10 THEN 'memcpy PtoP' WHEN 11 THEN 'unified memory HtoD' WHEN 12 THEN 'unified memory DtoH'
            WHEN 13 THEN 'unified memory DtoD' ELSE 'memcpy'
        END AS name,
        global_pid, device_id AS cuda_device, stream_id, start_ns, end_ns, correlation_id, graph_node_id,
        bytes AS copied_bytes
    FROM raw_memcpys
),

memsets AS (
    SELECT
        trace_id, 4 * row_id + 2 AS gpu_execution_id, 'memset' AS kind, 'compute' AS execution_class, 'memset' AS name,
        global_pid, device_id AS cuda_device, stream_id, start_ns, end_ns, correlation_id, graph_node_id,
        bytes AS copied_bytes
    FROM raw_memsets
),

graphs AS (
    SELECT
        trace_id, 4 * row_id + 3 AS gpu_execution_id, 'graph' AS kind, 'compute' AS execution_class, 'CUDA graph' AS name,
        global_pid, device_id AS cuda_device, stream_id, start_ns, end_ns, correlation_id
    FROM raw_graph_traces
),

executions AS (
    FROM kernels UNION ALL BY NAME FROM copies UNION ALL BY NAME FROM memsets UNION ALL BY NAME FROM graphs
)

SELECT
    executions.trace_id, gpu_execution_id, kind, execution_class, name,
    coalesce(demangled_name, name) AS demangled_name,
    kernel_class, name_dtype,
    coalesce(executions.global_pid, single_process.process_id, 0) AS process_id,
    coalesce(_device_map.device_id, -1) AS device_id, executions.cuda_device, stream_id,
    if(is_valid, start_ns, NULL) AS start_ns, if(is_valid, end_ns, NULL) AS end_ns, is_valid,
    correlation_id, graph_node_id, grid_x, grid_y, grid_z, block_x, block_y, block_z, registers_per_thread,
    shared_memory_bytes, copied_bytes
FROM (
    SELECT
        *, coalesce(end_ns >= start_ns AND (start_ns != 0 OR end_ns != 0) AND abs(start_ns) < most AND end_ns < most, false) AS is_valid
    FROM executions CROSS JOIN (SELECT 1::BIGINT << 52 AS most)
) AS executions
LEFT JOIN single_process ON executions.trace_id = single_process.trace_id
LEFT JOIN _device_map
    ON
        executions.trace_id = _device_map.trace_id
        AND coalesce(executions.global_pid, 0) = coalesce(_device_map.global_pid, 0)
        AND coalesce(executions.cuda_device, -1) = coalesce(_device_map.cuda_device, -1)
