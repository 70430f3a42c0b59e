"""Did what the capture was made for arrive? Ranges, kernels, every process, every launch."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import duckdb

from mfupipe.errors import UnusableTrace
from mfupipe.profile.messages import Note
from mfupipe.profile.nsys import bundled_cupti
from mfupipe.profile.request import CaptureKind
from mfupipe.profile.runner import ProfileResult

LOST_LIMIT_PCT = 5.0

COUNTS = """
WITH graph_launches AS (
    SELECT count(*) AS n
    FROM read_parquet($api_calls) AS a JOIN read_parquet($strings) AS s ON s.id = a.name_id
    WHERE regexp_matches(s.value, '^cu(da)?GraphLaunch')
),
launches AS (
    SELECT a.global_tid & ~16777215 AS global_pid, a.correlation_id
    FROM read_parquet($api_calls) AS a JOIN read_parquet($strings) AS s ON s.id = a.name_id
    WHERE regexp_matches(s.value, '^cu(da)?Launch.*Kernel')
),
lost AS (
    SELECT count(*) AS n FROM launches AS l
    WHERE NOT EXISTS (
        SELECT 1 FROM read_parquet($kernels) AS k
        WHERE k.global_pid = l.global_pid AND k.correlation_id = l.correlation_id
    )
)
SELECT
    (SELECT count(*) FROM read_parquet($kernels)) AS kernels,
    (SELECT count(*) FROM read_parquet($graph_traces)) AS graphs,
    (SELECT count(*) FROM read_parquet($nvtx_ranges)) AS ranges,
    (SELECT count(*) FROM launches) AS launches,
    (SELECT n FROM lost) AS lost,
    (SELECT count(DISTINCT global_pid) FROM launches) AS launching_processes,
    (SELECT count(DISTINCT global_pid) FROM read_parquet($kernels)) AS kernel_processes,
    (SELECT n FROM graph_launches) AS graph_launches
"""
TABLES = ("api_calls", "strings", "kernels", "graph_traces", "nvtx_ranges")


@dataclass(frozen=True)
class Counts:
    """What is in a trace. lost: kernel launches without a kernel; processes are counted by their launches
    and kernels."""

    kernels: int
    graphs: int
    ranges: int
    launches: int
    lost: int
    launching_processes: int
    kernel_processes: int
    graph_launches: int = 0


def check_raw(raw_trace: Path, result: ProfileResult) -> tuple[Note, ...]:
    """Look into the raw Parquet of a capture just made. Raises UnusableTrace when no GPU work is in it."""
    counts = count_rows(raw_trace)
    if counts.kernels == 0 and counts.graphs == 0:
        raise no_kernels(counts, result)
    checks = (
        lost_events(counts, result),
        no_ranges(counts, result),
        one_process(counts),
        graphs_only(counts),
    )
    return tuple(note for note in checks if note is not None)


def count_rows(raw_trace: Path) -> Counts:
    """Count what the checks need."""
    with duckdb.connect() as connection:
        paths = {name: str(raw_trace / f"{name}.parquet") for name in TABLES}
        row = connection.execute(COUNTS, paths).fetchone()
    assert row is not None
    return Counts(*row)


def no_kernels(counts: Counts, result: ProfileResult) -> UnusableTrace:
    """Nothing ran on a GPU, or its events did not survive."""
    held = f"0 kernels, {counts.launches} kernel launches, {counts.ranges} ranges"
    if counts.graph_launches:
        hint = f"run again with --graphs node; {_version_hint(result)}"
        return UnusableTrace(f"{counts.graph_launches} CUDA graph launches and no GPU work of them ({held})", hint)
    if counts.launches:
        return UnusableTrace(f"the capture holds no GPU work ({held}): the events were lost", _version_hint(result))
    hint = "is the program on the GPU inside the captured steps? see CUDA_VISIBLE_DEVICES, and mfupipe doctor"
    return UnusableTrace(f"the capture holds no GPU work ({held})", hint)


def lost_events(counts: Counts, result: ProfileResult) -> Note | None:
    """More launches without a kernel than the edges of a capture explain."""
    if counts.launches == 0 or 100 * counts.lost <= LOST_LIMIT_PCT * counts.launches:
        return None
    message = f"{counts.lost} of {counts.launches} kernel launches have no kernel in the capture: events were lost"
    return Note("lost_events", message, _version_hint(result))


def no_ranges(counts: Counts, result: ProfileResult) -> Note | None:
    """Not one range: steps and operators have no names."""
    if counts.ranges > 0:
        return None
    by_hand = result.target.capture.kind is not CaptureKind.AUTO
    old = result.nsys.version < (2025, 1, 0)
    why = (
        f"; Python nvtx 0.2.12 and later records nothing under nsys {result.nsys.version_text}"
        if by_hand and old
        else ""
    )
    hint = "pip install nvtx==0.2.11, or mark with mfupipe.annotate or torch.cuda.nvtx; mfupipe doctor tests it"
    return Note("no_ranges", f"{counts.kernels} kernels and not one NVTX range arrived{why}", hint)


def one_process(counts: Counts) -> Note | None:
    """Several processes launched, and the kernels of only some are here."""
    if counts.kernel_processes >= counts.launching_processes:
        return None
    message = (
        f"{counts.launching_processes} processes launched kernels, and kernels of {counts.kernel_processes} arrived"
    )
    return Note("kernels_of_some_processes", message, "start mfupipe once per rank with --per-rank")


def graphs_only(counts: Counts) -> Note | None:
    """CUDA graphs as whole rows: no kernel inside them is known."""
    if counts.graphs == 0 or counts.kernels > 0:
        return None
    message = f"all GPU work is {counts.graphs} whole CUDA graphs: no kernel inside them is visible"
    return Note("whole_graphs_only", message, "run again with --graphs node (slower, one row per kernel)")


def _version_hint(result: ProfileResult) -> str:
    cupti, driver = bundled_cupti(result.nsys), result.driver
    if cupti is not None and driver is not None and driver.cuda is not None and cupti < driver.cuda:
        versions = (
            f"nsys {result.nsys.version_text} is of CUDA {cupti[0]}.{cupti[1]}, the driver of "
            f"{driver.cuda[0]}.{driver.cuda[1]}"
        )
        return f"{versions}: use a newer nsys, or a capture range (--capture auto or api) instead of the whole run"
    return "use a newer nsys, or a capture range (--capture auto or api) instead of the whole run; mfupipe doctor"
