"""Values of the $parameters of a query: what is given, else the default that its header states."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import duckdb

from mfupipe import headers
from mfupipe.errors import UsageError

Value = int | float | str


def bound(sql: str, given: Mapping[str, object]) -> dict[str, object]:
    """A value for each `$name` in the SQL.

    Raises UsageError that names a parameter which is unknown, or neither given nor has a default; duckdb.Error on bad
    SQL.
    """
    needed = sorted({name for part in duckdb.extract_statements(sql) for name in part.named_parameters})
    _refuse_unknown(needed, given)
    stated = {parameter.name: parameter for parameter in headers.parameters(sql)}
    return {name: given[name] if name in given else _default(name, stated.get(name)) for name in needed}


def _refuse_unknown(needed: Sequence[str], given: Mapping[str, object]) -> None:
    unknown = sorted(given.keys() - set(needed))
    if unknown:
        takes = ", ".join(f"${name}" for name in needed) or "none"
        raise UsageError(f"the query has no parameter ${unknown[0]}", f"it takes {takes}")


def _default(name: str, stated: headers.Parameter | None) -> Value:
    if stated is not None and stated.default is not None:
        return typed(stated.default)
    meaning = "" if stated is None else f": {stated.text}"
    raise UsageError(f"the query needs a value for ${name}{meaning}", f"--param {name}=VALUE")


def typed(text: str) -> Value:
    """A value by its look: an integer, a float, else text."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
