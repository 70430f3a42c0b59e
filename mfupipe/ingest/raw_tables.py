"""The raw tables that are copied row by row: which columns, and what an export of any year calls them.

Tables and columns are probed. A table that the trace lacks gives no rows, a column that it lacks gives NULL.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

KERNEL = "CUPTI_ACTIVITY_KIND_KERNEL"
RUNTIME = "CUPTI_ACTIVITY_KIND_RUNTIME"
NVTX = "NVTX_EVENTS"
STRINGS = "StringIds"


class Kind(Enum):
    """How a value is carried over."""

    INTEGER = "INTEGER"
    TIME = "TIME"  # ns; what the export added to the session clock is taken off
    PROCESS = "PROCESS"  # the process of an execution; where a table has none, the only process of the trace
    TEXT = "TEXT"

    @property
    def sql_type(self) -> str:
        """Type of the column in Parquet."""
        return "VARCHAR" if self is Kind.TEXT else "BIGINT"


@dataclass(frozen=True)
class Column:
    """A raw column; `sources` are its names in exports, the newest first."""

    name: str
    sources: tuple[str, ...]
    kind: Kind = Kind.INTEGER


@dataclass(frozen=True)
class RawTable:
    """A raw table, taken from the first of `sources` that has the column `needs`, the only one that `condition` uses.

    has_row_id: rows are events, whose order in the source is kept.
    """

    name: str
    sources: tuple[str, ...]
    columns: tuple[Column, ...]
    needs: str
    condition: str = "true"
    has_row_id: bool = True


def _columns(text: str, kind: Kind = Kind.INTEGER) -> tuple[Column, ...]:
    """'name=source' or 'name=new|old' for each column."""
    pairs = (word.split("=") for word in text.split())
    return tuple(Column(name, tuple(sources.split("|")), kind) for name, sources in pairs)


_SPAN = _columns("start_ns=start end_ns=end", Kind.TIME)
_WHERE = (
    *_columns("global_pid=globalPid", Kind.PROCESS),
    *_columns("device_id=deviceId context_id=contextId stream_id=streamId correlation_id=correlationId"),
)

API_CALLS = RawTable(
    "api_calls",
    (RUNTIME,),
    (*_SPAN, *_columns("global_tid=globalTid correlation_id=correlationId name_id=nameId")),
    needs="start",
)
NVTX_RANGES = RawTable(
    "nvtx_ranges",
    (NVTX,),
    (
        *_SPAN,
        *_columns("event_type=eventType"),
        *_columns("text=text", Kind.TEXT),
        *_columns("text_id=textId domain_id=domainId global_tid=globalTid end_global_tid=endGlobalTid"),
    ),
    needs="eventType",
    # Push/pop and start/end ranges, and the same imported from nvtxt logs; the other event types are no ranges.
    condition='"eventType" IN (59, 60, 70, 71)',
)
KERNELS = RawTable(
    "kernels",
    (KERNEL,),
    (
        *_SPAN,
        *_WHERE,
        *_columns("demangled_name_id=demangledName short_name_id=shortName"),
        *_columns("grid_x=gridX grid_y=gridY grid_z=gridZ block_x=blockX block_y=blockY block_z=blockZ"),
        *_columns("registers_per_thread=registersPerThread static_shared_memory_bytes=staticSharedMemory"),
        *_columns("dynamic_shared_memory_bytes=dynamicSharedMemory graph_node_id=graphNodeId graph_id=graphId"),
        *_columns("green_context_id=greenContextId"),
    ),
    needs="start",
)
MEMCPYS = RawTable(
    "memcpys",
    ("CUPTI_ACTIVITY_KIND_MEMCPY",),
    (
        *_SPAN,
        *_WHERE,
        *_columns("bytes=bytes copy_kind=copyKind src_device_id=srcDeviceId dst_device_id=dstDeviceId"),
        *_columns("graph_node_id=graphNodeId"),
    ),
    needs="start",
)
MEMSETS = RawTable(
    "memsets",
    ("CUPTI_ACTIVITY_KIND_MEMSET",),
    (*_SPAN, *_WHERE, *_columns("bytes=bytes graph_node_id=graphNodeId")),
    needs="start",
)
GRAPH_TRACES = RawTable(
    "graph_traces",
    ("CUPTI_ACTIVITY_KIND_GRAPH_TRACE",),
    (*_SPAN, *_WHERE, *_columns("graph_id=graphId graph_exec_id=graphExecId")),
    needs="start",
)
GRAPH_NODE_EVENTS = RawTable(
    "graph_node_events",
    # Up to 2023.4 CUDA_GRAPH_EVENTS holds node creation; since 2024.2 it holds graphs, and the nodes have a table.
    ("CUDA_GRAPH_NODE_EVENTS", "CUDA_GRAPH_EVENTS"),
    (
        *_SPAN,
        *_columns("global_tid=globalTid graph_node_id=graphNodeId original_graph_node_id=originalGraphNodeId"),
    ),
    needs="graphNodeId",
)
GPUS = RawTable(
    "gpus",
    # TARGET_INFO_CUDA_GPU: up to early 2021; of its columns only those whose meaning is the same are taken.
    ("TARGET_INFO_GPU", "TARGET_INFO_CUDA_GPU"),
    (
        *_columns("gpu_id=id|deviceId cuda_device=cuDevice|deviceId"),
        *_columns("name=name uuid=uuid", Kind.TEXT),
        *_columns("sm_count=smCount|numMultiprocessors clock_hz=clockRate"),
        *_columns("memory_bandwidth_bytes_per_s=memoryBandwidth l2_bytes=l2CacheSize memory_bytes=totalMemory"),
        *_columns("chip_name=chipName", Kind.TEXT),
        *_columns(
            "compute_major=computeMajor|computeCapabilityMajor compute_minor=computeMinor|computeCapabilityMinor"
        ),
    ),
    needs="name",
    has_row_id=False,
)
CUDA_DEVICES = RawTable(
    "cuda_devices",
    ("TARGET_INFO_CUDA_DEVICE",),
    (
        *_columns("pid=pid cuda_device=cudaId gpu_id=gpuId"),
        *_columns("uuid=uuid", Kind.TEXT),
        *_columns("sm_count=numMultiprocessors"),
    ),
    needs="cudaId",
    has_row_id=False,
)

# API calls first: the process of executions without one comes from them.
COPIED = (
    API_CALLS,
    NVTX_RANGES,
    KERNELS,
    MEMCPYS,
    MEMSETS,
    GRAPH_TRACES,
    GRAPH_NODE_EVENTS,
    GPUS,
    CUDA_DEVICES,
)

# Columns of kept tables that are ids of strings.
NAME_COLUMNS = (
    ("kernels", "demangled_name_id"),
    ("kernels", "short_name_id"),
    ("api_calls", "name_id"),
    ("nvtx_ranges", "text_id"),
)

# Columns of kept tables that tell which processes have events; a thread id is its process with 24 low bits set.
PROCESS_COLUMNS = (
    ("kernels", "global_pid"),
    ("memcpys", "global_pid"),
    ("memsets", "global_pid"),
    ("graph_traces", "global_pid"),
    ("api_calls", "global_tid"),
    ("nvtx_ranges", "global_tid"),
)
PROCESS_MASK = ~0xFFFFFF
