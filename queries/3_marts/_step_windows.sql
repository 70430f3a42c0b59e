-- _step_windows: steps on the GPU timeline: from the first compute execution launched in a step to that of the next one, or to its own
-- last execution where more than 1 % of its GPU time was launched between the two.
-- grain: one row per (trace, process, step) with compute on the GPU
-- reads: _attributed, _executions, _step_ranges
-- columns:
--   trace_id BIGINT - capture
--   process_id BIGINT - process
--   step BIGINT - step
--   phase VARCHAR - phase
--   start_ns BIGINT ns start
--   end_ns BIGINT ns end
--   is_contiguous BOOLEAN - ends where the next step starts
--   is_measured BOOLEAN - false: first of three or more of its phase
WITH works AS (
    SELECT
        _executions.trace_id, _executions.process_id, _attributed.step,
        min(_executions.start_ns) FILTER (WHERE _executions.execution_class = 'compute') AS first_ns,
        max(_executions.end_ns) AS last_ns,
        sum(_executions.end_ns - _executions.start_ns)::BIGINT AS gpu_ns
    FROM _executions
    INNER JOIN _attributed USING (trace_id, gpu_execution_id)
    WHERE _executions.is_valid AND _attributed.step IS NOT NULL
    GROUP BY _executions.trace_id, _executions.process_id, _attributed.step
),

others AS (
    SELECT
        _executions.trace_id, _executions.process_id, _attributed.launched_ns,
        _executions.end_ns - _executions.start_ns AS gpu_ns
    FROM _executions
    INNER JOIN _attributed USING (trace_id, gpu_execution_id)
    WHERE _executions.is_valid AND _attributed.step IS NULL AND _attributed.launched_ns IS NOT NULL
),

worked AS (
    SELECT _step_ranges.*
    FROM _step_ranges
    INNER JOIN works USING (trace_id, process_id, step)
    WHERE works.first_ns IS NOT NULL
),

between AS (
    SELECT
        others.trace_id, others.process_id, _step_ranges.step,
        sum(others.gpu_ns)::BIGINT AS gpu_ns
    FROM others
    ASOF INNER JOIN worked AS _step_ranges
        ON
            others.trace_id = _step_ranges.trace_id
            AND others.process_id = _step_ranges.process_id
            AND others.launched_ns >= _step_ranges.start_ns
    GROUP BY others.trace_id, others.process_id, _step_ranges.step
),

bordered AS (
    SELECT
        works.trace_id, works.process_id, works.step, works.first_ns, works.last_ns,
        lead(works.first_ns) OVER (
            PARTITION BY works.trace_id, works.process_id ORDER BY works.first_ns, works.step
        ) AS next_ns,
        coalesce(between.gpu_ns, 0) <= 0.01 * works.gpu_ns AS is_adjacent
    FROM works
    LEFT JOIN between USING (trace_id, process_id, step)
    WHERE works.first_ns IS NOT NULL
)

SELECT
    bordered.trace_id,
    bordered.process_id,
    bordered.step,
    _step_ranges.phase,
    bordered.first_ns AS start_ns,
    CASE
        WHEN bordered.next_ns IS NULL THEN bordered.last_ns
        WHEN bordered.is_adjacent THEN bordered.next_ns
        ELSE least(bordered.last_ns, bordered.next_ns)
    END AS end_ns,
    bordered.next_ns IS NOT NULL AND bordered.is_adjacent AS is_contiguous,
    count(*) OVER by_phase < 3 OR row_number() OVER in_order > 1 AS is_measured
FROM bordered
INNER JOIN _step_ranges USING (trace_id, process_id, step)
WINDOW
    by_phase AS (PARTITION BY bordered.trace_id, bordered.process_id, _step_ranges.phase),
    in_order AS (PARTITION BY bordered.trace_id, bordered.process_id, _step_ranges.phase ORDER BY bordered.first_ns, bordered.step)
