-- report_headline: the numbers of the first screen, and which of them leads.
--
-- grain: one row per (trace_id, phase)
-- reads: run_summary, gpu_executions
--
-- columns:
--   position BIGINT - 1 = the phase with most wall time over all traces
--   trace_id BIGINT - the trace
--   phase VARCHAR - '' when the trace has one phase
--   workload VARCHAR - name given by the user; NULL when none was
--   variant VARCHAR - name given by the user; NULL when none was
--   lead VARCHAR - 'mfu', 'mbu' (bytes bind), or why neither: 'no_peak', 'no_flop', 'no_step', 'no_gpu_work'
--   is_lower_bound BOOLEAN - more than 5 % of the busy time has no cost: MFU and MBU are at least this
--   execution_count BIGINT - GPU executions in the trace, all phases
--   device_name VARCHAR - as the driver reports it
--   gpu_count BIGINT - GPUs that took part
--   process_count BIGINT - processes that took part
--   step_rule VARCHAR - how steps were found; 'none' when they were not
--   step_count BIGINT - measured steps
--   step_ns DOUBLE ns wall time per step, the denominator of MFU; NULL without steps
--   traced_step_ns DOUBLE ns wall time per step under the profiler
--   untraced_step_ns DOUBLE ns wall time per step before the capture opened; NULL when not measured
--   untraced_n BIGINT - untraced steps that were timed
--   step_median_ns DOUBLE ns median of the measured steps
--   step_p95_ns DOUBLE ns 95th percentile of the measured steps
--   step_spread_pct DOUBLE % spread of the measured steps
--   window_ns DOUBLE ns time that the ledger covers
--   window_rule VARCHAR - how that window was chosen
--   busy_pct DOUBLE % share of the window with at least one GPU execution
--   reference_dtype VARCHAR - dtype of the peak in the denominator of MFU
--   reference_flop_per_s DOUBLE FLOP/s dense datasheet peak of that dtype, one GPU; NULL when unknown
--   bandwidth_bytes_per_s DOUBLE B/s datasheet bandwidth, one GPU; NULL when unknown
--   ceiling_kind VARCHAR - which ceiling ranks operators
--   flop_convention VARCHAR - what counts as model FLOP
--   cost_source VARCHAR - where FLOP and bytes come from
--   model_flop DOUBLE FLOP model FLOP per step
--   model_flop_per_s DOUBLE FLOP/s achieved by all GPUs together; NULL without steps
--   mfu_pct DOUBLE % model FLOP over wall time at peak
--   hfu_pct DOUBLE % the same with recompute and padding
--   mbu_pct DOUBLE % bytes that must move over wall time at bandwidth
--   sol_pct DOUBLE % ideal over busy time of costed work, datasheet ceiling
--   sol_measured_pct DOUBLE % the same against the measured ceiling
--   attributed_pct DOUBLE % GPU busy time with an operator
--   costed_pct DOUBLE % GPU busy time with a cost model
--   items_per_s DOUBLE 1/s items of the steps per second
--   energy_j_per_step DOUBLE J NULL when not sampled
--   profiler_overhead_pct DOUBLE % traced over untraced step time, less 100
--   sm_clock_hz DOUBLE Hz mean SM clock; NULL when not sampled
WITH executions AS (
    SELECT
        trace_id,
        count(*) AS execution_count
    FROM gpu_executions
    GROUP BY trace_id
),

summaries AS (
    SELECT
        run_summary.*,
        coalesce(executions.execution_count, 0) AS execution_count,
        -- More than a twentieth without a cost could change the number by more than that; stated FLOP are complete.
        coalesce(run_summary.costed_pct, 0) < 95 AND coalesce(run_summary.cost_source, '') <> 'user' AS is_lower_bound,
        CASE
            WHEN coalesce(executions.execution_count, 0) = 0 THEN 'no_gpu_work'
            WHEN coalesce(run_summary.step_count, 0) = 0 THEN 'no_step'
            WHEN run_summary.reference_flop_per_s IS NULL THEN 'no_peak'
            -- Bytes bind when all of them need longer at full bandwidth than all FLOP at the peaks of their dtypes: known only
            -- with all costs.
            WHEN run_summary.bound = 'memory' AND run_summary.costed_pct >= 95 THEN 'mbu'
            WHEN run_summary.mfu_pct > 0 THEN 'mfu'
            ELSE 'no_flop'
        END AS lead
    FROM run_summary
    LEFT JOIN executions ON run_summary.trace_id = executions.trace_id
)

SELECT
    row_number() OVER (
        ORDER BY coalesce(step_ns * nullif(step_count, 0), window_ns) DESC NULLS LAST, trace_id, phase
    ) AS position,
    trace_id, phase, workload, variant, lead, is_lower_bound, execution_count,
    device_name, gpu_count, process_count, step_rule, step_count,
    step_ns::DOUBLE AS step_ns,
    traced_step_ns::DOUBLE AS traced_step_ns,
    untraced_step_ns::DOUBLE AS untraced_step_ns,
    untraced_n,
    step_median_ns::DOUBLE AS step_median_ns,
    step_p95_ns::DOUBLE AS step_p95_ns,
    step_spread_pct,
    window_ns::DOUBLE AS window_ns,
    window_rule, busy_pct, reference_dtype, reference_flop_per_s, bandwidth_bytes_per_s, ceiling_kind,
    flop_convention, cost_source,
    model_flop::DOUBLE AS model_flop,
    model_flop * 1e9 / nullif(step_ns, 0) AS model_flop_per_s,
    mfu_pct, hfu_pct, mbu_pct, sol_pct, sol_measured_pct, attributed_pct, costed_pct,
    items_per_s, energy_j_per_step, profiler_overhead_pct,
    sm_clock_hz::DOUBLE AS sm_clock_hz
FROM summaries
ORDER BY position
