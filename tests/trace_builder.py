"""Small traces written by hand: raw Parquet as `mfupipe ingest` would write it, and a RUN built from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from mfupipe import warehouse
from mfupipe.run import RAW_NAME, BuildOptions, Manifest, TraceEntry, write_manifest
from tests.raw_schemas import RAW_SCHEMAS

Value = int | str | bool | None
Row = dict[str, Value]

PID = 1
PROCESS = PID << 24
MAIN_THREAD = PROCESS | 1
BACKWARD_THREAD = PROCESS | 2
OTHER_PROCESS_THREAD = (2 << 24) | 1
HOST_TO_DEVICE, DEVICE_TO_HOST, DEVICE_TO_DEVICE = 1, 2, 8
PUSH_POP, START_END = 59, 60

H200: Row = {
    "name": "NVIDIA H200",
    "sm_count": 132,
    "clock_hz": 1_980_000_000,
    "memory_bandwidth_bytes_per_s": 4_814_208_000_000,
    "l2_bytes": 62_914_560,
    "memory_bytes": 150_754_820_096,
    "chip_name": "GH100",
    "compute_major": 9,
    "compute_minor": 0,
}


@dataclass
class Trace:
    """Rows of one trace, collected by one call each. Times in ns. Every execution is launched by a call of its own."""

    tables: dict[str, list[Row]] = field(default_factory=lambda: {table: [] for table in RAW_SCHEMAS})
    strings: dict[str, int] = field(default_factory=dict)
    gpu: Row = field(default_factory=lambda: dict(H200))

    def range(
        self,
        start: int,
        end: int | None,
        text: str,
        *,
        thread: int = MAIN_THREAD,
        domain: int = 0,
        event_type: int = PUSH_POP,
    ) -> None:
        """An NVTX range."""
        self._add(
            "nvtx_ranges",
            start_ns=start,
            end_ns=end,
            event_type=event_type,
            text=text,
            domain_id=domain,
            global_tid=thread,
        )

    def domain(self, domain: int, name: str, *, process: int = PROCESS) -> None:
        """Name of an NVTX domain."""
        self._add("nvtx_domains", domain_id=domain, global_pid=process, name=name)

    def api(self, name: str, start: int, end: int, *, thread: int = MAIN_THREAD, correlation: int | None = None) -> int:
        """A CUDA API call; returns its correlation id."""
        correlation = len(self.tables["api_calls"]) + 1 if correlation is None else correlation
        self._add(
            "api_calls",
            start_ns=start,
            end_ns=end,
            global_tid=thread,
            correlation_id=correlation,
            name_id=self._string(name),
        )
        return correlation

    def kernel(
        self,
        name: str,
        start: int,
        end: int,
        *,
        at: int | None,
        thread: int = MAIN_THREAD,
        stream: int = 7,
        device: int = 0,
        correlation: int | None = None,
        graph_node: int | None = None,
    ) -> None:
        """A kernel, launched by a call of 1 ns at `at`; None: by the call of `correlation`, or by none in the trace."""
        self._add(
            "kernels",
            **self._execution(start, end, at, thread, stream, device, correlation, "cudaLaunchKernel"),
            demangled_name_id=self._string(f"void {name}<float>(float*)"),
            short_name_id=self._string(name),
            graph_node_id=graph_node,
            registers_per_thread=32,
            static_shared_memory_bytes=0,
            dynamic_shared_memory_bytes=0,
            **dict.fromkeys(("grid_x", "block_x"), 128),
            **dict.fromkeys(("grid_y", "grid_z", "block_y", "block_z"), 1),
        )

    def memcpy(
        self,
        start: int,
        end: int,
        *,
        at: int | None,
        size: int = 1024,
        copy_kind: int = HOST_TO_DEVICE,
        thread: int = MAIN_THREAD,
        stream: int = 8,
        device: int = 0,
    ) -> None:
        """A copy of `size` bytes, launched at `at`."""
        common = self._execution(start, end, at, thread, stream, device, None, "cudaMemcpyAsync")
        self._add("memcpys", **common, bytes=size, copy_kind=copy_kind)

    def memset(self, start: int, end: int, *, at: int | None, size: int = 1024, device: int = 0) -> None:
        """A memset of `size` bytes, launched at `at`."""
        common = self._execution(start, end, at, MAIN_THREAD, 7, device, None, "cudaMemsetAsync")
        self._add("memsets", **common, bytes=size)

    def graph(self, start: int, end: int, *, at: int | None, device: int = 0) -> None:
        """One execution of a whole CUDA graph, launched at `at`."""
        common = self._execution(start, end, at, MAIN_THREAD, 7, device, None, "cudaGraphLaunch")
        self._add("graph_traces", **common, graph_id=1, graph_exec_id=2)

    def node(self, node: int, at: int, *, original: int | None = None, thread: int = MAIN_THREAD) -> None:
        """Creation of a CUDA graph node (or its clone from `original`) at `at`."""
        self._add(
            "graph_node_events",
            start_ns=at,
            end_ns=at + 1,
            global_tid=thread,
            graph_node_id=node,
            original_graph_node_id=original,
        )

    def write(self, directory: Path) -> None:
        """Write one Parquet file per raw table into `directory` (RUN/raw/trace_id=N)."""
        directory.mkdir(parents=True)
        rows = self.tables | self._context()
        for table, schema in RAW_SCHEMAS.items():
            pq.write_table(pa.Table.from_pylist(rows[table], schema=schema), directory / f"{table}.parquet")

    def reversed(self) -> Trace:
        """The same trace with its rows in the opposite order (row ids follow the order)."""
        tables = {table: [dict(row) for row in reversed(rows)] for table, rows in self.tables.items()}
        for rows in tables.values():
            for index, row in enumerate(rows):
                if "row_id" in row:
                    row["row_id"] = index + 1
        return Trace(tables, dict(self.strings), dict(self.gpu))

    def _execution(
        self,
        start: int,
        end: int,
        at: int | None,
        thread: int,
        stream: int,
        device: int,
        correlation: int | None,
        api: str,
    ) -> Row:
        if at is not None:
            correlation = self.api(api, at, at + 1, thread=thread)
        return {
            "start_ns": start,
            "end_ns": end,
            "global_pid": thread & ~0xFFFFFF,
            "device_id": device,
            "context_id": 1,
            "stream_id": stream,
            "correlation_id": correlation,
        }

    def _add(self, table: str, **values: Value) -> None:
        rows = self.tables[table]
        if "row_id" in RAW_SCHEMAS[table].names:
            values["row_id"] = len(rows) + 1
        rows.append(values)

    def _string(self, value: str) -> int:
        return self.strings.setdefault(value, len(self.strings) + 1)

    def _context(self) -> dict[str, list[Row]]:
        """Tables that follow from the events: strings, processes, devices, the trace's own row."""
        executions = [row for name in ("kernels", "memcpys", "memsets", "graph_traces") for row in self.tables[name]]
        threads = [*self.tables["api_calls"], *self.tables["nvtx_ranges"]]
        placed = sorted({(_integer(row, "global_pid"), _integer(row, "device_id")) for row in executions})
        processes = {process for process, _ in placed} | {_integer(row, "global_tid") & ~0xFFFFFF for row in threads}
        times = [_integer(row, "end_ns") for row in [*executions, *threads] if row["end_ns"] is not None]
        return {
            "trace": [self._trace_row(max(times, default=0) + 1_000_000)],
            "strings": [{"id": identifier, "value": value} for value, identifier in self.strings.items()],
            "processes": [{"global_pid": each, "pid": _pid(each), "name": "python3"} for each in sorted(processes)],
            "gpus": [self._gpu_row(device) for device in sorted({device for _, device in placed})],
            "cuda_devices": [self._cuda_device_row(process, device) for process, device in placed],
        }

    def _gpu_row(self, device: int) -> Row:
        return {**self.gpu, "gpu_id": device, "cuda_device": device, "uuid": f"GPU-{device}"}

    def _cuda_device_row(self, process: int, device: int) -> Row:
        sm_count = self.gpu["sm_count"]
        return {"pid": _pid(process), "cuda_device": device, "gpu_id": device, "sm_count": sm_count}

    @staticmethod
    def _trace_row(duration: int) -> Row:
        return {
            "source_file": "made_by_hand.sqlite",
            "source_format": "sqlite",
            "nsys_version": "2024.5.1",
            "schema_version": "3.16.0",
            "duration_ns": duration,
            "is_time_normalized": False,
            "time_shift_ns": 0,
        }


def build_run(run_dir: Path, traces: Sequence[Trace], options: BuildOptions | None = None) -> Path:
    """Write the traces as trace 0, 1, ... of a new RUN, build its database, and return its path."""
    for trace_id, trace in enumerate(traces):
        trace.write(run_dir / RAW_NAME / f"trace_id={trace_id}")
    chosen = options or BuildOptions()
    entries = tuple(TraceEntry(trace_id=trace_id, source_file="made_by_hand.sqlite") for trace_id in range(len(traces)))
    write_manifest(run_dir, Manifest(traces=entries, options=chosen))
    warehouse.build(run_dir, chosen)
    return run_dir


def _pid(process: int) -> int:
    return process >> 24 & 0xFFFFFF


def _integer(row: Row, column: str) -> int:
    value = row[column]
    assert isinstance(value, int)
    return value
