-- report_kernels: the kernels that take most time, as `nsys stats` lists them, with the operators that launched them.
--
-- grain: one row per (trace_id, name, demangled_name, grid, block); the first 50 of each trace
-- reads: kernels
--
-- columns:
--   trace_id BIGINT - the trace
--   position BIGINT - 1 = most time
--   name VARCHAR - short name
--   demangled_name VARCHAR - full name
--   kernel_class VARCHAR - gemm, attention, pointwise ..; NULL when no rule knows it
--   grid VARCHAR - blocks, x*y*z
--   block VARCHAR - threads per block, x*y*z
--   count BIGINT - executions
--   total_ns BIGINT ns sum of the executions
--   median_ns DOUBLE ns median execution
--   p95_ns DOUBLE ns 95th percentile
--   operators VARCHAR[] - operators that launched it
SELECT
    trace_id,
    row_number() OVER (
        PARTITION BY trace_id
        ORDER BY total_ns DESC, name, demangled_name, grid_x, grid_y, grid_z, block_x, block_y, block_z
    ) AS position,
    name,
    demangled_name,
    kernel_class,
    concat_ws('*', grid_x, grid_y, grid_z) AS grid,
    concat_ws('*', block_x, block_y, block_z) AS block,
    count::BIGINT AS count,
    total_ns::BIGINT AS total_ns,
    median_ns::DOUBLE AS median_ns,
    p95_ns::DOUBLE AS p95_ns,
    operators
FROM kernels
QUALIFY position <= 50
ORDER BY trace_id, position
