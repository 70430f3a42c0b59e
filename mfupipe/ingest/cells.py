"""Single values of a trace that may hold anything: cleaned, and counted when they had to be."""

from __future__ import annotations

from dataclasses import dataclass

INT64_MAX = 2**63 - 1
INT64_MIN = -(2**63)
UINT64_RANGE = 2**64


@dataclass
class Faults:
    """Values of one row that were not what their column promises."""

    undecodable: int = 0
    bad: int = 0


def integer(value: object, faults: Faults) -> int | None:
    """The value as a signed 64-bit integer; NULL, counted in faults.bad, where it is none. Unsigned ids wrap around."""
    if value is None:
        return None
    number = _whole_number(value)
    if number is None or not INT64_MIN <= number < UINT64_RANGE:
        faults.bad += 1
        return None
    return number - UINT64_RANGE if number > INT64_MAX else number


def text(value: object, faults: Faults) -> str | None:
    """The value as text; bytes that are not UTF-8 become U+FFFD and count once in faults.undecodable."""
    if value is None or isinstance(value, str):
        return value
    if not isinstance(value, bytes):
        return str(value)
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        faults.undecodable += 1
        return value.decode("utf-8", "replace")


def _whole_number(value: object) -> int | None:
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return int(value) if value.is_integer() else None
    if isinstance(value, bytes | str):
        try:
            return int(value)
        except ValueError:
            return None
    return None
