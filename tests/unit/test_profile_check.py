"""What is looked for in a capture just made: kernels, launches, ranges, every process, kernels inside graphs."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mfupipe.errors import UnusableTrace
from mfupipe.profile import ProfileResult, check_raw, parse_capture
from mfupipe.profile.nsys import Nsys
from mfupipe.profile.nvml import Driver
from mfupipe.profile.request import Target

PROCESS = 1 << 24


def result(nsys: Path = Path("nsys"), capture: str = "api") -> ProfileResult:
    return ProfileResult(
        report=Path("x.nsys-rep"),
        nsys=Nsys(nsys, (2023, 4, 4), ""),
        target=Target(("python",), "python", parse_capture(capture)),
        exit_code=0,
        untraced_step_ns=(),
        status=None,
        steps=None,
        samples=(),
        driver=Driver("580", (13, 0), ()),
        notes=(),
        manifest={},
    )


def write(
    directory: Path,
    launches: list[tuple[int, int]],
    kernels: list[tuple[int, int]],
    *,
    graphs: int = 0,
    ranges: int = 1,
    call: str = "cudaLaunchKernelExC_v11060",
) -> Path:
    """launches and kernels: (process number, correlation id)."""
    tables: dict[str, dict[str, list[int] | list[str]]] = {
        "strings": {"id": [1], "value": [call]},
        "api_calls": {
            "global_tid": [pid * PROCESS + 5 for pid, _ in launches],
            "correlation_id": [correlation for _, correlation in launches],
            "name_id": [1] * len(launches),
        },
        "kernels": {
            "global_pid": [pid * PROCESS for pid, _ in kernels],
            "correlation_id": [correlation for _, correlation in kernels],
        },
        "graph_traces": {"row_id": list(range(graphs))},
        "nvtx_ranges": {"row_id": list(range(ranges))},
    }
    for name, columns in tables.items():
        types = {key: pa.string() if key == "value" else pa.int64() for key in columns}
        arrays = {key: pa.array(values, type=types[key]) for key, values in columns.items()}
        pq.write_table(pa.table(arrays), directory / f"{name}.parquet")
    return directory


def codes(directory: Path, capture: str = "api") -> list[str]:
    return [note.code for note in check_raw(directory, result(capture=capture))]


def test_a_whole_capture_raises_no_note(tmp_path: Path) -> None:
    launches = [(1, n) for n in range(40)]
    assert codes(write(tmp_path, launches, launches[1:])) == []


def test_the_same_correlation_in_another_process_is_no_kernel_of_the_launch(tmp_path: Path) -> None:
    launches = [(1, n) for n in range(10)] + [(2, n) for n in range(10)]
    notes = check_raw(write(tmp_path, launches, [(1, n) for n in range(10)]), result())
    assert [note.code for note in notes] == ["lost_events", "kernels_of_some_processes"]
    assert "10 of 20 kernel launches" in notes[0].message
    assert "2 processes launched kernels, and kernels of 1 arrived" in notes[1].message
    assert "--per-rank" in notes[1].hint


def test_lost_events_name_both_cuda_versions(tmp_path: Path) -> None:
    (tmp_path / "libcupti.so.12.4").touch()
    launches = [(1, n) for n in range(898)]
    notes = check_raw(write(tmp_path, launches, launches[:1]), result(tmp_path / "nsys"))
    assert "897 of 898" in notes[0].message
    assert "of CUDA 12.4, the driver of 13.0" in notes[0].hint


def test_no_gpu_work_at_all_is_an_error_with_the_counts(tmp_path: Path) -> None:
    with pytest.raises(UnusableTrace, match="0 kernels, 0 kernel launches, 3 ranges"):
        check_raw(write(tmp_path, [], [], ranges=3), result())
    with pytest.raises(UnusableTrace, match="the events were lost"):
        check_raw(write(tmp_path, [(1, 1)], []), result())


def test_no_ranges_point_at_nvtx_unless_mfupipe_made_them(tmp_path: Path) -> None:
    directory = write(tmp_path, [(1, 1)], [(1, 1)], ranges=0)
    (by_hand,) = check_raw(directory, result())
    assert by_hand.code == "no_ranges" and "nvtx 0.2.12" in by_hand.message
    (automatic,) = check_raw(directory, result(capture="auto"))
    assert "nvtx 0.2.12" not in automatic.message


def test_whole_graphs_only_asks_for_node_mode(tmp_path: Path) -> None:
    (note,) = check_raw(write(tmp_path, [], [], graphs=5), result())
    assert note.code == "whole_graphs_only" and "--graphs node" in note.hint


def test_graph_launches_without_any_row_are_told_the_graph_mode_that_shows_them(tmp_path: Path) -> None:
    """Seen with nsys 2023.4 under a driver of CUDA 13 and --cuda-graph-trace=graph."""
    directory = write(tmp_path, [(1, n) for n in range(5)], [], call="cudaGraphLaunch_v10000")
    with pytest.raises(UnusableTrace, match="5 CUDA graph launches and no GPU work of them") as raised:
        check_raw(directory, result())
    assert "--graphs node" in raised.value.hint
