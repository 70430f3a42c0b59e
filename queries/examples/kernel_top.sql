-- kernel_top: kernels by total time, the columns of `nsys stats -r cuda_gpu_kern_sum`, with the operators that launch them.
--
-- grain: one row per (trace_id, demangled_name); the first $count of each trace
-- reads: gpu_executions
-- params:
--   count BIGINT - kernels to show; default 20
-- columns:
--   trace_id BIGINT - the trace
--   position BIGINT - 1 = most time
--   time_pct DOUBLE % of the time of all kernels of the trace
--   total_ns BIGINT ns sum of the executions
--   instances BIGINT - executions with valid timestamps
--   average_ns DOUBLE ns mean
--   median_ns DOUBLE ns median
--   minimum_ns BIGINT ns shortest
--   maximum_ns BIGINT ns longest
--   deviation_ns DOUBLE ns standard deviation of the sample; NULL for one execution
--   kernel_class VARCHAR - gemm, attention, elementwise ..
--   name VARCHAR - short name
--   operators VARCHAR[] - operators that launch it, by name
--   demangled_name VARCHAR - name with template arguments
WITH kernels AS (
    SELECT
        trace_id,
        name,
        demangled_name,
        any_value(kernel_class) AS kernel_class,
        sum(end_ns - start_ns)::BIGINT AS total_ns,
        count(*) AS instances,
        sum(end_ns - start_ns) / count(*) AS average_ns,
        median(end_ns - start_ns)::DOUBLE AS median_ns,
        min(end_ns - start_ns) AS minimum_ns,
        max(end_ns - start_ns) AS maximum_ns,
        stddev_samp(end_ns - start_ns) AS deviation_ns,
        list_sort(list(DISTINCT operator)) AS operators
    FROM gpu_executions
    WHERE kind = 'kernel' AND is_valid
    GROUP BY trace_id, name, demangled_name
)

SELECT
    trace_id,
    row_number() OVER (PARTITION BY trace_id ORDER BY total_ns DESC, name, demangled_name) AS position,
    100.0 * total_ns / nullif(sum(total_ns) OVER (PARTITION BY trace_id), 0) AS time_pct,
    total_ns, instances, average_ns, median_ns, minimum_ns, maximum_ns, deviation_ns,
    kernel_class, name, operators, demangled_name
FROM kernels
QUALIFY position <= $count::BIGINT
ORDER BY trace_id, position
