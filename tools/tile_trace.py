"""Make a large SQLite export out of a small real one: `python tools/tile_trace.py SMALL.sqlite[.gz] BIG.sqlite COPIES`.

Every event is repeated COPIES times. Each copy is later by the span of the small trace and has its own correlation ids,
op_ids and autograd sequence numbers: names are as distinct as in a capture of that length, and links stay unique.
"""

from __future__ import annotations

import gzip
import re
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

# The numbers of `seq = 12`, `op_id = 34`, and of the producers in `input_op_ids = [(34,0), (0,-1)]`; 0 is no producer.
NUMBERS = re.compile(r"((?<=seq = )\d+|(?<=op_id = )\d+|(?<=\()[1-9]\d*(?=,-?\d+\)))")
EVENTS = ("CUPTI_ACTIVITY_KIND_", "NVTX_EVENTS", "PROFILER_OVERHEAD")
Cell = int | float | str | bytes | None


@dataclass(frozen=True)
class Shift:
    """What one copy adds. span_ns [ns]; numbers: enough to keep op_ids and sequence numbers of two copies apart."""

    origin_ns: int
    span_ns: int
    correlations: int
    numbers: int


def tile(small: sqlite3.Connection, big: sqlite3.Connection, copies: int) -> None:
    """Write every table of `small` into `big`, events repeated."""
    shift = read_shift(small)
    tables = small.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table' AND sql IS NOT NULL").fetchall()
    for name, sql in tables:
        big.execute(sql)
        columns = [column[1] for column in small.execute(f'PRAGMA table_info("{name}")')]
        rows = small.execute(f'SELECT * FROM "{name}"').fetchall()
        is_event = name.startswith(EVENTS) and "start" in columns
        marks = ",".join("?" * len(columns))
        written = repeated(columns, rows, shift, copies) if is_event else iter(rows)
        big.executemany(f'INSERT INTO "{name}" VALUES ({marks})', written)
    big.commit()


def read_shift(small: sqlite3.Connection) -> Shift:
    """The span from the first call to the last event, and the ranges of ids."""
    first, last_call, correlation = small.execute(
        'SELECT min(start), max("end"), max(correlationId) FROM CUPTI_ACTIVITY_KIND_RUNTIME'
    ).fetchone()
    (last_kernel,) = small.execute('SELECT max("end") FROM CUPTI_ACTIVITY_KIND_KERNEL').fetchone()
    texts = small.execute("SELECT text FROM NVTX_EVENTS WHERE text IS NOT NULL").fetchall()
    largest = max((int(number) for (text,) in texts for number in NUMBERS.findall(text)), default=0)
    return Shift(first, max(last_call, last_kernel) - first + 1000, correlation + 1, largest + 1)


def repeated(
    columns: Sequence[str], rows: list[tuple[Cell, ...]], shift: Shift, copies: int
) -> Iterator[tuple[Cell, ...]]:
    """What happened long before the first call stays once (creation of graph nodes); the rest comes `copies` times."""
    start = columns.index("start")
    early = [row for row in rows if int(row[start] or 0) < shift.origin_ns - shift.span_ns]
    yield from early
    once = set(early)
    late = [row for row in rows if row not in once]
    times = [index for index, name in enumerate(columns) if name in ("start", "end")]
    correlation = columns.index("correlationId") if "correlationId" in columns else None
    text = columns.index("text") if "text" in columns else None
    pieces = [NUMBERS.split(str(row[text])) if text is not None and row[text] is not None else None for row in late]
    for copy in range(copies):
        for row, split in zip(late, pieces, strict=True):
            changed = list(row)
            for index in times:
                changed[index] = _added(row[index], copy * shift.span_ns)
            if correlation is not None:
                changed[correlation] = _added(row[correlation], copy * shift.correlations)
            if text is not None and split is not None:
                changed[text] = _renumbered(split, copy * shift.numbers)
            yield tuple(changed)


def _added(cell: Cell, amount: int) -> Cell:
    return cell + amount if isinstance(cell, int) else cell


def _renumbered(split: list[str], amount: int) -> str:
    """Odd pieces are numbers."""
    return "".join(str(int(piece) + amount) if index % 2 else piece for index, piece in enumerate(split))


def unpacked(source: Path, scratch: Path) -> Path:
    """The file itself, or what is in the .gz."""
    if source.suffix != ".gz":
        return source
    target = scratch / source.stem
    with gzip.open(source) as packed, target.open("wb") as plain:
        shutil.copyfileobj(packed, plain)
    return target


def make(source: Path, target: Path, copies: int) -> None:
    """Write `target`, whole or not at all."""
    beside = target.with_name(f".{target.name}.part")
    beside.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        plain = unpacked(source, Path(scratch))
        with closing(sqlite3.connect(plain)) as small, closing(sqlite3.connect(beside)) as big:
            big.execute("PRAGMA journal_mode = off")
            big.execute("PRAGMA synchronous = off")
            tile(small, big, copies)
    beside.replace(target)


if __name__ == "__main__":
    make(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))
    print(f"{Path(sys.argv[2]).stat().st_size:,} bytes")
