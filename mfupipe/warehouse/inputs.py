"""Tables that the queries read but no query makes: raw Parquet, options, peaks, costs of shapes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.csv as pacsv

from mfupipe import costs, devices
from mfupipe.errors import UnusableTrace
from mfupipe.paths import PACKAGE
from mfupipe.run import RAW_NAME, BuildOptions, Manifest

UNKNOWN_GPU = "(unknown GPU)"
RAW_TABLES = (
    "trace",
    "strings",
    "nvtx_ranges",
    "nvtx_domains",
    "api_calls",
    "kernels",
    "memcpys",
    "memsets",
    "graph_traces",
    "graph_node_events",
    "gpus",
    "cuda_devices",
    "processes",
    "diagnostics",
    "findings",
)
# written by profile only
OPTIONAL_TABLES = {
    "untraced_steps": "index BIGINT, wall_ns BIGINT",
    "nvml_samples": "utc_ns BIGINT, gpu_uuid VARCHAR, sm_clock_hz BIGINT, power_w DOUBLE, energy_j DOUBLE",
}
SHAPE_COSTS_SCHEMA = pa.schema(
    [
        ("operator", pa.string()),
        ("shapes", pa.string()),
        ("flop", pa.float64()),
        ("extra_flop", pa.float64()),
        ("flop_min", pa.float64()),
        ("elements", pa.float64()),
        ("index_bytes", pa.float64()),
        ("reason", pa.string()),
        ("note", pa.string()),
        ("causal_unknown", pa.bool_()),
    ]
)


def create_raw_views(connection: duckdb.DuckDBPyConnection, run_dir: Path) -> None:
    """Make a temporary view raw_NAME of each raw table over all traces, with trace_id in front.

    Raises UnusableTrace when a trace lacks a table.
    """
    traces = sorted((run_dir / RAW_NAME).glob("trace_id=*"), key=_trace_id)
    if not traces:
        raise UnusableTrace(f"{run_dir} holds no raw trace", "ingest the trace again into a new RUN")
    for name in RAW_TABLES:
        files = [folder / f"{name}.parquet" for folder in traces]
        absent = next((file for file in files if not file.is_file()), None)
        if absent is not None:
            raise UnusableTrace(f"{absent} is missing", "ingest the trace again into a new RUN")
        _create_view(connection, name, files)
    for name, columns in OPTIONAL_TABLES.items():
        present = [folder / f"{name}.parquet" for folder in traces if (folder / f"{name}.parquet").is_file()]
        if present:
            _create_view(connection, name, present)
        else:
            connection.execute(f"CREATE TEMP TABLE raw_{name} (trace_id BIGINT, {columns})")


def _trace_id(folder: Path) -> int:
    return int(folder.name.removeprefix("trace_id="))


def _create_view(connection: duckdb.DuckDBPyConnection, name: str, files: list[Path]) -> None:
    """One scan over all files: a branch for each would cost memory per trace."""
    listed = ", ".join(f"'{_quoted(file)}'" for file in files)
    connection.execute(
        f"""
        CREATE TEMP VIEW raw_{name} AS
        SELECT
            regexp_extract(filename, 'trace_id=([0-9]+)[^0-9]{name}[.]parquet$', 1)::BIGINT AS trace_id,
            * EXCLUDE (filename)
        FROM read_parquet([{listed}], filename = true, hive_partitioning = false, union_by_name = true)
        """
    )


def _quoted(path: Path) -> str:
    """A path inside an SQL string that read_parquet does not take for a pattern."""
    plain = str(path.resolve())
    for character in "[*?":
        plain = plain.replace(character, f"[{character}]") if character != "[" else plain.replace("[", "[[]")
    return plain.replace("'", "''")


def create_options(connection: duckdb.DuckDBPyConnection, options: BuildOptions, manifest: Manifest) -> None:
    """Make _options (one row), _manifest_traces and _warning_codes."""
    _create(
        connection,
        "_options",
        pa.table(
            {
                "step_regex": pa.array([options.step_regex], pa.string()),
                "step_flop": pa.array([options.step_flop], pa.float64()),
                "step_items": pa.array([options.step_items], pa.float64()),
                "flop_convention": pa.array([options.flop_convention], pa.string()),
                "reference_dtype": pa.array([options.reference_dtype], pa.string()),
                "ceiling": pa.array([options.ceiling], pa.string()),
            }
        ),
    )
    traces = manifest.traces
    _create(
        connection,
        "_manifest_traces",
        pa.table(
            {
                "trace_id": pa.array([trace.trace_id for trace in traces], pa.int64()),
                "workload": pa.array([trace.workload for trace in traces], pa.string()),
                "variant": pa.array([trace.variant for trace in traces], pa.string()),
                "rank": pa.array([trace.rank for trace in traces], pa.int64()),
                "flop_convention": pa.array([trace.flop_convention for trace in traces], pa.string()),
            }
        ),
    )
    _create(connection, "_warning_codes", pacsv.read_csv(PACKAGE / "warning_codes.csv"))


PEAKS_SCHEMA = pa.schema([("trace_id", pa.int64()), ("gpu_id", pa.int64()), *devices.PEAKS_SCHEMA])


@dataclass(frozen=True)
class _SeenGpu:
    """A GPU that a trace lists."""

    trace_id: int
    gpu_id: int
    name: str
    sm_count: int | None
    clock_hz: int | None
    bytes_per_s: int | None


# key of the peaks of devices that a capture uses and does not list
UNLISTED_GPU = _SeenGpu(-1, -1, UNKNOWN_GPU, None, None, None)


def create_peaks(connection: duckdb.DuckDBPyConnection, options: BuildOptions) -> None:
    """Make _peaks (by GPU of a trace, the user's in place of the datasheet's), _device_peaks and _device_problems."""
    rows = connection.execute(
        "SELECT trace_id, gpu_id, name, sm_count, clock_hz, memory_bandwidth_bytes_per_s FROM raw_gpus"
    ).fetchall()
    gpus = [_SeenGpu(*row) for row in rows if row[2] is not None]
    peaks: list[dict[str, object]] = []
    problems: list[tuple[_SeenGpu, devices.DeviceProblem]] = []
    for gpu in gpus:
        table, found = devices.ceilings_for([(gpu.name, gpu.sm_count, gpu.clock_hz, gpu.bytes_per_s)])
        peaks += [_peak(gpu, row) for row in _with_user_peaks(table.to_pylist(), gpu.name, options.peaks)]
        problems += [(gpu, problem) for problem in found]
    peaks += [_peak(UNLISTED_GPU, row) for row in _with_user_peaks([], UNKNOWN_GPU, options.peaks)]
    _create(connection, "_peaks", pa.Table.from_pylist(peaks, schema=PEAKS_SCHEMA))
    known = [(gpu, devices.lookup(gpu.name, gpu.sm_count)) for gpu in gpus]
    named = [(gpu, device) for gpu, device in known if device is not None]
    _create(
        connection,
        "_device_peaks",
        pa.table(
            {
                "trace_id": pa.array([gpu.trace_id for gpu, _ in named], pa.int64()),
                "gpu_id": pa.array([gpu.gpu_id for gpu, _ in named], pa.int64()),
                "peak_key": pa.array([device.key for _, device in named], pa.string()),
                "tensor_peak_hz": pa.array([device.tensor_peak_hz for _, device in named], pa.int64()),
            }
        ),
    )
    _create(
        connection,
        "_device_problems",
        pa.table(
            {
                "trace_id": pa.array([gpu.trace_id for gpu, _ in problems], pa.int64()),
                "gpu_id": pa.array([gpu.gpu_id for gpu, _ in problems], pa.int64()),
                "code": pa.array([problem.code for _, problem in problems], pa.string()),
                "detail": pa.array([problem.detail for _, problem in problems], pa.string()),
            }
        ),
    )


def _peak(gpu: _SeenGpu, row: dict[str, object]) -> dict[str, object]:
    return {"trace_id": gpu.trace_id, "gpu_id": gpu.gpu_id, **row}


def _with_user_peaks(rows: list[dict[str, object]], name: str, peaks: dict[str, float]) -> list[dict[str, object]]:
    """The rows with the stated peaks as datasheet ones, and without measured ceilings that lie above them."""

    def agrees(row: dict[str, object]) -> bool:
        stated = peaks.get(str(row["dtype"]))
        measured = row["bytes_per_s"] if row["dtype"] == "bytes" else row["flop_per_s"]
        return stated is None or (row["kind"] == "measured" and isinstance(measured, float) and measured <= stated)

    return [row for row in rows if agrees(row)] + [
        {
            "device_name": name,
            "sm_count": None,
            "dtype": dtype,
            "kind": "datasheet",
            "condition": "user",
            "flop_per_s": None if dtype == "bytes" else value,
            "bytes_per_s": value if dtype == "bytes" else None,
            "source": "stated with --peak",
            "key": "user",
        }
        for dtype, value in peaks.items()
    ]


def create_shape_costs(connection: duckdb.DuckDBPyConnection) -> None:
    """Make _shape_costs: the formula's answer for each distinct (operator, sizes) of the RUN, SHAPE_COSTS_SCHEMA."""
    wanted = connection.execute("""
        SELECT name, shapes FROM _messages WHERE shapes IS NOT NULL
        UNION
        SELECT _messages.name, _solved_sizes.sizes FROM _solved_sizes INNER JOIN _messages USING (message_id)
        """).fetchall()
    rows = [(operator, shapes, costs.shape_cost(operator, shapes)) for operator, shapes in wanted]
    _create(
        connection,
        "_shape_costs",
        pa.Table.from_pylist(
            [
                {
                    "operator": operator,
                    "shapes": shapes,
                    **{name: getattr(cost, name) for name in SHAPE_COSTS_SCHEMA.names[2:]},
                }
                for operator, shapes, cost in rows
            ],
            schema=SHAPE_COSTS_SCHEMA,
        ),
    )


def _create(connection: duckdb.DuckDBPyConnection, name: str, table: pa.Table) -> None:
    connection.register("arriving", table)
    connection.execute(f"CREATE TABLE {name} AS SELECT * FROM arriving")
    connection.unregister("arriving")
