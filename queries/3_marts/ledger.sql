-- ledger: where every percent of the step time went: signed lines that add up to it exactly.
-- Compute time telescopes per operator call: FLOP at the reference peak (model_flop: this is MFU), with extra FLOP, at the peak of the
-- dtype (precision), or the bandwidth (memory_bound), at the sampled clock, and the rest (kernel_inefficiency).
-- grain: one row per (trace, process, device, phase, component)
-- reads: _windows, _slices, _telescoped, gaps, _step_works, _device_rates
-- columns:
--   trace_id BIGINT - capture
--   process_id BIGINT - process
--   device_id BIGINT - device
--   phase VARCHAR - phase, '' when there is one; without steps the window from the first to the last execution
--   component VARCHAR - line of the ledger
--   position INTEGER - order of the lines
--   ns DOUBLE ns signed share of the wall time; NULL where no peak is known
--   pct DOUBLE % of the wall time (the untraced one where steps were timed before the capture); the sum is 100
WITH walls AS (
    SELECT
        _windows.trace_id, _windows.process_id, _windows.device_id, _windows.phase,
        sum(end_ns - start_ns)::DOUBLE AS traced_ns,
        any_value(_step_works.untraced_step_ns * _step_works.step_count) AS untraced_ns,
        any_value(_step_works.flop) AS stated_flop
    FROM _windows
    LEFT JOIN _step_works USING (trace_id, process_id, phase)
    GROUP BY ALL
),

devices_of AS (
    SELECT
        trace_id, process_id, phase,
        count(DISTINCT device_id) AS device_count
    FROM _windows
    GROUP BY trace_id, process_id, phase
),

exposed AS (
    SELECT
        trace_id, process_id, device_id, phase,
        coalesce(sum(end_ns - start_ns) FILTER (WHERE slice_class = 'communication'), 0)::DOUBLE AS communication_ns,
        coalesce(sum(end_ns - start_ns) FILTER (WHERE slice_class = 'copy'), 0)::DOUBLE AS copy_ns
    FROM _slices
    GROUP BY ALL
),

idle AS (
    SELECT
        trace_id, process_id, device_id, phase,
        coalesce(sum(gap_ns) FILTER (WHERE cause = 'launch'), 0)::DOUBLE AS launch_ns,
        coalesce(sum(gap_ns) FILTER (WHERE cause = 'sync'), 0)::DOUBLE AS sync_ns,
        coalesce(sum(gap_ns) FILTER (WHERE cause = 'other'), 0)::DOUBLE AS other_ns
    FROM gaps
    GROUP BY ALL
),

joined AS (
    SELECT
        walls.*,
        _device_rates.reference_flop_per_s IS NOT NULL AS has_peak,
        coalesce(
            1e9 * walls.stated_flop / devices_of.device_count / _device_rates.reference_flop_per_s, _telescoped.model_ns, 0
        ) AS stated_ns,
        _telescoped.* EXCLUDE (trace_id, process_id, device_id, phase),
        exposed.communication_ns, exposed.copy_ns, idle.launch_ns, idle.sync_ns, idle.other_ns
    FROM walls
    INNER JOIN devices_of USING (trace_id, process_id, phase)
    LEFT JOIN _device_rates USING (trace_id, device_id)
    LEFT JOIN _telescoped USING (trace_id, process_id, device_id, phase)
    LEFT JOIN exposed USING (trace_id, process_id, device_id, phase)
    LEFT JOIN idle USING (trace_id, process_id, device_id, phase)
),

-- what is left of equal sums in floating point is no finding
rounded AS (
    SELECT
        *,
        if(abs(coalesce(model_ns, 0) - stated_ns) < 1e-12 * traced_ns, 0, coalesce(model_ns, 0) - stated_ns) AS unattributed_ns
    FROM joined
),

components AS (
    SELECT
        trace_id, process_id, device_id, phase,
        coalesce(untraced_ns, traced_ns) AS wall_ns,
        unnest([
            {'component': 'model_flop', 'position': 1, 'ns': if(has_peak, stated_ns, NULL)},
            {'component': 'extra_flop', 'position': 2, 'ns': if(has_peak, coalesce(extra_ns, 0), NULL)},
            {'component': 'precision', 'position': 3, 'ns': if(has_peak, coalesce(precision_ns, 0), NULL)},
            {'component': 'memory_bound', 'position': 4, 'ns': if(has_peak, coalesce(memory_ns, 0), NULL)},
            {'component': 'clock', 'position': 5, 'ns': if(has_peak, coalesce(clock_ns, 0), NULL)},
            {'component': 'kernel_inefficiency', 'position': 6, 'ns': if(has_peak, coalesce(kernel_ns, 0), NULL)},
            {'component': 'no_cost_model', 'position': 7, 'ns': coalesce(uncosted_ns, 0)},
            {'component': 'exposed_communication', 'position': 8, 'ns': coalesce(communication_ns, 0)},
            {'component': 'exposed_copy', 'position': 9, 'ns': coalesce(copy_ns, 0)},
            {'component': 'idle_launch', 'position': 10, 'ns': coalesce(launch_ns, 0)},
            {'component': 'idle_sync', 'position': 11, 'ns': coalesce(sync_ns, 0)},
            {'component': 'idle_other', 'position': 12, 'ns': coalesce(other_ns, 0)},
            {'component': 'unattributed_flop', 'position': 13, 'ns': if(has_peak, unattributed_ns, NULL)},
            {'component': 'profiler_overhead', 'position': 14, 'ns': untraced_ns - traced_ns}
        ]) AS line
    FROM rounded
)

SELECT
    trace_id, process_id, device_id, phase,
    line.component AS component,
    line.position AS position,
    line.ns AS ns,
    100 * line.ns / wall_ns AS pct
FROM components
WHERE line.position < 14 OR line.ns IS NOT NULL
ORDER BY trace_id, process_id, device_id, phase, position
