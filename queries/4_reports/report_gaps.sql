-- report_gaps: idle time of the GPUs by its cause and by what the host did.
--
-- grain: one row per (trace_id, phase, cause, api_name)
-- reads: gaps, steps
--
-- columns:
--   trace_id BIGINT - the trace
--   phase VARCHAR - phase of the step that holds the gap; '' for one phase, no steps or between steps
--   position BIGINT - 1 = most idle time
--   cause VARCHAR - 'launch', 'sync' or 'other'
--   api_name VARCHAR - CUDA call of the host in the gap, without its version; NULL when none was open
--   gap_count BIGINT - gaps
--   total_ns BIGINT ns idle time, all steps and GPUs
--   share_pct DOUBLE % of the idle time of the phase
--   median_ns DOUBLE ns median gap
--   longest_ns BIGINT ns longest gap
WITH gaps_of_phase AS (
    SELECT
        gaps.trace_id,
        coalesce(steps.phase, '') AS phase,
        gaps.cause,
        -- nsys appends the version of the interface: cudaLaunchKernel_v7000.
        regexp_replace(gaps.api_name, '_v[0-9]+$', '') AS api_name,
        gaps.gap_ns
    FROM gaps
    LEFT JOIN steps
        ON gaps.trace_id = steps.trace_id AND gaps.process_id = steps.process_id AND gaps.step = steps.step
),

causes AS (
    SELECT
        trace_id,
        phase,
        cause,
        api_name,
        count(*) AS gap_count,
        sum(gap_ns)::BIGINT AS total_ns,
        median(gap_ns)::DOUBLE AS median_ns,
        max(gap_ns)::BIGINT AS longest_ns
    FROM gaps_of_phase
    GROUP BY trace_id, phase, cause, api_name
)

SELECT
    trace_id,
    phase,
    row_number() OVER (PARTITION BY trace_id, phase ORDER BY total_ns DESC, cause, api_name) AS position,
    cause,
    api_name,
    gap_count,
    total_ns,
    100.0 * total_ns / nullif(sum(total_ns) OVER (PARTITION BY trace_id, phase), 0) AS share_pct,
    median_ns,
    longest_ns
FROM causes
ORDER BY trace_id, phase, position
