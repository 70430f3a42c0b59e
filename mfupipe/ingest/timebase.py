"""Time 0 of a trace is the start of its session; what an export added to that is taken off again."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

# 1973 as UTC nanoseconds, or three years as a session time: times beyond it are times of day.
EPOCH_TIMES_FROM = 10**17


@dataclass(frozen=True)
class TimeBase:
    """`added_ns`: to subtract from every time. `shift_ns`: the part of it that `--ts-shift` added."""

    added_ns: int = 0
    shift_ns: int = 0

    @property
    def is_normalized(self) -> bool:
        """True when the export had put its times on the UTC clock (--ts-normalize)."""
        return abs(self.added_ns) >= EPOCH_TIMES_FROM

    def session_time(self, expression: str) -> str:
        """SQL expression of a time in ns since the start of the session.

        In a normalized export a time near 0 was never on the UTC clock (CUPTI writes 0 for "not collected") and stays.
        """
        if not self.added_ns:
            return expression
        applies = (
            f">= {EPOCH_TIMES_FROM}" if self.is_normalized else f"BETWEEN -{EPOCH_TIMES_FROM} AND {EPOCH_TIMES_FROM}"
        )
        return f"CASE WHEN {expression} {applies} THEN {expression} - {self.added_ns} ELSE {expression} END"


def time_base(utc_epoch_ns: int | None, stated_ns: int | None, shift_ns: int, starts: Iterable[int]) -> TimeBase:
    """What was added to the times of an export.

    stated_ns: EXPORT_CONFIG_TIME_SHIFT, the whole sum (seen in 2023.4: UTC of the session plus --ts-shift); None when
    the export is silent. starts: some start times, which decide where statement and data differ or nothing is stated.
    """
    has_epoch_times = any(start >= EPOCH_TIMES_FROM for start in starts)
    added = stated_ns if stated_ns is not None else shift_ns
    if has_epoch_times and abs(added) < EPOCH_TIMES_FROM and utc_epoch_ns is not None:
        return TimeBase(utc_epoch_ns + added, shift_ns)
    if not has_epoch_times and abs(added) >= EPOCH_TIMES_FROM:
        return TimeBase(shift_ns, shift_ns)
    return TimeBase(added, shift_ns)
