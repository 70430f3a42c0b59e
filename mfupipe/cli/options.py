"""Options that several commands share, and what they say about a trace."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from mfupipe.pipeline import Overrides


class Ceiling(StrEnum):
    """The ceiling that ranks operators."""

    MEASURED = "measured"
    DATASHEET = "datasheet"


Workload = Annotated[str | None, typer.Option(help="Name of the workload in the report.")]
Variant = Annotated[str | None, typer.Option(help="Name of the variant, for example bf16.")]
NsysPath = Annotated[
    Path | None, typer.Option("--nsys", help="The nsys to use, or its directory; else it is looked for.")
]
StepRange = Annotated[
    str | None,
    typer.Option("--step-range", metavar="REGEX", help="Ranges that are steps (full match; group 1: phase)."),
]
StepFlop = Annotated[float | None, typer.Option(metavar="FLOP", help="Model FLOP of one step, when you know it.")]
StepItems = Annotated[float | None, typer.Option(metavar="N", help="Items (images, sequences) of one step.")]
FlopConvention = Annotated[str | None, typer.Option(metavar="NAME", help="How the FLOP were counted; printed.")]
ReferenceDtype = Annotated[str | None, typer.Option(metavar="DTYPE", help="Dtype of the peak in MFU; bf16 as a rule.")]
Peak = Annotated[
    list[str] | None,
    typer.Option("--peak", metavar="DTYPE=NUMBER", help="Peaks by hand: bf16=989.4e12,bytes=4.8e12 (FLOP/s, bytes/s)."),
]
CeilingKind = Annotated[Ceiling | None, typer.Option("--ceiling", help="Ceiling that ranks operators.")]


def said(
    step_range: str | None = None,
    step_flop: float | None = None,
    step_items: float | None = None,
    flop_convention: str | None = None,
    reference_dtype: str | None = None,
    peak: list[str] | None = None,
    ceiling: Ceiling | None = None,
) -> Overrides:
    """What the user said, checked. Raises UsageError for a bad regular expression, number, dtype or peak."""
    from mfupipe.pipeline import Overrides

    _check_regex(step_range)
    _check_positive("--step-flop", step_flop)
    _check_positive("--step-items", step_items)
    _check_dtype(reference_dtype)
    return Overrides(
        step_regex=step_range,
        step_flop=step_flop,
        step_items=step_items,
        flop_convention=flop_convention or ("user" if step_flop is not None else None),
        peaks=_peaks(peak),
        reference_dtype=reference_dtype,
        ceiling=ceiling.value if ceiling is not None else None,
    )


def _peaks(given: list[str] | None) -> dict[str, float] | None:
    if not given:
        return None
    from mfupipe.devices import parse_peaks

    return parse_peaks(",".join(given))


def _check_regex(text: str | None) -> None:
    """DuckDB matches with RE2, so RE2 decides what a regular expression is."""
    if text is None:
        return
    import duckdb

    from mfupipe.errors import UsageError

    try:
        with duckdb.connect() as connection:
            connection.execute("SELECT regexp_full_match('', $pattern)", {"pattern": text})
    except duckdb.Error as error:
        raise UsageError(f"--step-range {text!r}: {error}", "--step-range 'iter(ation)? ?[0-9]+'") from None


def _check_positive(option: str, value: float | None) -> None:
    from mfupipe.errors import UsageError

    if value is not None and not 0 < value < float("inf"):
        raise UsageError(f"{option} {value:g} is no positive number", f"{option} 1.047e12")


def _check_dtype(dtype: str | None) -> None:
    if dtype is None:
        return
    from mfupipe.devices import DTYPES
    from mfupipe.errors import UsageError

    if dtype not in DTYPES:
        raise UsageError(f"--reference-dtype {dtype!r} is not one of {', '.join(DTYPES)}", "--reference-dtype bf16")
