-- report_steps: each step, measured or dropped.
--
-- grain: one row per (trace_id, process_id, step)
-- reads: steps, run_summary, processes
--
-- columns:
--   trace_id BIGINT - the trace
--   phase VARCHAR - '' when the trace has one phase
--   process_id BIGINT - the process
--   pid BIGINT - its number in the operating system
--   step BIGINT - ordinal from 0 in start order
--   step_label VARCHAR - the captured text
--   is_measured BOOLEAN - false for steps that no headline uses
--   wall_ns BIGINT ns start to start on the GPU timeline
--   busy_ns BIGINT ns union of the executions
--   mfu_pct DOUBLE % of this step
--   mbu_pct DOUBLE % of this step
--   median_ns DOUBLE ns median of the measured steps of the phase
SELECT
    steps.trace_id,
    steps.phase,
    steps.process_id,
    processes.pid,
    steps.step,
    steps.step_label,
    steps.is_measured,
    steps.wall_ns::BIGINT AS wall_ns,
    steps.busy_ns::BIGINT AS busy_ns,
    steps.mfu_pct,
    steps.mbu_pct,
    run_summary.step_median_ns::DOUBLE AS median_ns
FROM steps
LEFT JOIN run_summary ON steps.trace_id = run_summary.trace_id AND steps.phase = run_summary.phase
LEFT JOIN processes ON steps.trace_id = processes.trace_id AND steps.process_id = processes.process_id
ORDER BY steps.trace_id, steps.phase, steps.process_id, steps.step
