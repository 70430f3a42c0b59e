-- backward_forward_ratio: backward time of each operator over its forward time, beside the same ratio of the FLOP.
--
-- A matrix product needs twice the FLOP backward. A time ratio well above that of the FLOP says that the backward kernels
-- are the slower ones.
--
-- grain: one row per (trace_id, process_id, device_id, phase, operator) that runs forward and backward
-- reads: operators
-- columns:
--   trace_id BIGINT - the trace
--   process_id BIGINT - process
--   device_id BIGINT - GPU
--   phase VARCHAR - phase, '' when there is one
--   operator VARCHAR - operator
--   forward_ns BIGINT ns union of its forward executions
--   backward_ns BIGINT ns union of its backward executions
--   time_ratio DOUBLE - backward_ns over forward_ns
--   flop_ratio DOUBLE - FLOP backward over forward; NULL when unknown or without FLOP
--   forward_sol_pct DOUBLE % speed of light forward: measured ceilings, where none is known the datasheet's
--   backward_sol_pct DOUBLE % the same backward
SELECT
    forward.trace_id,
    forward.process_id,
    forward.device_id,
    forward.phase,
    forward.operator,
    forward.busy_ns AS forward_ns,
    backward.busy_ns AS backward_ns,
    backward.busy_ns / nullif(forward.busy_ns, 0) AS time_ratio,
    backward.flop / nullif(forward.flop, 0) AS flop_ratio,
    coalesce(forward.sol_measured_pct, forward.sol_pct) AS forward_sol_pct,
    coalesce(backward.sol_measured_pct, backward.sol_pct) AS backward_sol_pct
FROM operators AS forward
INNER JOIN operators AS backward
    ON
        forward.trace_id = backward.trace_id
        AND forward.process_id = backward.process_id
        AND forward.device_id = backward.device_id
        AND forward.phase = backward.phase
        AND forward.operator = backward.operator
        AND forward.direction = 'forward'
        AND backward.direction = 'backward'
ORDER BY trace_id, backward_ns DESC, process_id, device_id, phase, operator
