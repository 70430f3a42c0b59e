-- precision_audit: kernel time and FLOP by type; matrix kernels in a wide type come first, in a bf16 model they stand out.
--
-- The FLOP of an operator call are counted where the longest of its kernels is. The whole capture counts.
--
-- grain: one row per (trace_id, device_name, dtype, kernel_class)
-- reads: gpu_executions, operator_calls, devices, ceilings
-- columns:
--   trace_id BIGINT - the trace
--   device_name VARCHAR - GPU
--   is_wide_matrix BOOLEAN - gemm, convolution or attention in fp64, fp32 or tf32
--   dtype VARCHAR - by the name of the kernel, else that of its operator call; NULL when unknown
--   kernel_class VARCHAR - class by the name's rules
--   kernel_count BIGINT - kernels
--   total_ns BIGINT ns sum of their times
--   time_pct DOUBLE % of the kernel time of the trace
--   flop DOUBLE FLOP model FLOP; NULL when no call states them
--   flop_pct DOUBLE % of the FLOP of the trace
--   peak_flop_per_s DOUBLE FLOP/s dense datasheet peak of the type; NULL when unknown
--   operators VARCHAR[] - operators that launch them, by name
WITH kernels AS (
    SELECT
        executions.trace_id,
        devices.device_name,
        if(executions.name_dtype = '16bit', coalesce(calls.dtype, '16bit'), coalesce(executions.name_dtype, calls.dtype)) AS dtype,
        executions.kernel_class,
        executions.operator,
        executions.end_ns - executions.start_ns AS kernel_ns,
        if(row_number() OVER kernels_of_call = 1, calls.flop, NULL) AS flop
    FROM gpu_executions AS executions
    LEFT JOIN operator_calls AS calls USING (trace_id, operator_call_id)
    LEFT JOIN devices ON executions.trace_id = devices.trace_id AND executions.device_id = devices.device_id
    WHERE executions.kind = 'kernel' AND executions.is_valid
    WINDOW kernels_of_call AS (
        PARTITION BY executions.trace_id, executions.operator_call_id
        ORDER BY executions.end_ns - executions.start_ns DESC, executions.gpu_execution_id
    )
),

peaks AS (
    SELECT device_name, dtype, flop_per_s
    FROM ceilings
    WHERE kind = 'datasheet'
)

SELECT
    kernels.trace_id,
    kernels.device_name,
    coalesce(kernels.kernel_class IN ('gemm', 'convolution', 'attention') AND kernels.dtype IN ('fp64', 'fp32', 'tf32'), false)
        AS is_wide_matrix,
    kernels.dtype,
    kernels.kernel_class,
    count(*) AS kernel_count,
    sum(kernels.kernel_ns)::BIGINT AS total_ns,
    100.0 * total_ns / nullif(sum(sum(kernels.kernel_ns)) OVER (PARTITION BY kernels.trace_id), 0) AS time_pct,
    sum(kernels.flop) AS flop,
    100 * sum(kernels.flop) / nullif(sum(sum(kernels.flop)) OVER (PARTITION BY kernels.trace_id), 0) AS flop_pct,
    any_value(peaks.flop_per_s) AS peak_flop_per_s,
    list_sort(list(DISTINCT kernels.operator)) AS operators
FROM kernels
LEFT JOIN peaks ON kernels.device_name = peaks.device_name AND kernels.dtype = peaks.dtype
GROUP BY kernels.trace_id, kernels.device_name, kernels.dtype, kernels.kernel_class
ORDER BY trace_id, is_wide_matrix DESC, total_ns DESC, device_name, dtype, kernel_class
