"""The canonical raw tables between ingest and build: columns are BIGINT unless marked :text or :boolean."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

_TABLES = """
trace source_file:text source_format:text source_bytes nsys_version:text schema_version:text utc_epoch_ns duration_ns
    is_time_normalized:boolean time_shift_ns times_filter:text start_trigger:text graph_trace_mode:text rank
    driver_version:text cuda_version:text
strings id value:text
nvtx_ranges row_id start_ns end_ns event_type text:text text_id domain_id global_tid end_global_tid
nvtx_domains domain_id global_pid name:text
api_calls row_id start_ns end_ns global_tid correlation_id name_id
kernels row_id start_ns end_ns global_pid device_id context_id stream_id correlation_id demangled_name_id short_name_id
    grid_x grid_y grid_z block_x block_y block_z registers_per_thread static_shared_memory_bytes
    dynamic_shared_memory_bytes graph_node_id graph_id green_context_id
memcpys row_id start_ns end_ns global_pid device_id context_id stream_id correlation_id bytes copy_kind src_device_id
    dst_device_id graph_node_id
memsets row_id start_ns end_ns global_pid device_id context_id stream_id correlation_id bytes graph_node_id
graph_traces row_id start_ns end_ns global_pid device_id context_id stream_id correlation_id graph_id graph_exec_id
graph_node_events row_id start_ns end_ns global_tid graph_node_id original_graph_node_id
gpus gpu_id cuda_device name:text uuid:text sm_count clock_hz memory_bandwidth_bytes_per_s l2_bytes memory_bytes
    chip_name:text compute_major compute_minor
cuda_devices pid cuda_device gpu_id uuid:text sm_count
processes global_pid pid name:text
diagnostics severity text:text
findings code:text count detail:text
"""
_TYPES = {"": pa.int64(), "text": pa.string(), "boolean": pa.bool_()}


def _schema(columns: list[str]) -> pa.Schema:
    fields = [column.partition(":") for column in columns]
    return pa.schema([(name, _TYPES[kind]) for name, _, kind in fields])


def _schemas() -> dict[str, pa.Schema]:
    lines = _TABLES.replace("\n    ", " ").strip().splitlines()
    return {table: _schema(columns) for table, *columns in (line.split() for line in lines)}


RAW_SCHEMAS: Mapping[str, pa.Schema] = _schemas()
