-- _solved_sizes: sizes of convolutions, poolings and resamplings with their output's at the end: stride and padding are no sizes, but the
-- operator that reads the output names its size, and emit_nvtx names the operator that made each input. Where the reader was given the
-- output of an enclosing operator (conv2d around cudnn_convolution), that is the same tensor.
-- A message of several traces is solved only when each of them names the size, and all the same one.
-- grain: one row per message whose output has one size
-- reads: _unsized, _beside_unsized, _messages, _texts
-- stored: table
-- columns:
--   message_id BIGINT - message
--   sizes VARCHAR - sizes of the arguments, then of the output
-- at most four of them lie around one another: conv2d again under autocast, conv2d, convolution, _convolution
WITH enclosing AS (
    SELECT
        trace_id, process_id, message_id, start_ns, end_ns,
        unnest([0, 1, 2, 3, 4]) AS distance,
        unnest([
            {'op_id': op_id, 'end_ns': end_ns},
            {'op_id': lag(op_id, 1) OVER by_thread, 'end_ns': lag(end_ns, 1) OVER by_thread},
            {'op_id': lag(op_id, 2) OVER by_thread, 'end_ns': lag(end_ns, 2) OVER by_thread},
            {'op_id': lag(op_id, 3) OVER by_thread, 'end_ns': lag(end_ns, 3) OVER by_thread},
            {'op_id': lag(op_id, 4) OVER by_thread, 'end_ns': lag(end_ns, 4) OVER by_thread}
        ]) AS around
    FROM _unsized AS family
    WINDOW by_thread AS (PARTITION BY trace_id, thread_id ORDER BY start_ns, end_ns DESC, range_id)
),

readers AS (
    SELECT
        near.trace_id, near.process_id, near.start_ns,
        split_part(_texts.message, ', input_op_ids = ', 2) AS inputs,
        _messages.shapes
    FROM _beside_unsized AS near
    INNER JOIN _messages ON near.message_id = _messages.message_id
    INNER JOIN _texts ON near.message_id = _texts.message_id
    WHERE _messages.shapes IS NOT NULL AND contains(_texts.message, ', input_op_ids = ')
),

read AS (
    SELECT
        trace_id, process_id, start_ns,
        unnest(regexp_extract_all(inputs, '\((\d+),(-?\d+)\)', 1))::BIGINT AS op_id,
        unnest(regexp_extract_all(inputs, '\((\d+),(-?\d+)\)', 2)) AS output_number,
        unnest(try_cast(shapes AS BIGINT[][])) AS size
    FROM readers
    WHERE len(try_cast(shapes AS BIGINT[][])) = len(regexp_extract_all(inputs, '\((\d+),(-?\d+)\)', 1))
),

-- the reader may stand inside a family member (add_ of the bias inside _convolution), but after this one
outputs AS (
    SELECT
        enclosing.trace_id, enclosing.message_id, enclosing.start_ns, enclosing.distance, read.size
    FROM (SELECT * FROM enclosing WHERE around.end_ns >= end_ns) AS enclosing
    ASOF INNER JOIN (SELECT * FROM read WHERE output_number = '0' AND op_id > 0 AND len(size) > 2) AS read
        ON
            enclosing.trace_id = read.trace_id
            AND enclosing.process_id = read.process_id
            AND enclosing.around.op_id = read.op_id
            AND enclosing.end_ns <= read.start_ns
),

nearest AS (
    SELECT trace_id, message_id, start_ns, arg_min(size::VARCHAR, distance) AS size
    FROM outputs
    GROUP BY trace_id, message_id, start_ns
),

spread AS (
    SELECT message_id, count(DISTINCT trace_id) AS traces
    FROM _unsized AS family
    GROUP BY message_id
)

SELECT
    nearest.message_id,
    left(_messages.shapes, length(_messages.shapes) - 1) || ', ' || min(nearest.size) || ']' AS sizes
FROM nearest
INNER JOIN _messages ON nearest.message_id = _messages.message_id
INNER JOIN spread ON nearest.message_id = spread.message_id
GROUP BY nearest.message_id, _messages.shapes, spread.traces
HAVING count(DISTINCT nearest.size) = 1 AND count(DISTINCT nearest.trace_id) = spread.traces
