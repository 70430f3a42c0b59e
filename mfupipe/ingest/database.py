"""Is this SQLite file whole, free, and what it says it is: decided before anything is read from it."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

from mfupipe.ingest import refusals
from mfupipe.ingest.sources import SqliteSource

MAGIC = b"SQLite format 3\0"
HEADER_BYTES = 100
LOCK_WAIT_S = 4.0
WRITE_AHEAD_LOG = 2
SMALLEST_PAGE, LARGEST_PAGE = 512, 65536


def opened(source: Path, path: Path, scratch: Path) -> SqliteSource:
    """The database at `path` (that `source` is or became), ready to be read without a write beside it.

    A database in write-ahead mode is copied to `scratch` first, since reading it would leave files beside it. Raises
    UnusableTrace: locked, damaged, half written.
    """
    header = read_start(path)[:HEADER_BYTES]
    log = _beside(path, "-wal")
    if WRITE_AHEAD_LOG in header[18:20] or log is not None:
        path = _copied(path, log, scratch)
    else:
        path = _unlocked(source, path, scratch)
    if log is None:
        _refuse_damaged_header(source, path)
    link = scratch / "source.sqlite"
    link.symlink_to(path.absolute())
    return SqliteSource(link)


def read_start(path: Path, count: int = 4096) -> bytes:
    """The first bytes of a file."""
    with path.open("rb") as file:
        return file.read(count)


def header_damage(header: bytes, size: int) -> str | None:
    """What the 100 bytes of a database header and the size of its file have against each other; None when they agree.

    Source of the layout: https://www.sqlite.org/fileformat2.html section 1.3.
    """
    page_size = int.from_bytes(header[16:18], "big")
    page_size = LARGEST_PAGE if page_size == 1 else page_size
    if not SMALLEST_PAGE <= page_size <= LARGEST_PAGE or page_size.bit_count() != 1:
        return f"its header gives a page size of {page_size} bytes"
    if header[24:28] != header[92:96]:  # written by an SQLite that did not keep the page count
        return f"it ends inside a page ({size:,} bytes)" if size % page_size else None
    expected = int.from_bytes(header[28:32], "big") * page_size
    if size < expected:
        return f"it was truncated and ends after {size:,} of {expected:,} bytes"
    if size > expected:
        return f"its writing was interrupted: {size:,} bytes where its header speaks of {expected:,}"
    return None


def _refuse_damaged_header(source: Path, path: Path) -> None:
    damage = header_damage(read_start(path)[:HEADER_BYTES], path.stat().st_size)
    if damage is not None:
        raise refusals.damaged(source, damage)


def _unlocked(source: Path, path: Path, scratch: Path) -> Path:
    """The path once no writer holds it; a copy where the file system knows no locks."""
    try:
        _read_once(path)
    except sqlite3.DatabaseError as error:
        is_locked = "locked" in str(error)
        if not is_locked and _beside(path, "-journal") is not None:
            raise refusals.damaged(source, f"its writing was interrupted and left {path.name}-journal") from error
        if not is_locked:
            _refuse_damaged_header(source, path)
        if is_locked or not isinstance(error, sqlite3.OperationalError):
            raise refusals.database_error(source, str(error), LOCK_WAIT_S) from error
        return _copied(path, None, scratch)
    return path


def _read_once(path: Path) -> None:
    uri = f"{path.absolute().as_uri()}?mode=ro"
    with closing(sqlite3.connect(uri, uri=True, timeout=LOCK_WAIT_S)) as connection:
        connection.text_factory = bytes
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()


def _copied(path: Path, log: Path | None, scratch: Path) -> Path:
    copy = scratch / "copy.sqlite"
    shutil.copyfile(path, copy)
    if log is not None:
        shutil.copyfile(log, scratch / "copy.sqlite-wal")
    return copy


def _beside(path: Path, suffix: str) -> Path | None:
    companion = path.with_name(path.name + suffix)
    return companion if companion.is_file() and companion.stat().st_size else None
