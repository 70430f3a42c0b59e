"""A user's SQL on one RUN, or on several as one: read only, without files and without the network."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import duckdb

from mfupipe import warehouse
from mfupipe.errors import UsageError
from mfupipe.run import DATABASE_NAME, is_run, read_manifest
from mfupipe.warehouse.parameters import Value, bound, typed

HINT = "mfupipe sql RUN lists the tables with their columns and units"


@dataclass(frozen=True)
class Answer:
    """Columns and rows of a result."""

    columns: tuple[str, ...]
    rows: tuple[tuple[object, ...], ...]


def split_words(words: tuple[str, ...]) -> tuple[tuple[Path, ...], str | None]:
    """RUNs come first, then at most one query. Raises UsageError."""
    count = next((index for index, word in enumerate(words) if not is_run(Path(word))), len(words))
    if count == 0:
        raise UsageError(f"{words[0]} is not a RUN", "mfupipe sql RUN [QUERY]; a trace is ingested first")
    if len(words) - count > 1:
        raise UsageError(f"{words[count]!r} is not a RUN, and only the last word is a query", "put the SQL in quotes")
    return tuple(Path(word) for word in words[:count]), words[count] if count < len(words) else None


def read_query(word: str) -> str:
    """SQL from stdin (-), from a .sql file, by the name of a query that mfupipe ships, or the word itself."""
    if word == "-":
        return sys.stdin.read()
    if word.endswith(".sql"):
        return _read_file(Path(word))
    return warehouse.query_text(word) if _is_name(word) else word


def _is_name(word: str) -> bool:
    return re.fullmatch(r"\w+", word) is not None


def ask(runs: tuple[Path, ...], word: str, parameters: dict[str, Value]) -> Answer:
    """The query on all RUNs as one; one that mfupipe ships joins by trace_id, so it is put to each RUN alone.

    Raises UsageError.
    """
    sql = read_query(word)
    if len(runs) == 1 or not _is_name(word):
        with opened(runs) as connection:
            return run(connection, sql, parameters)
    answers = []
    for path in runs:
        with opened((path,)) as connection:
            answers.append(run(connection, sql, parameters))
    rows = [(str(path), *row) for path, answer in zip(runs, answers, strict=True) for row in answer.rows]
    return Answer(("run", *answers[0].columns), tuple(rows))


def parse_parameters(given: list[str]) -> dict[str, Value]:
    """'k=v' -> value by its look: an integer, a float, else text. Raises UsageError."""
    pairs = [text.partition("=") for text in given]
    wrong = next((name for name, equals, _ in pairs if not equals or not re.fullmatch(r"[A-Za-z_]\w*", name)), None)
    if wrong is not None:
        raise UsageError(f"--param {wrong!r} is not of the form name=value", "--param step=3")
    return {name: typed(text) for name, _, text in pairs}


def run(connection: duckdb.DuckDBPyConnection, sql: str, parameters: dict[str, Value]) -> Answer:
    """Execute. Raises UsageError that names a missing or unknown parameter, or shows the SQL with DuckDB's words."""
    try:
        cursor = connection.execute(sql, bound(sql, parameters) or None)
        columns = tuple(str(column[0]) for column in cursor.description or ())
        return Answer(columns, tuple(cursor.fetchall()))
    except duckdb.Error as error:
        raise UsageError(f"the query failed: {error}\n{sql.strip()}", HINT) from error


@contextmanager
def opened(runs: tuple[Path, ...]) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection that reads these RUNs and nothing else; several are one, each table with a column `run` in front."""
    if len(runs) == 1:
        with warehouse.open_run(runs[0]) as connection:
            yield _locked(connection)
        return
    with duckdb.connect() as connection:
        _attach(connection, runs)
        yield _locked(connection)


def _attach(connection: duckdb.DuckDBPyConnection, runs: tuple[Path, ...]) -> None:
    """Views over the attached databases; identifiers are numbers of ours or names of tables of ours, both quoted."""
    connection.execute("CREATE TABLE _runs (position BIGINT, run VARCHAR)")
    for position, path in enumerate(runs):
        read_manifest(path)
        connection.execute(f"ATTACH {_text(str(path / DATABASE_NAME))} AS run{position} (READ_ONLY)")
        connection.execute("INSERT INTO _runs VALUES ($position, $run)", {"position": position, "run": str(path)})
    for name in _public_names(connection):
        parts = [
            f"SELECT (SELECT run FROM _runs WHERE position = {position}) AS run, * FROM run{position}.{_quoted(name)}"
            for position in range(len(runs))
        ]
        connection.execute(f"CREATE VIEW {_quoted(name)} AS {' UNION ALL BY NAME '.join(parts)}")


def _public_names(connection: duckdb.DuckDBPyConnection) -> list[str]:
    """Tables and views that every attached RUN has."""
    found = connection.execute(
        """
        SELECT table_name
        FROM information_schema.tables
        WHERE table_catalog LIKE 'run%' AND NOT starts_with(table_name, '_')
        GROUP BY table_name
        HAVING count(DISTINCT table_catalog) = (SELECT count(*) FROM _runs)
        ORDER BY table_name
        """
    ).fetchall()
    return [str(row[0]) for row in found]


def _locked(connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    """No files, no network, no Python variables, and no way back."""
    connection.execute("SET python_enable_replacements = false")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")
    return connection


def _read_file(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read ({error})", "give a file with SQL in UTF-8") from error


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
