-- report_ledger: where the step time went, mean over the GPUs, ready to be drawn as one bar.
--
-- Gains (negative components) come last: the bar runs past 100 % and they lead it back, so that nothing is clipped.
--
-- grain: one row per (trace_id, phase, component)
-- reads: ledger, run_summary
--
-- columns:
--   trace_id BIGINT - the trace
--   phase VARCHAR - '' when the trace has one phase
--   position BIGINT - order of drawing
--   component VARCHAR - name in the ledger
--   label VARCHAR - the same in words
--   family VARCHAR - 'model', 'kernel', 'data', 'idle' or 'unknown': who can win the time back
--   meaning VARCHAR - what the component holds
--   pct DOUBLE % share of the step time, signed
--   ns_per_step DOUBLE ns the same in time of one step; of the whole window when there are no steps
--   start_pct DOUBLE % where its piece of the bar begins
--   end_pct DOUBLE % where it ends
--   loss_rank BIGINT - 1 = largest loss; NULL for model FLOP and for gains
--   sum_pct DOUBLE % sum of all components: 100
WITH components AS (
    SELECT
        trace_id,
        phase,
        component,
        min(position) AS component_position,
        sum(ns) AS total_ns
    FROM ledger
    GROUP BY trace_id, phase, component
),

words (component, family, label, meaning) AS (
    VALUES
    ('model_flop', 'model', 'model FLOP at peak', 'FLOP of the model at the reference peak: this is MFU'),
    ('extra_flop', 'kernel', 'recompute and padding', 'FLOP that the model does not need'),
    ('precision', 'kernel', 'precision', 'FLOP run in a dtype with another peak than the reference'),
    ('memory_bound', 'kernel', 'memory-bound operators', 'bytes take longer at full bandwidth than the FLOP at peak'),
    ('clock', 'kernel', 'clock', 'SM clock below the clock of the peak'),
    ('kernel_inefficiency', 'kernel', 'kernel inefficiency', 'time above the roofline of the operators'),
    ('no_cost_model', 'unknown', 'operators without cost', 'GPU time whose FLOP or bytes are unknown'),
    ('exposed_communication', 'data', 'exposed communication', 'communication with no compute beside it'),
    ('exposed_copy', 'data', 'exposed copies', 'copies to or from the host with no compute beside them'),
    ('idle_launch', 'idle', 'launch gaps', 'GPU idle, waiting for a launch that was not made yet'),
    ('idle_sync', 'idle', 'synchronisation gaps', 'GPU idle after the host waited for it'),
    ('idle_other', 'idle', 'gaps between queued work', 'GPU idle with the next work already queued'),
    ('unattributed_flop', 'unknown', 'FLOP not found in operators', 'stated model FLOP less the FLOP of the operators'),
    ('profiler_overhead', 'unknown', 'profiler overhead', 'untraced less traced step time')
),

shares AS (
    SELECT
        trace_id,
        phase,
        component,
        component_position,
        total_ns,
        100.0 * total_ns / nullif(sum(total_ns) OVER (PARTITION BY trace_id, phase), 0) AS pct
    FROM components
),

drawn AS (
    SELECT
        *,
        row_number() OVER (PARTITION BY trace_id, phase ORDER BY pct < 0, component_position) AS position,
        CASE WHEN component <> 'model_flop' AND pct > 0 THEN row_number() OVER (
            PARTITION BY trace_id, phase ORDER BY component = 'model_flop', pct DESC, component_position
        ) END AS loss_rank
    FROM shares
)

SELECT
    drawn.trace_id,
    drawn.phase,
    drawn.position,
    drawn.component,
    coalesce(words.label, drawn.component) AS label,
    coalesce(words.family, 'unknown') AS family,
    coalesce(words.meaning, '') AS meaning,
    drawn.pct,
    drawn.pct / 100.0 * coalesce(run_summary.step_ns, run_summary.window_ns) AS ns_per_step,
    sum(drawn.pct) OVER bar - drawn.pct AS start_pct,
    sum(drawn.pct) OVER bar AS end_pct,
    drawn.loss_rank,
    sum(drawn.pct) OVER (PARTITION BY drawn.trace_id, drawn.phase) AS sum_pct
FROM drawn
LEFT JOIN words ON drawn.component = words.component
LEFT JOIN run_summary ON drawn.trace_id = run_summary.trace_id AND drawn.phase = run_summary.phase
WINDOW bar AS (PARTITION BY drawn.trace_id, drawn.phase ORDER BY drawn.position)
ORDER BY drawn.trace_id, drawn.phase, drawn.position
