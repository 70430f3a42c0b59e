-- run_summary: the headline of a capture.
-- grain: one row per (trace, phase)
-- reads: traces, ledger, operators, _summary_totals, _step_lengths, _window_calls, _options
-- columns:
--   trace_id BIGINT - capture
--   phase VARCHAR - phase, '' when there is one
--   workload VARCHAR - name given by the user
--   variant VARCHAR - variant given by the user
--   device_name VARCHAR - GPUs that did the work
--   gpu_count BIGINT - GPUs that did the work
--   process_count BIGINT - processes that did the work
--   step_rule VARCHAR - how the steps were found; none
--   step_count BIGINT - measured steps, over all processes
--   step_ns DOUBLE ns mean step: the untraced one where steps were timed before the capture, else the traced one
--   traced_step_ns DOUBLE ns mean measured step in the capture
--   untraced_step_ns DOUBLE ns mean step before the capture, NULL when none were timed
--   untraced_n BIGINT - steps timed before the capture
--   step_median_ns DOUBLE ns median measured step in the capture
--   step_p95_ns DOUBLE ns 95th percentile
--   step_spread_pct DOUBLE % 95th minus 5th percentile, of the median
--   busy_pct DOUBLE % of the traced windows in which a device executes something
--   reference_dtype VARCHAR - type of the peak in the denominator of MFU
--   reference_flop_per_s DOUBLE FLOP/s dense datasheet peak of one GPU
--   bandwidth_bytes_per_s DOUBLE B/s datasheet bandwidth of one GPU
--   ceiling_kind VARCHAR - ceiling that ranks the operators: measured or datasheet
--   flop_convention VARCHAR - what was counted
--   cost_source VARCHAR - sources of the FLOP
--   model_flop DOUBLE FLOP per step of one process; without steps of the window
--   mfu_pct DOUBLE % model FLOP per second of the peak of all GPUs; NULL without steps or without a known FLOP
--   hfu_pct DOUBLE % the same with extra FLOP
--   mbu_pct DOUBLE % fused bytes per second of the bandwidth of all GPUs; NULL without steps
--   bound VARCHAR - what all costed work needs longer: its FLOP at the peaks of its dtypes (compute) or its bytes (memory); NULL when unknown
--   sol_pct DOUBLE % sum of the ideal times at the datasheet of the busy time of operators with a cost
--   sol_measured_pct DOUBLE % the same at the measured ceilings, of operators without one at the datasheet
--   attributed_pct DOUBLE % of busy time with an operator
--   costed_pct DOUBLE % of busy time whose FLOP and bytes are known
--   items_per_s DOUBLE 1/s items or tokens per second over all processes
--   energy_j_per_step DOUBLE J energy of the GPUs in one step, NULL with fewer than 20 samples
--   profiler_overhead_pct DOUBLE % traced minus untraced step, of the untraced one
--   sm_clock_hz DOUBLE Hz mean SM clock, NULL when it was not sampled
--   window_ns BIGINT ns longest sum of windows of a device
--   window_rule VARCHAR - what the windows are
WITH lines AS (
    SELECT
        trace_id, phase,
        sum(ns) FILTER (WHERE component = 'model_flop') AS model_ns,
        sum(ns) FILTER (WHERE component IN ('model_flop', 'extra_flop')) AS executed_ns
    FROM ledger
    GROUP BY trace_id, phase
),

works AS (
    SELECT
        trace_id, phase,
        sum(flop) AS flop,
        sum(memory_ns) AS memory_ns,
        sum(compute_ns) AS compute_ns,
        string_agg(DISTINCT cost_source, ', ' ORDER BY cost_source) FILTER (WHERE flop > 0) AS cost_source
    FROM _window_calls
    GROUP BY trace_id, phase
),

speeds AS (
    SELECT
        trace_id, phase,
        100 * sum(ideal_ns) / nullif(sum(costed_busy_ns) FILTER (WHERE ideal_ns IS NOT NULL), 0) AS sol_pct,
        100 * sum(coalesce(ideal_measured_ns, ideal_ns))
        / nullif(sum(costed_busy_ns) FILTER (WHERE ideal_ns IS NOT NULL), 0) AS sol_measured_pct,
        count(ideal_measured_ns) > 0 AS has_measured
    FROM operators
    GROUP BY trace_id, phase
)

SELECT
    totals.trace_id, totals.phase, traces.workload, traces.variant, totals.device_name, totals.gpu_count, totals.process_count,
    coalesce(lengths.step_rule, 'none') AS step_rule,
    coalesce(totals.step_count, 0)::BIGINT AS step_count,
    totals.step_ns, totals.traced_step_ns, totals.untraced_step_ns, totals.untraced_n,
    lengths.median_ns AS step_median_ns, lengths.p95_ns AS step_p95_ns,
    100 * (lengths.p95_ns - lengths.p5_ns) / nullif(lengths.median_ns, 0) AS step_spread_pct,
    totals.busy_pct, totals.reference_dtype, totals.reference_flop_per_s, totals.bytes_per_s AS bandwidth_bytes_per_s,
    if(_options.ceiling = 'datasheet' OR NOT coalesce(speeds.has_measured, false), 'datasheet', 'measured') AS ceiling_kind,
    coalesce(
        _options.flop_convention, traces.flop_convention,
        if(contains(works.cost_source, 'shapes'), 'matmul 2MNK, attention in full, backward 2x forward, no recompute', NULL)
    ) AS flop_convention,
    if(totals.is_user, 'user', works.cost_source) AS cost_source,
    nullif(coalesce(totals.stated_flop, works.flop), 0)
    / coalesce(nullif(totals.step_count, 0), 1) AS model_flop,
    if(totals.step_count > 0 AND totals.has_peaks AND lines.model_ns > 0, 100 * lines.model_ns / totals.wall_ns, NULL) AS mfu_pct,
    if(totals.step_count > 0 AND totals.has_peaks AND lines.model_ns > 0, 100 * lines.executed_ns / totals.wall_ns, NULL) AS hfu_pct,
    if(totals.step_count > 0 AND works.memory_ns > 0, 100 * works.memory_ns / totals.wall_ns, NULL) AS mbu_pct,
    CASE WHEN works.memory_ns > works.compute_ns THEN 'memory' WHEN works.compute_ns >= works.memory_ns THEN 'compute' END AS bound,
    speeds.sol_pct, if(speeds.has_measured, speeds.sol_measured_pct, NULL) AS sol_measured_pct,
    totals.attributed_pct, totals.costed_pct, totals.items_per_s,
    totals.energy_j_per_step,
    100 * (totals.traced_step_ns - totals.untraced_step_ns) / totals.untraced_step_ns AS profiler_overhead_pct,
    totals.sm_clock_hz, totals.window_ns,
    if(
        totals.step_count > 0, 'measured steps, from first compute execution to that of the next step',
        'first to last execution of the capture'
    ) AS window_rule
FROM _summary_totals AS totals
INNER JOIN traces ON totals.trace_id = traces.trace_id
CROSS JOIN _options
LEFT JOIN _step_lengths AS lengths ON totals.trace_id = lengths.trace_id AND totals.phase = lengths.phase
LEFT JOIN lines ON totals.trace_id = lines.trace_id AND totals.phase = lines.phase
LEFT JOIN works ON totals.trace_id = works.trace_id AND totals.phase = works.phase
LEFT JOIN speeds ON totals.trace_id = speeds.trace_id AND totals.phase = speeds.phase
ORDER BY totals.trace_id, totals.phase
