-- step_time_by_phase: how long the steps of each phase take, and how much of that the GPU works.
--
-- grain: one row per (trace_id, process_id, phase); none when the trace has no steps
-- reads: steps
-- columns:
--   trace_id BIGINT - the trace
--   process_id BIGINT - process
--   phase VARCHAR - 'prefill', 'decode' ..; '' when there is one
--   step_count BIGINT - steps in the trace
--   measured_count BIGINT - of these, measured: the other columns are about them
--   wall_ns BIGINT ns wall time of all of them
--   mean_ns DOUBLE ns wall_ns per step, the number in the headline
--   median_ns DOUBLE ns median step
--   p95_ns DOUBLE ns 95th percentile
--   shortest_ns BIGINT ns shortest step
--   longest_ns BIGINT ns longest step
--   busy_pct DOUBLE % of wall_ns with at least one execution on the GPUs of the process
--   items_per_s DOUBLE 1/s items that the steps state over their wall time; NULL when none states any
--   tokens_per_s DOUBLE 1/s the same for tokens
WITH timed AS (
    SELECT
        *,
        if(is_measured, wall_ns, NULL) AS measured_ns
    FROM steps
)

SELECT
    trace_id,
    process_id,
    phase,
    count(*) AS step_count,
    count(measured_ns) AS measured_count,
    sum(measured_ns)::BIGINT AS wall_ns,
    sum(measured_ns) / nullif(count(measured_ns), 0) AS mean_ns,
    median(measured_ns)::DOUBLE AS median_ns,
    quantile_cont(measured_ns, 0.95)::DOUBLE AS p95_ns,
    min(measured_ns) AS shortest_ns,
    max(measured_ns) AS longest_ns,
    100.0 * sum(busy_ns) FILTER (WHERE is_measured) / nullif(sum(measured_ns), 0) AS busy_pct,
    1e9 * sum(items) FILTER (WHERE is_measured) / sum(measured_ns) FILTER (WHERE items IS NOT NULL) AS items_per_s,
    1e9 * sum(tokens) FILTER (WHERE is_measured) / sum(measured_ns) FILTER (WHERE tokens IS NOT NULL) AS tokens_per_s
FROM timed
GROUP BY trace_id, process_id, phase
ORDER BY trace_id, process_id, phase
