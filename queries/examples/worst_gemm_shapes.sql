-- worst_gemm_shapes: matrix products by the time they lose against the speed of light, one row per shape.
--
-- A call counts when GEMM kernels take at least half of its time, in measured steps (without steps: anywhere).
--
-- grain: one row per (trace_id, operator, direction, shapes, dtype); the first $count of each trace
-- reads: operator_calls, gpu_executions, steps
-- params:
--   count BIGINT - shapes to show; default 20
-- columns:
--   trace_id BIGINT - the trace
--   position BIGINT - 1 = most time lost
--   operator VARCHAR - operator
--   direction VARCHAR - forward, backward, update or ''
--   shapes VARCHAR - sizes of the arguments as captured; NULL when the capture has none
--   dtype VARCHAR - type it computes in; NULL when unknown
--   call_count BIGINT - calls
--   busy_ns BIGINT ns busy time of the calls, added up
--   ideal_ns DOUBLE ns T_SOL at the measured ceilings, where none is known at the datasheet's; NULL without a cost
--   lost_ns DOUBLE ns busy time of the costed calls less their ideal
--   sol_pct DOUBLE % ideal of the costed calls, of their busy time
--   flop_per_s DOUBLE FLOP/s FLOP of the calls that state them over their busy time
--   kernels VARCHAR[] - short names of the GEMM kernels
WITH gemm_calls AS (
    SELECT
        trace_id,
        operator_call_id,
        list(DISTINCT name) FILTER (WHERE kernel_class = 'gemm') AS kernels
    FROM gpu_executions
    WHERE is_valid
    GROUP BY trace_id, operator_call_id
    HAVING 2 * sum(end_ns - start_ns) FILTER (WHERE kernel_class = 'gemm') >= sum(end_ns - start_ns)
),

calls AS (
    SELECT
        operator_calls.*,
        gemm_calls.kernels,
        coalesce(operator_calls.ideal_measured_ns, operator_calls.ideal_ns) AS call_ideal_ns
    FROM operator_calls
    INNER JOIN gemm_calls USING (trace_id, operator_call_id)
    LEFT JOIN steps USING (trace_id, process_id, step)
    WHERE coalesce(steps.is_measured, operator_calls.trace_id NOT IN (SELECT known.trace_id FROM steps AS known))
),

shapes_of_operators AS (
    SELECT
        trace_id, operator, direction, shapes, dtype,
        count(*) AS call_count,
        sum(busy_ns)::BIGINT AS busy_ns,
        sum(call_ideal_ns) AS ideal_ns,
        sum(busy_ns - call_ideal_ns) AS lost_ns,
        100 * sum(call_ideal_ns) / sum(busy_ns) FILTER (WHERE call_ideal_ns IS NOT NULL) AS sol_pct,
        1e9 * sum(flop) / sum(busy_ns) FILTER (WHERE flop IS NOT NULL) AS flop_per_s,
        list_sort(list_distinct(flatten(list(kernels)))) AS kernels
    FROM calls
    GROUP BY trace_id, operator, direction, shapes, dtype
)

SELECT
    trace_id,
    row_number() OVER (
        PARTITION BY trace_id ORDER BY lost_ns DESC NULLS LAST, busy_ns DESC, operator, direction, shapes, dtype
    ) AS position,
    operator, direction, shapes, dtype, call_count, busy_ns, ideal_ns, lost_ns, sol_pct, flop_per_s, kernels
FROM shapes_of_operators
QUALIFY position <= $count::BIGINT
ORDER BY trace_id, position
