"""The ledger by counting nanoseconds one by one."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

Window = tuple[int, int]


@dataclass(frozen=True)
class Activity:
    """One execution on the GPU: class 'compute', 'communication' or 'copy'."""

    identity: Hashable
    execution_class: str
    start: int
    end: int


@dataclass(frozen=True)
class Grid:
    """Nanoseconds of the windows by what the GPU did, and each compute execution's share of them."""

    compute_ns: int
    communication_ns: int
    copy_ns: int
    idle_ns: int
    share_ns: dict[Hashable, Fraction]

    @property
    def window_ns(self) -> int:
        """Length of the windows."""
        return self.compute_ns + self.communication_ns + self.copy_ns + self.idle_ns


def count_grid(activities: Sequence[Activity], windows: Iterable[Window]) -> Grid:
    """Look at each nanosecond of the (disjoint) windows: compute hides communication, and both hide copies.

    Compute executions share a nanosecond equally.
    """
    active: dict[int, list[Activity]] = defaultdict(list)
    for activity in activities:
        for time in range(activity.start, activity.end):
            active[time].append(activity)
    found: Counter[str] = Counter()
    share: dict[Hashable, Fraction] = {each.identity: Fraction() for each in activities if is_compute(each)}
    for time in (time for start, end in windows for time in range(start, end)):
        computing = [each for each in active[time] if is_compute(each)]
        found[_class_of(active[time])] += 1
        for each in computing:
            share[each.identity] += Fraction(1, len(computing))
    return Grid(found["compute"], found["communication"], found["copy"], found["idle"], share)


def is_compute(activity: Activity) -> bool:
    """Takes part in the telescoping."""
    return activity.execution_class == "compute"


def _class_of(active: list[Activity]) -> str:
    classes = {each.execution_class for each in active}
    return next((name for name in ("compute", "communication", "copy") if name in classes), "idle")
