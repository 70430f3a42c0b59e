"""Digest and integrity of the whole source, found out in the background while its tables are copied."""

from __future__ import annotations

import hashlib
import sqlite3
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path

from mfupipe.ingest import refusals
from mfupipe.ingest.sources import Source, SqliteSource

CHUNK_BYTES = 1 << 20
STEPS_BETWEEN_LOOKS = 100_000
# What quick_check says of values, not of pages: such rows are read and counted as bad values.
ABOUT_VALUES = ("NULL value in", "TEXT value in", "NUMERIC value in", "non-", "CHECK constraint failed in")

Fingerprint = tuple[tuple[str, int, int], ...]


class Abandoned(Exception):
    """The copying failed first, so nobody wants the answer."""


@contextmanager
def examining(source: Path, opened: Source) -> Iterator[Future[str]]:
    """Yield the SHA-256 of `source` to be. Its result() raises UnusableTrace when the database is damaged."""
    abandoned = threading.Event()
    with ThreadPoolExecutor(max_workers=1) as pool:
        future = pool.submit(_examine, source, opened, abandoned)
        try:
            yield future
        finally:
            abandoned.set()


def fingerprint(source: Path) -> Fingerprint:
    """Name, size and modification time of each file of the source: what a writer would change."""
    return tuple((path.name, path.stat().st_size, path.stat().st_mtime_ns) for path in files_of(source))


def files_of(source: Path) -> tuple[Path, ...]:
    """The file, or the Parquet files of the directory in order."""
    return tuple(sorted(source.glob("*.parquet"))) if source.is_dir() else (source,)


def _examine(source: Path, opened: Source, abandoned: threading.Event) -> str:
    # Integrity first: a damaged file is the answer that should come early.
    if isinstance(opened, SqliteSource):
        damage = _damage(opened, abandoned)
        if damage is not None:
            raise refusals.database_error(source, damage)
    return _digest(files_of(source), abandoned)


def _damage(database: SqliteSource, abandoned: threading.Event) -> str | None:
    """First complaint about the structure of the file. Every page is read, none is kept: about 1 s per GB."""
    try:
        with closing(database.connect()) as connection:
            connection.text_factory = bytes
            connection.set_progress_handler(abandoned.is_set, STEPS_BETWEEN_LOOKS)
            # Trees and pages are checked before values, so the first line tells which kind of complaint there is.
            line = connection.execute("PRAGMA quick_check(1)").fetchone()[0].decode("utf-8", "replace")
    except sqlite3.DatabaseError as error:
        if abandoned.is_set():
            raise Abandoned from error
        return str(error)
    complaint = " ".join(line.removeprefix("*** in database main ***").split())
    return None if complaint == "ok" or complaint.startswith(ABOUT_VALUES) else complaint


def _digest(files: tuple[Path, ...], abandoned: threading.Event) -> str:
    total = hashlib.sha256()
    buffer = bytearray(CHUNK_BYTES)
    view = memoryview(buffer)
    for path in files:
        with path.open("rb", buffering=0) as file:
            while count := file.readinto(buffer):
                if abandoned.is_set():
                    raise Abandoned
                total.update(view[:count])
    return total.hexdigest()
