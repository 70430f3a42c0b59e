-- _matrix_dtypes: the type that most matrix work of a process runs in, for calls whose own names do not tell theirs.
-- grain: one row per (trace, process) with matrix kernels whose names tell the type
-- reads: gpu_executions
-- columns:
--   trace_id BIGINT - capture
--   process_id BIGINT - process
--   dtype VARCHAR - type by GPU time
--   dtype_16bit VARCHAR - of the 16-bit types, for names with one mark for both
WITH times AS (
    SELECT
        trace_id,
        process_id,
        name_dtype,
        sum(end_ns - start_ns) AS work_ns
    FROM gpu_executions
    WHERE is_valid AND kernel_class IN ('gemm', 'convolution') AND name_dtype != '16bit'
    GROUP BY trace_id, process_id, name_dtype
)

SELECT
    trace_id,
    process_id,
    arg_max(name_dtype, (work_ns, name_dtype)) AS dtype,
    arg_max(name_dtype, (work_ns, name_dtype)) FILTER (WHERE name_dtype IN ('bf16', 'fp16')) AS dtype_16bit
FROM times
GROUP BY trace_id, process_id
