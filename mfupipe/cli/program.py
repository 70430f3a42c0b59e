"""A command that takes another program's command line after `--`."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperCommand

PROGRAM = "mfupipe.program"


class ProgramCommand(TyperCommand):
    """Keeps what follows the first `--` out of the parser's hands; `program` gives it back."""

    # Any: newer typer brings its own copy of click, older typer takes the installed one.
    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse what precedes `--`."""
        end = args.index("--") if "--" in args else len(args)
        ctx.meta[PROGRAM] = tuple(args[end + 1 :])
        return super().parse_args(ctx, args[:end])


def program(ctx: typer.Context) -> tuple[str, ...]:
    """The words after `--`."""
    words: tuple[str, ...] = ctx.meta[PROGRAM]
    return words
