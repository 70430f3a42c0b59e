-- low_sol_shapes: which operators, at which sizes, run below $below percent of the speed of light.
--
-- Calls of measured steps (without steps: all). Shapes without a cost are not here: see the table `uncosted`.
--
-- grain: one row per (trace_id, operator, direction, shapes, dtype) whose sol_pct is under $below
-- reads: operator_calls, steps
-- params:
--   below DOUBLE % show what is under this; default 50
-- columns:
--   trace_id BIGINT - the trace
--   operator VARCHAR - operator
--   direction VARCHAR - forward, backward, update or ''
--   shapes VARCHAR - sizes of the arguments as captured
--   dtype VARCHAR - type it computes in
--   call_count BIGINT - calls with a cost
--   busy_ns BIGINT ns busy time of these calls, added up
--   median_ns DOUBLE ns median busy time of a call
--   ideal_ns DOUBLE ns T_SOL at the measured ceilings, where none is known at the datasheet's
--   sol_pct DOUBLE % ideal_ns of busy_ns
--   recoverable_ns DOUBLE ns busy_ns less ideal_ns
--   flop_per_s DOUBLE FLOP/s FLOP over busy_ns
--   bytes_per_s DOUBLE B/s fused bytes over busy_ns
WITH calls AS (
    SELECT
        operator_calls.*,
        coalesce(operator_calls.ideal_measured_ns, operator_calls.ideal_ns) AS call_ideal_ns
    FROM operator_calls
    LEFT JOIN steps USING (trace_id, process_id, step)
    WHERE
        call_ideal_ns IS NOT NULL
        AND coalesce(steps.is_measured, operator_calls.trace_id NOT IN (SELECT known.trace_id FROM steps AS known))
)

SELECT
    trace_id, operator, direction, shapes, dtype,
    count(*) AS call_count,
    sum(busy_ns)::BIGINT AS busy_ns,
    median(busy_ns)::DOUBLE AS median_ns,
    sum(call_ideal_ns) AS ideal_ns,
    100 * sum(call_ideal_ns) / nullif(sum(busy_ns), 0) AS sol_pct,
    sum(busy_ns - call_ideal_ns) AS recoverable_ns,
    1e9 * sum(flop) / nullif(sum(busy_ns), 0) AS flop_per_s,
    1e9 * sum(bytes) / nullif(sum(busy_ns), 0) AS bytes_per_s
FROM calls
GROUP BY trace_id, operator, direction, shapes, dtype
HAVING sol_pct < $below::DOUBLE
ORDER BY trace_id, recoverable_ns DESC, operator, direction, shapes, dtype
