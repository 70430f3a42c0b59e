-- kernels: kernels by name and launch shape, with the operators that launch them.
-- grain: one row per (trace, name, demangled name, grid, block)
-- reads: gpu_executions
-- columns:
--   trace_id BIGINT - capture
--   name VARCHAR - short name
--   demangled_name VARCHAR - name with template arguments
--   grid_x BIGINT - grid
--   grid_y BIGINT - grid
--   grid_z BIGINT - grid
--   block_x BIGINT - block
--   block_y BIGINT - block
--   block_z BIGINT - block
--   kernel_class VARCHAR - class by the name's rules
--   count BIGINT - executions with valid timestamps
--   total_ns BIGINT ns sum of their times
--   median_ns BIGINT ns median time
--   p95_ns BIGINT ns 95th percentile
--   operators VARCHAR[] - operators that launch it, by name
SELECT
    trace_id, name, demangled_name, grid_x, grid_y, grid_z, block_x, block_y, block_z,
    any_value(kernel_class) AS kernel_class,
    count(*) AS count,
    sum(end_ns - start_ns)::BIGINT AS total_ns,
    quantile_disc(end_ns - start_ns, 0.5) AS median_ns,
    quantile_disc(end_ns - start_ns, 0.95) AS p95_ns,
    list_sort(list(DISTINCT operator)) AS operators
FROM gpu_executions
WHERE kind = 'kernel' AND is_valid
GROUP BY trace_id, name, demangled_name, grid_x, grid_y, grid_z, block_x, block_y, block_z
ORDER BY trace_id, total_ns DESC, name, demangled_name, grid_x, grid_y, grid_z, block_x, block_y, block_z
