"""Small databases with the public tables that the report reads, filled with numbers that can be checked by hand."""

from __future__ import annotations

from collections.abc import Sequence

import duckdb

SCHEMA = """
CREATE TABLE traces (trace_id BIGINT, workload VARCHAR, variant VARCHAR, rank BIGINT, source_file VARCHAR,
    source_format VARCHAR, nsys_version VARCHAR, schema_version VARCHAR, utc_epoch_ns BIGINT, duration_ns BIGINT,
    driver_version VARCHAR, cuda_version VARCHAR, graph_trace_mode VARCHAR);
CREATE TABLE processes (trace_id BIGINT, process_id BIGINT, pid BIGINT, process_name VARCHAR);
CREATE TABLE devices (trace_id BIGINT, device_id BIGINT, device_name VARCHAR, uuid VARCHAR, sm_count BIGINT,
    clock_hz BIGINT, memory_bandwidth_bytes_per_s BIGINT, l2_bytes BIGINT, peak_key VARCHAR);
CREATE TABLE ceilings (device_name VARCHAR, dtype VARCHAR, kind VARCHAR, condition VARCHAR, flop_per_s DOUBLE,
    bytes_per_s DOUBLE, source VARCHAR);
CREATE TABLE gpu_executions (trace_id BIGINT, gpu_execution_id BIGINT);
CREATE TABLE operators (trace_id BIGINT, process_id BIGINT, device_id BIGINT, phase VARCHAR, operator VARCHAR,
    direction VARCHAR, call_count BIGINT, kernel_count BIGINT, busy_ns BIGINT, exclusive_ns DOUBLE, share_pct DOUBLE,
    flop DOUBLE, bytes DOUBLE, dtype VARCHAR, dtype_count BIGINT, shapes VARCHAR, shape_count BIGINT,
    cost_source VARCHAR, cost_reason VARCHAR, costed_busy_ns DOUBLE, ideal_ns DOUBLE, ideal_measured_ns DOUBLE,
    flop_per_s DOUBLE, bytes_per_s DOUBLE, mfu_pct DOUBLE, mfu_points DOUBLE, sol_pct DOUBLE, sol_measured_pct DOUBLE,
    bound VARCHAR, recoverable_ns DOUBLE);
CREATE TABLE kernels (trace_id BIGINT, name VARCHAR, demangled_name VARCHAR, grid_x BIGINT, grid_y BIGINT,
    grid_z BIGINT, block_x BIGINT, block_y BIGINT, block_z BIGINT, kernel_class VARCHAR, count BIGINT, total_ns BIGINT,
    median_ns DOUBLE, p95_ns DOUBLE, operators VARCHAR[]);
CREATE TABLE steps (trace_id BIGINT, process_id BIGINT, step BIGINT, step_label VARCHAR, phase VARCHAR,
    start_ns BIGINT, end_ns BIGINT, wall_ns BIGINT, busy_ns BIGINT, is_measured BOOLEAN, is_contiguous BOOLEAN,
    items DOUBLE, tokens DOUBLE, flop DOUBLE, bytes DOUBLE, mfu_pct DOUBLE, hfu_pct DOUBLE, mbu_pct DOUBLE);
CREATE TABLE gaps (trace_id BIGINT, device_id BIGINT, process_id BIGINT, start_ns BIGINT, end_ns BIGINT,
    gap_ns BIGINT, step BIGINT, previous_execution_id BIGINT, next_execution_id BIGINT, cause VARCHAR,
    api_name VARCHAR, range_id BIGINT);
CREATE TABLE ledger (trace_id BIGINT, process_id BIGINT, device_id BIGINT, phase VARCHAR, component VARCHAR,
    position BIGINT, ns DOUBLE, pct DOUBLE);
CREATE TABLE unattributed (trace_id BIGINT, name VARCHAR, kernel_class VARCHAR, count BIGINT, busy_ns BIGINT,
    reason VARCHAR);
CREATE TABLE uncosted (trace_id BIGINT, operator VARCHAR, direction VARCHAR, busy_ns BIGINT, reason VARCHAR);
CREATE TABLE run_summary (trace_id BIGINT, phase VARCHAR, workload VARCHAR, variant VARCHAR, device_name VARCHAR,
    gpu_count BIGINT, process_count BIGINT, step_rule VARCHAR, step_count BIGINT, step_ns DOUBLE,
    traced_step_ns DOUBLE, untraced_step_ns DOUBLE, untraced_n BIGINT, step_median_ns DOUBLE, step_p95_ns DOUBLE,
    step_spread_pct DOUBLE, busy_pct DOUBLE, reference_dtype VARCHAR, reference_flop_per_s DOUBLE,
    bandwidth_bytes_per_s DOUBLE, ceiling_kind VARCHAR, flop_convention VARCHAR, cost_source VARCHAR,
    model_flop DOUBLE, mfu_pct DOUBLE, hfu_pct DOUBLE, mbu_pct DOUBLE, bound VARCHAR, sol_pct DOUBLE,
    sol_measured_pct DOUBLE, attributed_pct DOUBLE, costed_pct DOUBLE, items_per_s DOUBLE, energy_j_per_step DOUBLE,
    profiler_overhead_pct DOUBLE, sm_clock_hz DOUBLE, window_ns DOUBLE, window_rule VARCHAR);
CREATE TABLE warnings (trace_id BIGINT, code VARCHAR, severity VARCHAR, count BIGINT, message VARCHAR, hint VARCHAR);
"""

HOSTILE = (
    "pipe | in name",
    "<script>alert(1)</script>",
    "two\nlines\r\n# heading",
    "`tick` ``more`` \\| $x^2$ *bold* _it_ [a](http://b) @user #1",
    "\x1b[31mred\u202eesrever\x00 \N{CYRILLIC CAPITAL LETTER ZHE}\u4e2d",
    "void cutlass::device_kernel<cutlass::gemm::kernel::GemmUniversal<"
    + "cute::tuple<int, int>, " * 400
    + ">>(Params)",
)
MS = 1e6
Value = object


def insert(database: duckdb.DuckDBPyConnection, table: str, **row: Value) -> None:
    """One row; columns not named are NULL."""
    names, marks = ", ".join(row), ", ".join("?" for _ in row)
    database.execute(f"INSERT INTO {table} ({names}) VALUES ({marks})", list(row.values()))


def empty() -> duckdb.DuckDBPyConnection:
    """The schema without a row."""
    database = duckdb.connect()
    database.execute(SCHEMA)
    return database


def add_trace(database: duckdb.DuckDBPyConnection, trace_id: int, device: str, executions: int = 100) -> None:
    """A trace of one process on GPU 0; ceilings only for the H200."""
    insert(database, "traces", trace_id=trace_id, workload="transformer_layer", variant="base", rank=trace_id,
           source_file=f"layer{trace_id}.nsys-rep", source_format="nsys-rep", nsys_version="2024.2.3",
           duration_ns=400_000_000, driver_version="580.159", cuda_version="13.0", graph_trace_mode="node")  # fmt: skip
    insert(database, "processes", trace_id=trace_id, process_id=1 << 24, pid=4711, process_name="python3.11")
    insert(database, "devices", trace_id=trace_id, device_id=0, device_name=device, sm_count=132,
           clock_hz=1_980_000_000, memory_bandwidth_bytes_per_s=4_814_000_000_000,
           peak_key="H200" if device == "NVIDIA H200" else None)  # fmt: skip
    database.execute(f"INSERT INTO gpu_executions SELECT {trace_id}, range FROM range({executions})")


def add_ceilings(database: duckdb.DuckDBPyConnection) -> None:
    """The roofs of an H200."""
    for dtype, kind, condition, flop, nbytes in (
        ("bf16", "datasheet", "", 989.4e12, None),
        ("tf32", "datasheet", "", 494.7e12, None),
        ("fp32", "datasheet", "", 66.9e12, None),
        ("bytes", "datasheet", "", None, 4.8e12),
        ("bf16", "measured", "burst", 900e12, None),
        ("bf16", "measured", "sustained", 750e12, None),
        ("bytes", "measured", "burst", None, 4.4e12),
        ("bytes", "measured", "sustained", None, 4.1e12),
    ):
        insert(database, "ceilings", device_name="NVIDIA H200", dtype=dtype, kind=kind, condition=condition,
               flop_per_s=flop, bytes_per_s=nbytes,
               source="data sheet" if kind == "datasheet" else "calibrate")  # fmt: skip


def add_ledger(database: duckdb.DuckDBPyConnection, trace_id: int, phase: str, pcts: Sequence[tuple[str, float]],
               total_ns: float, device_id: int = 0) -> None:  # fmt: skip
    """Components in the order given, as percentages of `total_ns`."""
    for position, (component, pct) in enumerate(pcts, 1):
        insert(database, "ledger", trace_id=trace_id, process_id=1 << 24, device_id=device_id, phase=phase,
               component=component, position=position, ns=pct / 100 * total_ns, pct=pct)  # fmt: skip


TRAINING_LEDGER = (
    ("model_flop", 65.2), ("extra_flop", 1.1), ("precision", 0.0), ("memory_bound", 15.4), ("clock", -0.3),
    ("kernel_inefficiency", 9.9), ("no_cost_model", 3.0), ("exposed_communication", 0.0), ("exposed_copy", 0.0),
    ("idle_launch", 4.2), ("idle_sync", 1.6), ("idle_other", 0.02), ("unattributed_flop", -0.12),
)  # fmt: skip


def add_steps(database: duckdb.DuckDBPyConnection, trace_id: int, phase: str, walls_ms: Sequence[float]) -> None:
    """Steps back to back, the first not measured."""
    first = int(database.execute("SELECT count(*) FROM steps WHERE trace_id = ?", [trace_id]).fetchall()[0][0])
    for index, wall in enumerate(walls_ms, first):
        insert(database, "steps", trace_id=trace_id, process_id=1 << 24, step=index, step_label=f"step {index}",
               phase=phase, wall_ns=int(wall * MS), busy_ns=int(wall * 0.94 * MS), is_measured=index > first,
               mfu_pct=65.2, mbu_pct=21.0)  # fmt: skip


def add_operator(database: duckdb.DuckDBPyConnection, operator: str, busy_ms: float, **more: Value) -> None:
    """One row of `operators`; SOL, rates and recoverable time follow from FLOP and bytes against the H200's roofs."""
    row: dict[str, Value] = {"trace_id": 0, "process_id": 1 << 24, "device_id": 0, "phase": "", "direction": "forward",
                             "call_count": 2, "kernel_count": 2, "dtype": "bf16", "dtype_count": 1, "shape_count": 1,
                             "shapes": "[[16384, 4096], [4096, 16384]]"}  # fmt: skip
    flop, nbytes = more.pop("flop", None), more.pop("bytes", None)
    busy_ns = busy_ms * MS
    if isinstance(flop, float) and isinstance(nbytes, float):
        ideal, measured = (max(flop / p, nbytes / b) * 1e9 for p, b in ((989.4e12, 4.8e12), (900e12, 4.4e12)))
        row |= {"flop": flop, "bytes": nbytes, "cost_source": "shapes", "costed_busy_ns": busy_ns, "ideal_ns": ideal,
                "ideal_measured_ns": measured, "recoverable_ns": busy_ns - measured,
                "bound": "compute" if flop / 989.4e12 > nbytes / 4.8e12 else "memory"}  # fmt: skip
    insert(database, "operators", operator=operator, busy_ns=int(busy_ns), exclusive_ns=busy_ns, **(row | more))


def add_summary(database: duckdb.DuckDBPyConnection, **more: Value) -> None:
    """A training step of 33.262 ms on one H200, two steps measured."""
    row: dict[str, Value] = {
        "trace_id": 0, "phase": "", "workload": "transformer_layer", "variant": "base", "device_name": "NVIDIA H200",
        "gpu_count": 1, "process_count": 1, "step_rule": "dialect: step N", "step_count": 2, "step_ns": 33.262 * MS,
        "traced_step_ns": 33.262 * MS, "step_median_ns": 33.262 * MS, "step_p95_ns": 33.4 * MS, "step_spread_pct": 0.8,
        "busy_pct": 94.2, "reference_dtype": "bf16", "reference_flop_per_s": 989.4e12, "bandwidth_bytes_per_s": 4.8e12,
        "ceiling_kind": "measured", "flop_convention": "matmul 2MNK; attention full; backward 2.0 x forward",
        "cost_source": "shapes", "model_flop": 21.44e12, "mfu_pct": 65.2, "hfu_pct": 66.3, "mbu_pct": 21.0,
        "bound": "compute", "sol_pct": 81.3, "sol_measured_pct": 89.9, "attributed_pct": 100.0, "costed_pct": 96.8,
        "window_ns": 66.524 * MS, "window_rule": "measured steps",
    }  # fmt: skip
    insert(database, "run_summary", **(row | more))


def training() -> duckdb.DuckDBPyConnection:
    """One phase, three steps, operators of every kind of reason, negative ledger components."""
    database = empty()
    add_trace(database, 0, "NVIDIA H200")
    add_ceilings(database)
    add_summary(database)
    add_steps(database, 0, "", (41.0, 33.1, 33.424))
    add_ledger(database, 0, "", TRAINING_LEDGER, 66.524 * MS)
    add_operator(database, "aten::addmm", 16.9, flop=13.2e12, bytes=4.3e9, call_count=12, kernel_count=12)
    add_operator(database, "aten::addmm", 31.4, flop=26.4e12, bytes=9.1e9, direction="backward", call_count=24,
                 kernel_count=24, shapes=None, shape_count=3)  # fmt: skip
    add_operator(database, "aten::_scaled_dot_product_cudnn_attention", 5.1, flop=1.1e12, bytes=1.07e9,
                 shapes="[[8, 32, 2048, 128], [8, 32, 2048, 128]]")  # fmt: skip
    add_operator(database, "aten::relu", 1.31, flop=268e6, bytes=4.3e9)
    add_operator(database, "aten::native_layer_norm", 2.2, flop=600e6, bytes=1.07e9, direction="backward",
                 kernel_count=8)  # fmt: skip
    add_operator(database, "aten::add_", 0.08, flop=1e4, bytes=2e5, call_count=20, kernel_count=20, dtype="fp32")
    add_operator(database, "aten::embedding", 0.02, flop=1e5, bytes=4e8)
    add_operator(database, "my_ext::rotary", 2.0, cost_reason="no formula for this operator", dtype=None, dtype_count=0)
    add_operator(database, "(unattributed)", 0.4, direction="", shapes=None, shape_count=0, dtype=None)
    for cause, api, gap_us in (("launch", "cudaLaunchKernel", 900), ("launch", "cudaLaunchKernel", 1894),
                               ("sync", "cudaStreamSynchronize", 1064), ("other", None, 13)):  # fmt: skip
        insert(database, "gaps", trace_id=0, device_id=0, process_id=1 << 24, gap_ns=gap_us * 1000, step=1, cause=cause,
               api_name=api)  # fmt: skip
    insert(database, "kernels", trace_id=0, name="nvjet_hsh_256x128", demangled_name="nvjet_hsh_256x128_64x4_2x1_v_bz",
           grid_x=64, grid_y=16, grid_z=1, block_x=384, block_y=1, block_z=1, kernel_class="gemm", count=36,
           total_ns=48_300_000, median_ns=1_340_000.0, p95_ns=1_410_000.0, operators=["aten::addmm"])  # fmt: skip
    insert(database, "uncosted", trace_id=0, operator="my_ext::rotary", direction="forward", busy_ns=2_000_000,
           reason="no formula for this operator")  # fmt: skip
    insert(database, "unattributed", trace_id=0, name="memset", count=3, busy_ns=400_000, reason="no range at launch")
    insert(database, "warnings", trace_id=0, code="few_steps", severity="warning", count=2,
           message="2 measured steps: the spread says little", hint="profile more steps: --steps 20")  # fmt: skip
    insert(database, "warnings", trace_id=0, code="clock_not_measured", severity="info", count=1,
           message="the SM clock was not sampled: throttling shows up as kernel inefficiency",
           hint="capture with mfupipe profile")  # fmt: skip
    return database


def serving() -> duckdb.DuckDBPyConnection:
    """Two traces; the first has two phases, one bound by bytes, on two GPUs; names are hostile."""
    database = empty()
    for trace_id in (0, 1):
        add_trace(database, trace_id, "NVIDIA H200")
    insert(database, "devices", trace_id=0, device_id=1, device_name="NVIDIA H200", sm_count=132, peak_key="H200")
    add_ceilings(database)
    add_summary(database, phase="decode", step_count=40, step_ns=9.8 * MS, mfu_pct=3.1, mbu_pct=58.4,
                bound="memory", gpu_count=2, step_median_ns=9.7 * MS, step_p95_ns=11.0 * MS, step_spread_pct=6.1,
                untraced_step_ns=9.8 * MS,
                untraced_n=40, traced_step_ns=10.1 * MS, profiler_overhead_pct=3.1, items_per_s=408.2)  # fmt: skip
    add_summary(database, phase="prefill", step_count=3, step_ns=51.0 * MS, gpu_count=2)
    add_summary(database, trace_id=1)
    add_steps(database, 0, "decode", [12.0, *(9.5 + (index * 7 % 11) / 10 for index in range(40))])
    add_steps(database, 0, "prefill", (60.0, 51.0, 50.5, 51.5))
    add_steps(database, 1, "", (33.2, 33.1, 33.4))
    decode = (("model_flop", 3.1), ("memory_bound", 55.3), ("kernel_inefficiency", 12.0), ("no_cost_model", 5.0),
              ("exposed_communication", 8.6), ("exposed_copy", 1.0), ("idle_launch", 14.0), ("idle_sync", 4.1),
              ("profiler_overhead", -3.1))  # fmt: skip
    for device_id in (0, 1):
        add_ledger(database, 0, "decode", decode, 392 * MS, device_id)
        add_ledger(database, 0, "prefill", TRAINING_LEDGER, 153 * MS, device_id)
        for index, name in enumerate(HOSTILE):
            add_operator(database, name, 40.0 - index, phase="decode", device_id=device_id, flop=2e11, bytes=9e10,
                         shapes=name[:300], call_count=40, kernel_count=40)  # fmt: skip
            add_operator(database, name, 40.0 - index, phase="prefill", device_id=device_id, flop=2e12, bytes=1e9,
                         shapes=name[:300])  # fmt: skip
    add_ledger(database, 1, "", TRAINING_LEDGER, 66.524 * MS)
    add_operator(database, "aten::addmm", 30.0, trace_id=1, flop=22e12, bytes=9e9)
    for name in HOSTILE:
        insert(
            database,
            "kernels",
            trace_id=0,
            name=name[:60],
            demangled_name=name,
            grid_x=1,
            grid_y=1,
            grid_z=1,
            block_x=128,
            block_y=1,
            block_z=1,
            count=3,
            total_ns=5000,
            median_ns=1.0,
            p95_ns=2.0,
            operators=[name],
        )
        insert(database, "unattributed", trace_id=0, name=name, count=1, busy_ns=10, reason=name)
        insert(database, "warnings", trace_id=0, code="bad_annotation", severity="warning", count=1, message=name,
               hint=name)  # fmt: skip
        insert(database, "gaps", trace_id=0, device_id=0, process_id=1 << 24, gap_ns=1000, step=1, cause="launch",
               api_name=name)  # fmt: skip
    return database


def without_steps() -> duckdb.DuckDBPyConnection:
    """GPU work, no step found: the window is first to last execution."""
    database = training()
    database.execute("DELETE FROM steps")
    database.execute("DELETE FROM run_summary")
    add_summary(database, step_rule="none", step_count=0, step_ns=None, traced_step_ns=None, step_median_ns=None,
                step_p95_ns=None, step_spread_pct=None, mfu_pct=None, hfu_pct=None, mbu_pct=None, model_flop=None,
                window_rule="first to last execution")  # fmt: skip
    insert(database, "warnings", trace_id=0, code="no_step_rule", severity="warning", count=1,
           message="no step was found: no MFU", hint="name the steps: --step-range REGEX")  # fmt: skip
    return database


def unknown_gpu() -> duckdb.DuckDBPyConnection:
    """Steps and FLOP, but no peak: rates without percentages of a peak."""
    database = empty()
    add_trace(database, 0, "NVIDIA GB999 Prototype")
    add_summary(database, device_name="NVIDIA GB999 Prototype", reference_flop_per_s=None, bandwidth_bytes_per_s=None,
                ceiling_kind=None, mfu_pct=None, hfu_pct=None, mbu_pct=None, sol_pct=None, sol_measured_pct=None,
                step_ns=30.0 * MS, model_flop=15e12)  # fmt: skip
    add_steps(database, 0, "", (31.0, 30.0, 30.0))
    add_ledger(database, 0, "", (("no_cost_model", 90.0), ("idle_launch", 10.0)), 60 * MS)
    add_operator(database, "aten::mm", 54.0)
    database.execute("UPDATE operators SET flop = 30e12, bytes = 4e9, costed_busy_ns = 54e6, cost_source = 'shapes'")
    insert(database, "warnings", trace_id=0, code="unknown_gpu_peak", severity="warning", count=1,
           message="no peak known for NVIDIA GB999 Prototype",
           hint="--peak bf16=FLOP_PER_S,bytes=BYTES_PER_S")  # fmt: skip
    return database


def without_kernels() -> duckdb.DuckDBPyConnection:
    """A trace of the host only."""
    database = empty()
    add_trace(database, 0, "NVIDIA H200", executions=0)
    insert(database, "warnings", trace_id=0, code="no_kernel_data", severity="error", count=1,
           message="the trace holds no GPU execution", hint="capture with --trace=cuda,nvtx")  # fmt: skip
    return database
