"""What a capture says about its machine and user never reaches a RUN."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import duckdb
import pytest

from mfupipe.run import DATABASE_NAME
from tests.oracle.source import unpack
from tests.runs import CAPTURES, ingest_and_build

SECRET = "hunter2swordfish"


def with_secrets(directory: Path) -> Path:
    """A real capture with the secret in its environment, command lines, output, paths and diagnostics."""
    source = unpack(CAPTURES["h200_transformer_layer_train_emit_nvtx"], directory)
    target = Path(shutil.copy(source, directory / "capture.sqlite"))
    with closing(sqlite3.connect(target)) as connection, connection:
        environment = [
            ("CAPTURE_EVENTS:ENVIRONMENT_VARIABLE", f"API_TOKEN={SECRET}"),
            ("PROCESS_ARGUMENT", f"--password={SECRET}"),
            ("WORKING_DIRECTORY", f"/home/{SECRET}"),
            ("COMMAND_LINE", f"python train.py --key {SECRET}"),
        ]
        connection.executemany("INSERT INTO META_DATA_CAPTURE (name, value) VALUES (?, ?)", environment)
        connection.executemany("INSERT INTO META_DATA_EXPORT (name, value) VALUES (?, ?)", environment)
        insert = "INSERT INTO TARGET_INFO_SYSTEM_ENV (devStateName, name, nameEnum, value) VALUES ('', ?, 0, ?)"
        connection.executemany(insert, environment)
        connection.execute("CREATE TABLE IF NOT EXISTS ProcessStreams (globalPid INT, filenameId INT, contentId INT)")
        connection.execute("CREATE TABLE IF NOT EXISTS DIAGNOSTIC_EVENT (timestamp INT, severity INT, text TEXT)")
        connection.execute("INSERT INTO DIAGNOSTIC_EVENT (severity, text) VALUES (3, ?)", [f"failed: {SECRET}"])
        connection.execute("INSERT INTO StringIds VALUES (999999, ?)", [f"printed {SECRET}"])
        connection.execute("INSERT INTO ProcessStreams (globalPid, filenameId, contentId) VALUES (1, 999999, 999999)")
        connection.execute("UPDATE PROCESSES SET name = ?", [f"/home/{SECRET}/bin/python3 --token={SECRET}"])
    return target


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("secrets")
    return ingest_and_build([with_secrets(directory)], directory / "run")


def test_the_secret_is_in_the_capture(tmp_path: Path) -> None:
    assert SECRET.encode() in with_secrets(tmp_path).read_bytes()


def test_no_file_of_the_run_holds_the_secret(run_dir: Path) -> None:
    files = [path for path in run_dir.rglob("*") if path.is_file()]
    assert len(files) > 3
    assert [path.name for path in files if SECRET.encode() in path.read_bytes()] == []


def test_no_value_of_any_table_holds_the_secret(run_dir: Path) -> None:
    with duckdb.connect(str(run_dir / DATABASE_NAME), read_only=True) as connection:
        names = connection.execute(
            "SELECT DISTINCT table_name FROM duckdb_columns() WHERE NOT internal ORDER BY 1"
        ).fetchall()
        assert names
        holding = [
            table
            for (table,) in names
            if connection.execute(
                f'SELECT count(*) FROM "{table}" AS t WHERE contains(t::VARCHAR, ?)', [SECRET]
            ).fetchall()[0][0]
        ]
        assert holding == []
        for path in sorted(run_dir.rglob("*.parquet")):
            found = connection.execute(
                "SELECT count(*) FROM read_parquet(?) AS t WHERE contains(t::VARCHAR, ?)", [str(path), SECRET]
            ).fetchall()
            assert found == [(0,)], path.name


def test_the_name_of_a_process_is_its_base_name_alone(run_dir: Path) -> None:
    with duckdb.connect(str(run_dir / DATABASE_NAME), read_only=True) as connection:
        assert connection.execute("SELECT DISTINCT process_name FROM processes").fetchall() == [("python3",)]
