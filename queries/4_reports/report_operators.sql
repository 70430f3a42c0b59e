-- report_operators: time, cost and speed of light of each operator, and why it is where it is; the to-do list.
--
-- Ranked by recoverable time; then operators mostly without a cost, by their time; those at their ceiling come last.
-- Rates, SOL and recoverable time are NULL where less than half of the time has a cost.
--
-- grain: one row per (trace_id, phase, operator, direction) with GPU time of compute, all GPUs together
-- reads: operators, ledger, run_summary
--
-- columns:
--   trace_id BIGINT - the trace
--   phase VARCHAR - '' when the trace has one phase
--   position BIGINT - 1 = most recoverable time
--   operator VARCHAR - name given in the workload; '(unattributed)' outside any range
--   direction VARCHAR - 'forward', 'backward', 'update' or ''
--   call_count BIGINT - executions of the operator
--   kernel_count BIGINT - GPU executions
--   dtype VARCHAR - NULL when calls differ or it is unknown
--   dtype_count BIGINT - dtypes met
--   shapes VARCHAR - NULL when calls differ or they are unknown
--   shape_count BIGINT - shapes met
--   exclusive_ns DOUBLE ns GPU time, overlap shared
--   ns_per_step DOUBLE ns the same per step and GPU; of the whole window when there are no steps
--   ideal_per_step_ns DOUBLE ns time at the ranking ceiling, per step and GPU; NULL when less than half has a cost
--   recoverable_per_step_ns DOUBLE ns busy less ideal time, per step and GPU; NULL like the ideal
--   recoverable_pct DOUBLE % the same as a share of the step time
--   share_pct DOUBLE % of the exclusive time of the phase
--   flop_per_s DOUBLE FLOP/s achieved while busy, one GPU
--   bytes_per_s DOUBLE B/s achieved while busy, one GPU
--   flop_per_byte DOUBLE FLOP/byte arithmetic intensity; NULL without FLOP or bytes
--   sol_pct DOUBLE % ideal over busy time, datasheet ceiling
--   sol_measured_pct DOUBLE % the same against the measured ceiling
--   bound VARCHAR - 'compute' or 'memory'; NULL when calls differ or it is unknown
--   why VARCHAR - the reason in one phrase, derived from this row's numbers
WITH pooled AS (
    SELECT
        trace_id, phase, operator,
        coalesce(direction, '') AS direction,
        sum(call_count)::BIGINT AS call_count, sum(kernel_count)::BIGINT AS kernel_count,
        CASE WHEN count(DISTINCT dtype) = 1 AND count(dtype) = count(*) THEN min(dtype) END AS dtype,
        greatest(count(DISTINCT dtype), max(dtype_count))::BIGINT AS dtype_count,
        CASE WHEN count(DISTINCT shapes) = 1 AND count(shapes) = count(*) THEN min(shapes) END AS shapes,
        greatest(count(DISTINCT shapes), max(shape_count))::BIGINT AS shape_count,
        CASE WHEN count(DISTINCT bound) = 1 AND count(bound) = count(*) THEN min(bound) END AS bound,
        sum(exclusive_ns) AS exclusive_ns, sum(costed_busy_ns) AS costed_ns,
        sum(flop) AS flop, sum(bytes) AS bytes, sum(ideal_ns) AS ideal_ns, sum(ideal_measured_ns) AS ideal_measured_ns,
        sum(recoverable_ns) AS recoverable_ns, min(cost_reason) AS cost_reason
    FROM operators
    GROUP BY trace_id, phase, operator, coalesce(direction, '')
),

-- The ledger covers all measured steps of all GPUs, so step time over its sum turns totals into one step of one GPU.
scales AS (
    SELECT
        ledger.trace_id, ledger.phase, nullif(sum(ledger.ns), 0) AS total_ns,
        coalesce(any_value(run_summary.step_ns), any_value(run_summary.window_ns)) / total_ns AS scale
    FROM ledger
    INNER JOIN run_summary ON ledger.trace_id = run_summary.trace_id AND ledger.phase = run_summary.phase
    GROUP BY ledger.trace_id, ledger.phase
),

rated AS (
    SELECT
        pooled.*, scales.scale, scales.total_ns,
        costed_ns - recoverable_ns AS best_ideal_ns,
        coalesce(recoverable_ns IS NOT NULL AND costed_ns >= 0.5 * exclusive_ns, false) AS is_rated,
        if(costed_ns >= 0.5 * exclusive_ns, costed_ns, NULL) AS rated_ns
    FROM pooled
    LEFT JOIN scales ON pooled.trace_id = scales.trace_id AND pooled.phase = scales.phase
    WHERE pooled.exclusive_ns > 0
)

SELECT
    trace_id, phase,
    row_number() OVER (
        PARTITION BY trace_id, phase ORDER BY
            -- What is below a thousandth of the step is no advice; time that nobody can rate comes before it.
            CASE WHEN is_rated AND recoverable_ns >= 0.001 * total_ns THEN 0 WHEN is_rated THEN 2 ELSE 1 END,
            if(is_rated, recoverable_ns, exclusive_ns) DESC, operator, direction
    ) AS position,
    operator, direction, call_count, kernel_count, dtype, dtype_count, shapes, shape_count,
    exclusive_ns, exclusive_ns * scale AS ns_per_step,
    if(is_rated, best_ideal_ns * scale, NULL) AS ideal_per_step_ns,
    if(is_rated, recoverable_ns * scale, NULL) AS recoverable_per_step_ns,
    100.0 * if(is_rated, recoverable_ns, NULL) / total_ns AS recoverable_pct,
    100.0 * exclusive_ns / nullif(sum(exclusive_ns) OVER (PARTITION BY trace_id, phase), 0) AS share_pct,
    flop * 1e9 / nullif(rated_ns, 0) AS flop_per_s,
    bytes * 1e9 / nullif(rated_ns, 0) AS bytes_per_s,
    if(rated_ns > 0, nullif(flop, 0) / nullif(bytes, 0), NULL) AS flop_per_byte,
    100.0 * ideal_ns / nullif(rated_ns, 0) AS sol_pct, 100.0 * ideal_measured_ns / nullif(rated_ns, 0) AS sol_measured_pct,
    if(rated_ns > 0, bound, NULL) AS bound,
    CASE
        WHEN rated_ns IS NULL AND operator = '(unattributed)' THEN 'no range at the launch'
        WHEN rated_ns IS NULL AND operator IN ('(library)', '(step)') THEN 'only library or step ranges at the launch'
        WHEN flop IS NULL AND bytes IS NULL THEN 'no cost model: ' || coalesce(cost_reason, 'no shapes')
        WHEN rated_ns IS NULL
            THEN printf('%.0f %% of its time has no cost model', 100 - 100 * coalesce(costed_ns, 0) / exclusive_ns)
        WHEN NOT is_rated THEN 'no SOL: no peak known for this GPU and dtype'
        WHEN best_ideal_ns > costed_ns THEN 'SOL above 100: data in L2, or a wrong count'
        WHEN best_ideal_ns >= 0.9 * costed_ns THEN 'within a tenth of the roof'
        -- Launch and drain take a few us.
        WHEN best_ideal_ns < 5000.0 * kernel_count
            THEN printf('latency floor: %.1f us or less a kernel', greatest(best_ideal_ns / kernel_count, 100) / 1e3)
        WHEN rated.bound = 'memory' AND kernel_count >= 3 * call_count
            THEN printf('memory bound, %.0f kernels a call: fuse', kernel_count / call_count)
        WHEN rated.bound = 'memory' THEN 'memory bound, below the bandwidth roof'
        WHEN rated.bound = 'compute' THEN 'compute bound, below the FLOP roof'
        ELSE 'calls differ in what binds them'
    END AS why
FROM rated
ORDER BY trace_id, phase, position
