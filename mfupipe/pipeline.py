"""The stages in their order: captures become a RUN, and a RUN or a lone trace becomes something to report on."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import mfupipe
from mfupipe import ingest, warehouse
from mfupipe.errors import UsageError
from mfupipe.profile import Note, ProfileRequest, ProfileResult, RankNaming, check_raw, profile
from mfupipe.profile.request import process_rank
from mfupipe.run import RAW_NAME, BuildOptions, Manifest, TraceEntry, is_run, new_run, read_manifest, write_manifest

Stage = Callable[[str], AbstractContextManager[ingest.Progress]]
"""Tells the user what is being done while the block runs, and how far it is."""


@dataclass(frozen=True)
class Intake:
    """How traces are taken in: what the user calls them, and the nsys that exports reports."""

    workload: str | None = None
    variant: str | None = None
    flop_convention: str | None = None
    nsys: Path | None = None


@dataclass(frozen=True)
class Overrides:
    """Options as the user gave them now; None where nothing was said. Fields as in BuildOptions."""

    step_regex: str | None = None
    step_flop: float | None = None
    step_items: float | None = None
    flop_convention: str | None = None
    peaks: dict[str, float] | None = None
    reference_dtype: str | None = None
    ceiling: str | None = None

    def over(self, recorded: BuildOptions) -> BuildOptions:
        """The recorded options, with what was said now in their place."""
        return replace(recorded, **{name: value for name, value in vars(self).items() if value is not None})


@dataclass(frozen=True)
class ReportTarget:
    """A RUN to report on, and the options to see it with."""

    run_dir: Path
    options: BuildOptions


def ingest_run(traces: tuple[Path, ...], run_dir: Path, intake: Intake, said: Overrides, stage: Stage) -> None:
    """Turn traces (trace_id 0, 1, ...) into a RUN, whole or not at all.

    Raises UsageError when `run_dir` exists, UnusableTrace when any trace cannot be used, EnvironmentProblem.
    """
    with new_run(run_dir) as staging:
        _fill(traces, staging, intake, said.over(BuildOptions()), stage)


@contextmanager
def report_target(source: Path, intake: Intake, said: Overrides, stage: Stage) -> Iterator[ReportTarget]:
    """The RUN itself, or a temporary one of a trace. Raises what ingest raises, UsageError when nothing is there."""
    if is_run(source):
        yield ReportTarget(source, said.over(read_manifest(source).options))
        return
    if not source.exists():
        raise UsageError(f"no such RUN or trace: {source}", "mfupipe report RUN|TRACE")
    with tempfile.TemporaryDirectory(prefix="mfupipe-") as scratch:
        run_dir = Path(scratch) / "run"
        run_dir.mkdir()
        options = said.over(BuildOptions())
        _fill((source,), run_dir, intake, options, stage)
        yield ReportTarget(run_dir, options)


def profile_run(request: ProfileRequest, run_dir: Path, said: Overrides, repeat: int, stage: Stage) -> tuple[Note, ...]:
    """Capture a program `repeat` times (trace_id 0, 1, ...) into a RUN; what is worth knowing about the captures.

    Raises what profile and ingest raise. A capture that exists when a later stage fails is kept beside `run_dir`.
    """
    results: list[ProfileResult] = []
    entries: list[TraceEntry] = []
    notes: list[Note] = []
    options = said.over(BuildOptions())
    with new_run(run_dir.absolute()) as staging:  # nsys names its report by an absolute path
        try:
            for trace_id in range(repeat):
                results.append(profile(request, _capture_folder(staging, trace_id, repeat)))
                entry, found = _take_in(request, results[-1], staging, trace_id, stage)
                entries.append(entry)
                notes += found
            write_manifest(staging, _manifest(results, entries, options))
            with stage("building the tables"):
                warehouse.build(staging, options)
        except BaseException as error:
            for result in results:
                _keep(result, run_dir, error)
            raise
    return tuple(dict.fromkeys(notes))


def raw_directory(run_dir: Path, trace_id: int) -> Path:
    """RUN/raw/trace_id=N, where the Parquet files of a trace are."""
    return run_dir / RAW_NAME / f"trace_id={trace_id}"


def _fill(traces: tuple[Path, ...], run_dir: Path, intake: Intake, options: BuildOptions, stage: Stage) -> None:
    entries = tuple(_ingest(trace, run_dir, trace_id, intake, stage) for trace_id, trace in enumerate(traces))
    write_manifest(run_dir, Manifest(entries, options, None, mfupipe.__version__))
    with stage("building the tables"):
        warehouse.build(run_dir, options)


def _ingest(trace: Path, run_dir: Path, trace_id: int, intake: Intake, stage: Stage) -> TraceEntry:
    with stage(f"reading {trace.name}") as progress:
        raw = raw_directory(run_dir, trace_id)
        info = ingest.write_raw(trace, raw, trace_id=trace_id, nsys=intake.nsys, progress=progress)
    return TraceEntry(
        trace_id,
        info.source_file,
        info.source_sha256,
        intake.workload,
        intake.variant,
        info.rank,
        intake.flop_convention,
    )


def _capture_folder(staging: Path, trace_id: int, repeat: int) -> Path:
    folder = staging if repeat == 1 else staging / f"capture{trace_id}"
    folder.mkdir(exist_ok=True)
    return folder


def _take_in(
    request: ProfileRequest, result: ProfileResult, staging: Path, trace_id: int, stage: Stage
) -> tuple[TraceEntry, tuple[Note, ...]]:
    raw = raw_directory(staging, trace_id)
    with stage(f"reading {result.report.name}") as progress:
        info = ingest.write_raw(result.report, raw, trace_id=trace_id, nsys=result.nsys.path, progress=progress)
    found = check_raw(raw, result)
    result.write_records(raw)
    rank = process_rank() if request.ranks is RankNaming.PER_RANK else None
    entry = TraceEntry(
        trace_id=trace_id,
        source_file=info.source_file,
        source_sha256=info.source_sha256,
        workload=result.target.name,
        variant=request.variant,
        rank=int(rank) if rank is not None else info.rank,
        flop_convention=result.steps.flop_convention if result.steps is not None else None,
    )
    return entry, (*result.notes, *found)


def _manifest(results: list[ProfileResult], entries: list[TraceEntry], options: BuildOptions) -> Manifest:
    first = results[0]
    items = first.steps.items_per_step if first.steps is not None else None
    recorded: dict[str, object] = {**first.manifest, "repeat": len(results), "items_per_step": items}
    return Manifest(tuple(entries), options, recorded, mfupipe.__version__)


def _keep(result: ProfileResult, run_dir: Path, error: BaseException) -> None:
    """Move a capture out of the staging directory, which is about to be removed, and note it on the error."""
    folder = result.report.parent.name
    number = "" if folder.startswith(".") else f".{folder}"
    place = run_dir.with_name(f"{run_dir.name}{number}.nsys-rep")
    if result.report.is_file() and not place.exists():
        shutil.move(result.report, place)
        error.add_note(f"the capture is kept: {place}")
