"""Commands that need the machine: profile, doctor, calibrate."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mfupipe.cli import options
from mfupipe.cli.output import progress, result, stage, table, warn
from mfupipe.cli.program import program

if TYPE_CHECKING:
    from mfupipe.pipeline import Overrides
    from mfupipe.profile import GraphMode, ProfileRequest

ENVIRONMENT = 3


def profile(
    ctx: typer.Context,
    workload: Annotated[str | None, typer.Argument(help="A workload of ours or a .py file; or -- COMMAND.")] = None,
    output: Annotated[Path | None, typer.Option("-o", "--output", metavar="RUN", help="New RUN directory.")] = None,
    variant: options.Variant = None,
    steps: Annotated[int, typer.Option(min=1, help="Steps to capture, and as many to time before.")] = 10,
    warmup: Annotated[int, typer.Option(min=0, help="Steps to let pass first.")] = 10,
    repeat: Annotated[int, typer.Option(min=1, help="Captures to make, one after the other.")] = 1,
    capture: Annotated[
        str | None, typer.Option(metavar="MODE", help="auto, api, all, time:DELAY+LENGTH [s] or nvtx:NAME.")
    ] = None,
    step_range: options.StepRange = None,
    graphs: Annotated[str | None, typer.Option(metavar="graph|node", help="Rows per CUDA graph or per node.")] = None,
    per_rank: Annotated[bool, typer.Option("--per-rank", help="One RUN.rankN per process of a launcher.")] = False,
    nsys: options.NsysPath = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the nsys line for a job script, run nothing.")
    ] = False,
) -> None:
    """Run a program under nsys and show how much of the GPU it used.

    mfupipe profile resnet50 --variant bf16, mfupipe profile train.py -- --epochs 1, mfupipe profile -o RUN -- ./program
    """
    from mfupipe.profile import ProfileRequest, RankNaming, parse_capture, run_directory

    request = ProfileRequest(
        workload=workload,
        arguments=program(ctx),
        variant=variant,
        steps=steps,
        warmup=warmup,
        capture=parse_capture(capture) if capture is not None else None,
        graphs=_graph_mode(graphs),
        ranks=RankNaming.PER_RANK if per_rank else RankNaming.ONE,
        nsys=nsys,
    )
    run_dir = run_directory(output if output is not None else _default_run(request), request.ranks)
    if dry_run:
        _print_line(request, run_dir)
    else:
        _profile_and_show(request, run_dir, options.said(step_range=step_range), repeat)


def doctor(nsys: options.NsysPath = None) -> None:
    """Is this machine fit to profile: nsys, a trial capture, nvtx, counters, GPU, peaks."""
    from mfupipe.devices import describe
    from mfupipe.doctor import State, examine, worst

    with stage("looking at nsys, with a trial capture"):
        checks = examine(nsys, describe)
    for check in checks:
        result(f"{check.state.value:<4}  {check.name}: {check.evidence}")
        if check.remedy and check.state is not State.OK:
            result(f"      try: {check.remedy}")
    if worst(checks) is State.FAIL:
        raise typer.Exit(ENVIRONMENT)


def calibrate(
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="Where to write; else where reports look.")
    ] = None,
    python: Annotated[str, typer.Option(help="A Python with torch.")] = sys.executable,
    seconds: Annotated[float, typer.Option(min=3.0, help="Length of each sustained measurement [s].")] = 3.0,
) -> None:
    """Measure what this GPU gives; reports on it then rank operators by that."""
    from mfupipe.calibrate import CalibrateOptions, calibrate, write_ceilings
    from mfupipe.devices import calibrated_path

    path = output if output is not None else calibrated_path()
    with stage("measuring matrix products and memory traffic"):
        ceilings = calibrate(CalibrateOptions(python, seconds))
    path.parent.mkdir(parents=True, exist_ok=True)
    write_ceilings(path, ceilings)
    columns = ("device_name", "dtype", "condition", "flop_per_s", "bytes_per_s")
    table(columns, ([getattr(row, column) for column in columns] for row in ceilings))
    progress(f"written to {path}" + ("" if output is None else f"; reports use it at {calibrated_path()}"))


def _default_run(request: ProfileRequest) -> Path:
    """A directory named after the program, in the current one."""
    from mfupipe.profile import resolve_target
    from mfupipe.profile.runner import file_name

    return Path(file_name(resolve_target(request).name, request.variant) + "-run")


def _graph_mode(text: str | None) -> GraphMode | None:
    from mfupipe.errors import UsageError
    from mfupipe.profile import GraphMode

    if text is None:
        return None
    if text not in (mode.value for mode in GraphMode):
        raise UsageError(f"no such graph mode: {text!r}", "--graphs graph, or --graphs node")
    return GraphMode(text)


def _print_line(request: ProfileRequest, run_dir: Path) -> None:
    from mfupipe.profile import dry_run, find_nsys, resolve_target

    sys.stdout.write(dry_run(find_nsys(request.nsys), request, resolve_target(request), run_dir))
    progress(f"then: mfupipe ingest {run_dir}*.nsys-rep -o {run_dir}")


def _profile_and_show(request: ProfileRequest, run_dir: Path, said: Overrides, repeat: int) -> None:
    from mfupipe.cli.headline import show_run
    from mfupipe.pipeline import profile_run

    for note in profile_run(request, run_dir, said, repeat, stage):
        warn("warning", note.code, note.message, note.hint)
    show_run(run_dir)
    result(f"next: mfupipe report {run_dir}")
