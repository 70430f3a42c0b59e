"""Commands that need files only: ingest, report, demo."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mfupipe.cli import options
from mfupipe.cli.output import result, stage
from mfupipe.errors import UsageError
from mfupipe.run import read_manifest

if TYPE_CHECKING:
    from mfupipe.pipeline import Intake, Overrides

UNUSABLE = 5


def ingest(
    traces: Annotated[list[Path], typer.Argument(metavar="TRACE...", help=".nsys-rep, .qdrep, .sqlite(.gz), Parquet.")],
    output: Annotated[Path, typer.Option("-o", "--output", metavar="RUN", help="New RUN directory.")],
    workload: options.Workload = None,
    variant: options.Variant = None,
    step_range: options.StepRange = None,
    step_flop: options.StepFlop = None,
    step_items: options.StepItems = None,
    flop_convention: options.FlopConvention = None,
    reference_dtype: options.ReferenceDtype = None,
    peak: options.Peak = None,
    nsys: options.NsysPath = None,
) -> None:
    """Turn captures into a RUN: Parquet files and a DuckDB database."""
    from mfupipe.cli.headline import show_run
    from mfupipe.pipeline import Intake, ingest_run

    said = options.said(step_range, step_flop, step_items, flop_convention, reference_dtype, peak)
    ingest_run(tuple(traces), output, Intake(workload, variant, said.flop_convention, nsys), said, stage)
    show_run(output)
    result(f"next: mfupipe report {output}")


def report(
    source: Annotated[
        Path, typer.Argument(metavar="RUN|TRACE", help="A RUN, or a capture that is ingested on the way.")
    ],
    output: Annotated[Path | None, typer.Option("-o", "--output", metavar="DIR", help="New directory.")] = None,
    workload: options.Workload = None,
    variant: options.Variant = None,
    step_range: options.StepRange = None,
    step_flop: options.StepFlop = None,
    step_items: options.StepItems = None,
    flop_convention: options.FlopConvention = None,
    reference_dtype: options.ReferenceDtype = None,
    peak: options.Peak = None,
    ceiling: options.CeilingKind = None,
    nsys: options.NsysPath = None,
) -> None:
    """Write report.html, report.md, report.json and the figures."""
    from mfupipe.pipeline import Intake

    said = options.said(step_range, step_flop, step_items, flop_convention, reference_dtype, peak, ceiling)
    out_dir = output if output is not None else Path(f"{source.name.partition('.')[0] or 'trace'}-report")
    if out_dir.exists() and not _is_report(out_dir):
        _refuse(out_dir)
    _report(source, out_dir, Intake(workload, variant, said.flop_convention, nsys), said)


def demo(
    output: Annotated[Path, typer.Option("-o", "--output", metavar="DIR", help="New directory.")] = Path(
        "mfupipe-demo"
    ),
) -> None:
    """The report of a real capture that ships with mfupipe; no GPU, no nsys, no network."""
    from mfupipe.paths import DEMO_CAPTURE
    from mfupipe.pipeline import Intake, Overrides

    if output.exists():
        _refuse(output)
    _report(DEMO_CAPTURE, output, Intake("transformer_layer", "bf16"), Overrides())


def _report(source: Path, out_dir: Path, intake: Intake, said: Overrides) -> None:
    """Write it, and show its headline. Exits with 5 after it when the trace holds no GPU work."""
    from mfupipe import warehouse
    from mfupipe.cli.conditions import report_context
    from mfupipe.cli.headline import has_gpu_work, show
    from mfupipe.pipeline import report_target
    from mfupipe.report import write_report

    with (
        report_target(source, intake, said, stage) as target,
        warehouse.open_run(target.run_dir, target.options) as connection,
    ):
        with stage("drawing the report"):
            files = write_report(connection, out_dir, context=report_context(source, read_manifest(target.run_dir)))
        show(connection)
        complete = has_gpu_work(connection)
    result(f"written: {files.html}")
    if not complete:
        raise typer.Exit(UNUSABLE)


def _refuse(out_dir: Path) -> None:
    raise UsageError(f"{out_dir} exists and is not written over", "give another -o, or remove it first")


def _is_report(path: Path) -> bool:
    """True for a directory that holds a report of ours and nothing else."""
    names = {entry.name for entry in path.iterdir()} if path.is_dir() else set()
    return "report.json" in names and all(re.fullmatch(r"report\.(html|md|json)|\w+\.png", name) for name in names)
