"""The commands together, and the only place that turns an error into an exit code."""

from __future__ import annotations

import sys
import traceback
from typing import Annotated

import typer

import mfupipe
from mfupipe.cli.capture import calibrate, doctor, profile
from mfupipe.cli.output import problem
from mfupipe.cli.program import ProgramCommand
from mfupipe.cli.query import gpus, sql
from mfupipe.cli.traces import demo, ingest, report
from mfupipe.errors import MfupipeError

INTERRUPTED = 130

app = typer.Typer(
    help="From a Nsight Systems capture to MFU, speed of light per operator, and a ledger of every lost percent.",
    epilog="Exit codes: 0 done, 1 a bug, 2 usage, 3 environment, 4 the workload failed, 5 unusable trace, 6 a gate.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command(cls=ProgramCommand)(profile)
for command in (ingest, report, sql, doctor, gpus, calibrate, demo):
    app.command()(command)


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(mfupipe.__version__)
        raise typer.Exit


@app.callback()
def common(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print it.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks; may stand anywhere before a --.")] = False,
) -> None:
    """Options of every command; main() has taken --debug out already."""


def main(arguments: list[str] | None = None) -> None:
    """Run a command and exit with its code."""
    given = sys.argv[1:] if arguments is None else arguments
    ours = given.index("--") if "--" in given else len(given)
    debug = "--debug" in given[:ours]
    try:
        app([word for word in given[:ours] if word != "--debug"] + given[ours:], prog_name="mfupipe")
    except MfupipeError as error:
        _trace(debug)
        problem(error.message, error.hint, getattr(error, "__notes__", []))
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except Exception as error:  # noqa: BLE001 - the border of the program
        _trace(debug)
        again = "" if debug else "run it again with --debug, and "
        kind = type(error).__name__
        problem(f"a bug of mfupipe: {kind}: {error}", f"{again}report it", getattr(error, "__notes__", []))
        sys.exit(MfupipeError.exit_code)


def _trace(debug: bool) -> None:
    if debug:
        traceback.print_exc()
