"""What cannot be read is refused with its reason, before anything of it is published."""

from __future__ import annotations

import errno
import gzip
import os
import random
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from mfupipe.errors import EnvironmentProblem, MfupipeError, UnusableTrace, UsageError
from mfupipe.ingest import database, examine, identify, write_raw
from tests.oracle.source import unpack
from tests.runs import CAPTURES, CASE_DIRECTORIES
from tests.unit.ingest_export import (
    KERNEL,
    PROCESS,
    THREAD,
    integers,
    pairs,
    read_raw,
    small,
    write_parquet,
    write_sqlite,
)

PAGE = 4096
LAYER = "h200_cuda_graph_node"


def refused(source: Path, tmp_path: Path) -> MfupipeError:
    """The error; and that nothing is left where the tables would be."""
    raw = tmp_path / "raw" / "trace_id=0"
    with pytest.raises(MfupipeError) as caught:
        write_raw(source, raw, trace_id=0)
    assert list(raw.parent.iterdir() if raw.parent.exists() else []) == []
    assert caught.value.hint
    return caught.value


def written(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def test_a_git_lfs_pointer_is_named(tmp_path: Path) -> None:
    error = refused(CASE_DIRECTORIES["lfs_pointer"] / "trace.sqlite", tmp_path)
    assert error.exit_code == 5
    assert "not a database" in error.message and "Git LFS pointer" in error.message
    assert "git lfs pull" in error.hint


@pytest.mark.parametrize("suffix", [".nsys-rep", ".qdrep", ".sqlite.gz"])
def test_a_git_lfs_pointer_is_named_under_every_suffix(suffix: str, tmp_path: Path) -> None:
    text = (CASE_DIRECTORIES["lfs_pointer"] / "trace.sqlite").read_bytes()
    assert "Git LFS pointer" in refused(written(tmp_path / f"a{suffix}", text), tmp_path).message


def test_a_file_cut_in_half_is_damaged_and_says_where_it_ends(tmp_path: Path) -> None:
    error = refused(CASE_DIRECTORIES["truncated_file"] / "trace.sqlite", tmp_path)
    assert error.exit_code == 5
    assert "damaged file" in error.message and "ends after 40,960 of" in error.message


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "damaged file: it is empty"),
        (bytes(3 * PAGE), "damaged file: it begins with zeros"),
        (b"<html>404</html>", "not a database"),
        (b"SQLite format 3\0", "damaged file"),
        (b"SQLite format 3\0" + bytes(PAGE), "damaged file"),
        (b"SQLite format 3\0" + bytes(range(256)) * 16, "damaged file"),
    ],
)
def test_content_that_is_no_database_is_refused(content: bytes, words: str, tmp_path: Path) -> None:
    error = refused(written(tmp_path / "a.sqlite", content), tmp_path)
    assert isinstance(error, UnusableTrace) and words in error.message


def test_an_export_that_was_killed_is_damaged(tmp_path: Path) -> None:
    """nsys export writes page 1 last: a killed one leaves data behind a header of zeros (seen with 2023.4)."""
    whole = write_sqlite(tmp_path / "whole.sqlite", small()).read_bytes()
    error = refused(written(tmp_path / "a.sqlite", bytes(PAGE) + whole[PAGE:]), tmp_path)
    assert "damaged file" in error.message and "interrupted" in error.message


def test_a_database_without_tables_is_damaged(tmp_path: Path) -> None:
    path = write_sqlite(tmp_path / "a.sqlite", {"t": (integers("a"), [])})
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DROP TABLE t")
    assert "damaged file: it is a database without tables" in refused(path, tmp_path).message


@pytest.mark.parametrize(
    ("table", "words"), [("users", "'users'"), ("StringTable", "nvprof"), ("rocpd_string_0004", "AMD")]
)
def test_the_database_of_another_program_is_named(table: str, words: str, tmp_path: Path) -> None:
    error = refused(write_sqlite(tmp_path / "a.sqlite", {table: (integers("a"), [])}), tmp_path)
    assert "not a database that Nsight Systems exported" in error.message and words in error.message


def test_names_without_a_string_table_are_an_interrupted_export(tmp_path: Path) -> None:
    tables = small()
    del tables["StringIds"]
    assert "damaged file" in refused(write_sqlite(tmp_path / "a.sqlite", tables), tmp_path).message


def test_events_without_times_are_refused_and_not_read_as_none(tmp_path: Path) -> None:
    tables = small() | {KERNEL: (integers("globalPid correlationId"), [(PROCESS, 4)])}
    error = refused(write_sqlite(tmp_path / "a.sqlite", tables), tmp_path)
    assert f"damaged file: its table {KERNEL} has no column start" in error.message


def whole_capture(tmp_path: Path) -> bytes:
    return unpack(CAPTURES[LAYER], tmp_path).read_bytes()


def test_a_trace_cut_anywhere_is_refused(tmp_path: Path) -> None:
    content = whole_capture(tmp_path)
    for length in [*range(PAGE, len(content), 20 * PAGE), len(content) - 1, 99, 17]:
        error = refused(written(tmp_path / "cut.sqlite", content[:length]), tmp_path)
        assert isinstance(error, UnusableTrace) and "damaged file" in error.message, length


def test_zeros_or_noise_anywhere_are_refused_or_change_nothing(tmp_path: Path) -> None:
    """Blocks of 512 bytes, in whole pages and in parts of them: partial totals must never appear."""
    content = whole_capture(tmp_path)
    write_raw(written(tmp_path / "whole.sqlite", content), tmp_path / "whole", trace_id=0)
    good = read_raw(tmp_path / "whole")
    chosen = random.Random(7)
    outcomes = {"refused": 0, "same": 0}
    for trial in range(24):
        size, fill = chosen.choice([(PAGE, 0), (512, 0), (PAGE, 1), (512, 1)])
        start = chosen.randrange(0, len(content) // size) * size
        noise = chosen.randbytes(size) if fill else bytes(size)
        source = written(tmp_path / "hurt.sqlite", content[:start] + noise + content[start + size :])
        raw = tmp_path / f"hurt{trial}"
        try:
            write_raw(source, raw, trace_id=0)
        except UnusableTrace:
            outcomes["refused"] += 1
            continue
        outcomes["same"] += 1
        same = [name for name, rows in read_raw(raw).items() if rows == good[name]]
        assert set(good) - set(same) <= {"trace"}, (start, size, fill)
    assert outcomes["refused"] > 5


def test_a_database_longer_than_its_header_says_was_interrupted(tmp_path: Path) -> None:
    content = write_sqlite(tmp_path / "whole.sqlite", small()).read_bytes()
    error = refused(written(tmp_path / "a.sqlite", content + bytes(PAGE)), tmp_path)
    assert "damaged file" in error.message and "interrupted" in error.message


def test_a_page_size_of_65536_is_written_as_1() -> None:
    header = bytearray(100)
    header[16:18], header[28:32] = (1).to_bytes(2, "big"), (2).to_bytes(4, "big")
    assert database.header_damage(bytes(header), 2 * 65536) is None
    assert "truncated" in str(database.header_damage(bytes(header), 65536))


def test_a_journal_left_by_a_crash_is_a_damaged_file(tmp_path: Path) -> None:
    source = write_sqlite(tmp_path / "a.sqlite", small())
    crash = (
        f"import os, sqlite3; c = sqlite3.connect({str(source)!r}, isolation_level=None);"
        "c.execute('PRAGMA cache_size = 1'); c.execute('BEGIN');"
        "c.execute('CREATE TABLE filler AS WITH RECURSIVE n(i) AS"
        " (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 9999) SELECT i FROM n'); os._exit(1)"
    )
    subprocess.run([sys.executable, "-c", crash], check=False)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert "a.sqlite-journal" in before
    assert "damaged file" in refused(source, tmp_path).message
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()} == before


def test_a_writer_that_holds_the_file_is_named_within_five_seconds(tmp_path: Path) -> None:
    source = write_sqlite(tmp_path / "a.sqlite", small())
    with closing(sqlite3.connect(source, isolation_level=None)) as writer:
        writer.execute("BEGIN EXCLUSIVE")
        began = time.monotonic()
        error = refused(source, tmp_path)
        assert time.monotonic() - began < 5
    assert isinstance(error, UnusableTrace) and "locked database" in error.message
    assert "copy" in error.hint
    assert write_raw(source, tmp_path / "later", trace_id=0).kernel_count == 1


def test_a_writer_that_lets_go_in_time_does_no_harm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = write_sqlite(tmp_path / "a.sqlite", small())
    code = (
        f"import sqlite3, time; c = sqlite3.connect({str(source)!r}, isolation_level=None);"
        "c.execute('BEGIN EXCLUSIVE'); print('held', flush=True); time.sleep(1); c.execute('COMMIT')"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None and writer.stdout.readline() == b"held\n"
        assert write_raw(source, tmp_path / "raw", trace_id=0).kernel_count == 1


def test_a_source_that_changes_meanwhile_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = write_sqlite(tmp_path / "a.sqlite", small())
    original = identify.stale_export

    def touched(path: Path) -> tuple[object, ...]:
        os.utime(path, (1, 1))
        return original(path)

    monkeypatch.setattr(identify, "stale_export", touched)
    assert "changed while it was being read" in refused(source, tmp_path).message


def test_a_gzip_file_that_is_cut_or_holds_something_else_is_refused(tmp_path: Path) -> None:
    packed = gzip.compress(write_sqlite(tmp_path / "a.sqlite", small()).read_bytes())
    assert "damaged file" in refused(written(tmp_path / "cut.sqlite.gz", packed[:-30]), tmp_path).message
    flipped = packed[:40] + b"\xff\xff\xff" + packed[43:]
    assert "damaged file" in refused(written(tmp_path / "hurt.sqlite.gz", flipped), tmp_path).message
    assert "not a database" in refused(written(tmp_path / "b.sqlite.gz", gzip.compress(b"text")), tmp_path).message


def test_a_damaged_parquet_file_is_refused(tmp_path: Path) -> None:
    directory = write_parquet(tmp_path / "a_pqtdir", small())
    path = directory / f"{KERNEL}.parquet"
    path.write_bytes(path.read_bytes()[:-20])
    assert "damaged file" in refused(directory, tmp_path).message


def test_a_parquet_page_that_is_damaged_is_refused(tmp_path: Path) -> None:
    directory = write_parquet(tmp_path / "a_pqtdir", small())
    path = directory / f"{KERNEL}.parquet"
    content = path.read_bytes()
    path.write_bytes(content[:4] + bytes(100) + content[104:])
    assert isinstance(refused(directory, tmp_path), UnusableTrace)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda path: path.mkdir(), "no .parquet files"),
        (lambda path: (path.mkdir(), (path / "NVTX_EVENTS.arrow").touch()), "--type=parquetdir"),
        (lambda path: (path.mkdir(), (path / "manifest.json").touch()), "mfupipe report"),
    ],
)
def test_a_directory_that_is_no_trace_is_refused(make: Callable[[Path], object], words: str, tmp_path: Path) -> None:
    make(tmp_path / "directory")
    error = refused(tmp_path / "directory", tmp_path)
    assert isinstance(error, UnusableTrace) and words in error.message


def test_a_raw_stream_of_a_capture_is_named(tmp_path: Path) -> None:
    error = refused(written(tmp_path / "a.qdstrm", b"stream"), tmp_path)
    assert "not yet a report" in error.message and "QdstrmImporter" in error.hint


def test_a_missing_source_is_a_usage_error(tmp_path: Path) -> None:
    assert isinstance(refused(tmp_path / "none.sqlite", tmp_path), UsageError)


def test_raw_tables_are_never_overwritten(tmp_path: Path) -> None:
    source = write_sqlite(tmp_path / "a.sqlite", small())
    write_raw(source, tmp_path / "raw", trace_id=0)
    before = read_raw(tmp_path / "raw")
    with pytest.raises(UsageError, match="exists"):
        write_raw(source, tmp_path / "raw", trace_id=0)
    assert read_raw(tmp_path / "raw") == before


def test_a_destination_that_cannot_be_made_is_an_environment_problem(tmp_path: Path) -> None:
    source = write_sqlite(tmp_path / "a.sqlite", small())
    (tmp_path / "file").touch()
    with pytest.raises(EnvironmentProblem, match="cannot write"):
        write_raw(source, tmp_path / "file" / "raw", trace_id=0)


@pytest.mark.parametrize(
    ("hidden", "words"), [("source", "a.sqlite cannot be read"), ("destination", "cannot write to")]
)
def test_a_missing_permission_is_an_environment_problem(
    hidden: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The refusal of the system is made up, since nothing is refused to root."""
    source = write_sqlite(tmp_path / "a.sqlite", small())
    destination = tmp_path / "raw"
    refuses = source if hidden == "source" else destination
    original = Path.stat

    def stat(self: Path, *, follow_symlinks: bool = True) -> os.stat_result:
        if self == refuses:
            raise PermissionError(errno.EACCES, "Permission denied", str(self))
        return original(self, follow_symlinks=follow_symlinks)

    monkeypatch.setattr(Path, "stat", stat)
    with pytest.raises(EnvironmentProblem, match=words):
        write_raw(source, destination, trace_id=0)


@pytest.mark.parametrize("limit", [20_000, 2_000_000])
def test_a_full_disk_is_an_environment_problem(limit: int, tmp_path: Path) -> None:
    """A limit on file size stands in for the full disk: while unpacking, and while tables are written."""
    tables = small()
    columns, _ = tables["NVTX_EVENTS"]
    rows = [(start, start + 1, 59, None, 0, THREAD, f"{random.Random(start).random()}") for start in range(60_000)]
    tables["NVTX_EVENTS"] = columns, rows
    source = write_sqlite(tmp_path / "a.sqlite", tables)
    if limit > 1_000_000:
        source = written(tmp_path / "a.sqlite.gz", gzip.compress(source.read_bytes(), 1))
    code = (
        "import resource, sys; from pathlib import Path\n"
        "from mfupipe.errors import EnvironmentProblem; from mfupipe.ingest import write_raw\n"
        f"resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}))\n"
        "import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        f"try: write_raw(Path({str(source)!r}), Path({str(tmp_path / 'out' / 'raw')!r}), trace_id=0)\n"
        "except EnvironmentProblem as error: print(error.message, error.hint)\n"
    )
    root = Path(database.__file__).parents[2]
    result = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=False)
    assert "cannot write to" in result.stdout and "TMPDIR" in result.stdout, result.stderr
    assert list((tmp_path / "out").iterdir()) == []


def test_a_missing_value_is_no_damage(tmp_path: Path) -> None:
    """PRAGMA quick_check also complains of NULL in a NOT NULL column, which is a bad value, not a bad file."""
    tables = small()
    tables[KERNEL] = tables[KERNEL][0], [(1000, None, 0, 7, 4, PROCESS, 1, 1)]
    source = write_sqlite(tmp_path / "a.sqlite", tables)
    with closing(sqlite3.connect(source, isolation_level=None)) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute("""UPDATE sqlite_master SET sql = replace(sql, '"end" INTEGER', '"end" INTEGER NOT NULL')""")
    with closing(sqlite3.connect(source)) as connection:
        assert connection.execute("PRAGMA quick_check").fetchone()[0].startswith(examine.ABOUT_VALUES)
    write_raw(source, tmp_path / "raw", trace_id=0)
    assert [row["end_ns"] for row in read_raw(tmp_path / "raw")["kernels"]] == [None]


def test_settings_alone_are_no_reason_to_refuse(tmp_path: Path) -> None:
    source = write_sqlite(tmp_path / "a.sqlite", {"META_DATA_EXPORT": pairs()})
    assert write_raw(source, tmp_path / "raw", trace_id=0).kernel_count == 0
