-- _sweep: the timeline of a device cut at every start and end and at every window border, with what runs in each slice.
-- grain: one row per (trace, process, device, point)
-- reads: _executions, _windows
-- columns:
--   trace_id BIGINT - capture
--   process_id BIGINT - process
--   device_id BIGINT - device
--   at_ns BIGINT ns start of the slice
--   next_ns BIGINT ns end of the slice, NULL after the last point
--   compute_count BIGINT - compute executions that run
--   communication_count BIGINT - communication executions that run
--   copy_count BIGINT - copies that run
--   share_ns DOUBLE ns running sum up to at_ns of 1/n of each slice with n compute executions
WITH points AS (
    SELECT
        trace_id, process_id, device_id,
        unnest([start_ns, end_ns]) AS at_ns,
        unnest([1, -1]) AS change,
        execution_class
    FROM _executions
    WHERE is_valid
    UNION ALL
    SELECT trace_id, process_id, device_id, unnest([start_ns, end_ns]), 0, NULL
    FROM _windows
),

changes AS (
    SELECT
        trace_id, process_id, device_id, at_ns,
        coalesce(sum(change) FILTER (WHERE execution_class = 'compute'), 0) AS compute_change,
        coalesce(sum(change) FILTER (WHERE execution_class = 'communication'), 0) AS communication_change,
        coalesce(sum(change) FILTER (WHERE execution_class = 'copy'), 0) AS copy_change
    FROM points
    GROUP BY trace_id, process_id, device_id, at_ns
),

slices AS (
    SELECT
        trace_id, process_id, device_id, at_ns,
        lead(at_ns) OVER by_time AS next_ns,
        (sum(compute_change) OVER by_time)::BIGINT AS compute_count,
        (sum(communication_change) OVER by_time)::BIGINT AS communication_count,
        (sum(copy_change) OVER by_time)::BIGINT AS copy_count
    FROM changes
    WINDOW by_time AS (PARTITION BY trace_id, process_id, device_id ORDER BY at_ns)
)

SELECT
    trace_id, process_id, device_id, at_ns, next_ns, compute_count, communication_count, copy_count,
    coalesce(sum(CASE WHEN compute_count > 0 THEN (next_ns - at_ns) / compute_count::DOUBLE ELSE 0 END) OVER (
        PARTITION BY trace_id, process_id, device_id ORDER BY at_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ), 0)::DOUBLE AS share_ns
FROM slices
