-- _launch_calls: the API call that stands for a correlation id. Runtime and driver rows of one launch share the id:
-- launch-like names come first, then the earliest start. After an id restarts, rows that do not overlap are launches of their own.
-- grain: one row per (trace, process, correlation id, generation)
-- reads: _api, _executions
-- columns:
--   trace_id BIGINT - capture
--   process_id BIGINT - process
--   correlation_id BIGINT - CUPTI correlation id
--   api_call_id BIGINT - chosen call
--   start_ns BIGINT ns start of the chosen call
--   end_ns BIGINT ns end of the chosen call
--   generations BIGINT - how often the id was used in the process
--   duplicates BIGINT - further rows of the same launch
WITH used AS (
    SELECT DISTINCT trace_id, process_id, correlation_id
    FROM _executions
    WHERE correlation_id > 0
),

calls AS (
    SELECT _api.*
    FROM _api
    SEMI JOIN used
        ON
            _api.trace_id = used.trace_id
            AND _api.process_id = used.process_id
            AND _api.correlation_id = used.correlation_id
),

counted AS (
    SELECT
        trace_id,
        process_id,
        correlation_id,
        count(*) AS row_count,
        min(api_call_id) AS api_call_id,
        min(start_ns) AS start_ns,
        min(end_ns) AS end_ns
    FROM calls
    GROUP BY trace_id, process_id, correlation_id
),

repeated AS (
    SELECT calls.*
    FROM calls
    INNER JOIN counted USING (trace_id, process_id, correlation_id)
    WHERE counted.row_count > 1
),

marked AS (
    SELECT
        *,
        coalesce(start_ns >= max(end_ns) OVER (
            PARTITION BY trace_id, process_id, correlation_id
            ORDER BY start_ns, end_ns DESC, api_call_id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ), true) AS is_new
    FROM repeated
),

numbered AS (
    SELECT
        *,
        sum(is_new::INTEGER) OVER (
            PARTITION BY trace_id, process_id, correlation_id ORDER BY start_ns, end_ns DESC, api_call_id
        ) AS generation
    FROM marked
),

first_rows AS (
    SELECT
        *,
        count(*) OVER (PARTITION BY trace_id, process_id, correlation_id, generation) - 1 AS duplicates
    FROM numbered
    QUALIFY row_number() OVER (
        PARTITION BY trace_id, process_id, correlation_id, generation
        ORDER BY is_launch_like DESC, start_ns, end_ns DESC, api_call_id
    ) = 1
),

-- a call that puts nothing on the GPU stands for an id only when no other one does
chosen AS (
    SELECT *
    FROM first_rows
    QUALIFY is_launch_like OR NOT bool_or(is_launch_like) OVER (PARTITION BY trace_id, process_id, correlation_id)
)

SELECT
    trace_id,
    process_id,
    correlation_id,
    api_call_id,
    start_ns,
    end_ns,
    1 AS generations,
    0 AS duplicates
FROM counted
WHERE row_count = 1
UNION ALL
SELECT
    trace_id,
    process_id,
    correlation_id,
    api_call_id,
    start_ns,
    end_ns,
    count(*) OVER (PARTITION BY trace_id, process_id, correlation_id) AS generations,
    duplicates
FROM chosen
