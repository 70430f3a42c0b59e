"""Ingest needs no network, no home directory and no place beside its source, and tells how far it is."""

from __future__ import annotations

import hashlib
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import duckdb
import pytest

from mfupipe.errors import EnvironmentProblem
from mfupipe.ingest import engine, write_raw
from tests.unit.ingest_export import ingest, small, write_parquet, write_sqlite

ROOT = Path(__file__).parents[2]


def listing(directory: Path) -> dict[str, tuple[int, bytes]]:
    return {path.name: (path.stat().st_mtime_ns, path.read_bytes()) for path in directory.iterdir()}


def test_the_source_and_its_directory_are_not_touched(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    source = write_sqlite(tmp_path / "in" / "a.sqlite", small())
    before = listing(source.parent)
    source.chmod(0o444)
    source.parent.chmod(0o555)
    try:
        info = write_raw(source, tmp_path / "raw", trace_id=0)
    finally:
        source.parent.chmod(0o755)
    assert listing(source.parent) == before
    assert info.source_sha256 == hashlib.sha256(source.read_bytes()).hexdigest()
    assert info.source_bytes == source.stat().st_size


def test_a_database_in_write_ahead_mode_is_read_without_files_beside_it(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    source = write_sqlite(tmp_path / "in" / "a.sqlite", small())
    with closing(sqlite3.connect(source)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
    before = listing(source.parent)
    assert write_raw(source, tmp_path / "raw", trace_id=0).kernel_count == 1
    assert listing(source.parent) == before


def test_rows_that_are_still_in_a_write_ahead_log_are_read(tmp_path: Path) -> None:
    source = write_sqlite(tmp_path / "a.sqlite", small())
    with closing(sqlite3.connect(source)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        with connection:
            connection.execute("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL SELECT * FROM CUPTI_ACTIVITY_KIND_KERNEL")
        assert write_raw(source, tmp_path / "raw", trace_id=0).kernel_count == 2


def test_it_works_with_an_empty_home_and_no_way_out(tmp_path: Path) -> None:
    source = write_sqlite(tmp_path / "a.sqlite", small())
    home = tmp_path / "home"
    home.mkdir()
    code = (
        "import socket, sys; from pathlib import Path\n"
        "def refuse(*arguments, **names): raise AssertionError('network')\n"
        "socket.socket.connect = refuse; socket.getaddrinfo = refuse\n"
        "from mfupipe.ingest import write_raw\n"
        "print(write_raw(Path(sys.argv[1]), Path(sys.argv[2]), trace_id=0).kernel_count)"
    )
    proxies = dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), "http://127.0.0.1:9")
    result = subprocess.run(
        [sys.executable, "-c", code, str(source), str(tmp_path / "raw")],
        cwd=ROOT,
        env={"HOME": str(home), "PATH": os.environ["PATH"], **proxies},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.stdout == "1\n", result.stderr
    assert list(home.iterdir()) == []


def test_duckdb_neither_installs_nor_loads_extensions_by_itself(tmp_path: Path) -> None:
    with closing(engine.connect(tmp_path)) as connection:
        names = ("autoinstall_known_extensions", "autoload_known_extensions")
        found = [connection.execute(f"SELECT current_setting('{name}')").fetchone() for name in names]
    assert found == [(False,), (False,)]


def test_a_reader_for_another_duckdb_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(duckdb, "__version__", "9.9.9")
    with pytest.raises(EnvironmentProblem) as caught:
        engine.reader_path()
    assert "9.9.9" in caught.value.message and "v1." in caught.value.message
    assert "duckdb-extension-sqlite-scanner==9.9.9" in caught.value.hint


def test_a_missing_reader_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "READER_PACKAGE", "no_such_package")
    with pytest.raises(EnvironmentProblem, match="not installed"):
        engine.reader_path()


@pytest.mark.parametrize("name", ["it's [1] {a}*?.sqlite", "наблюдение %41 #1.sqlite", "-o.sqlite"])
def test_every_file_name_is_only_a_name(name: str, tmp_path: Path) -> None:
    directory = tmp_path / "it's [1]*"
    directory.mkdir()
    info, raw = ingest(write_sqlite(directory / name, small()), directory)
    assert (info.kernel_count, raw["trace"][0]["source_file"]) == (1, name)


def test_a_parquet_directory_may_have_any_name(tmp_path: Path) -> None:
    info, _ = ingest(write_parquet(tmp_path / "it's [1]*", small()), tmp_path)
    assert info.kernel_count == 1


def test_scratch_files_are_private_and_gone_afterwards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    modes: list[int] = []

    def look(step: str, done: int, total: int) -> None:
        modes.extend(path.stat().st_mode & 0o777 for path in scratch.iterdir())

    write_raw(write_sqlite(tmp_path / "a.sqlite", small()), tmp_path / "raw", trace_id=0, progress=look)
    assert set(modes) == {0o700}
    assert list(scratch.iterdir()) == []


def test_progress_is_told_step_by_step(tmp_path: Path) -> None:
    steps: list[tuple[str, int, int]] = []
    source = write_sqlite(tmp_path / "a.sqlite", small())
    write_raw(source, tmp_path / "raw", trace_id=0, progress=lambda *step: steps.append(step))
    assert [done for _, done, _ in steps] == list(range(len(steps)))
    assert {total for _, _, total in steps} == {len(steps)}
