"""Which call launched an execution, and which ranges were open when it did."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from dataclasses import dataclass

from tests.oracle.source import THREAD_BITS, ApiCall, Execution, Export, Range

LAUNCH_NAME = re.compile(r"launch|graph|memcpy|memset", re.IGNORECASE)


@dataclass(frozen=True)
class Attributed:
    """An execution, the call that launched it, and the ranges open at that call's start, outermost first."""

    execution: Execution
    launch: ApiCall | None
    path: tuple[Range, ...]

    @property
    def innermost(self) -> Range | None:
        """The range that the execution belongs to."""
        return self.path[-1] if self.path else None


def attribute(export: Export) -> list[Attributed]:
    """Launch and open ranges of each execution of an export."""
    calls: dict[tuple[int, int | None], list[ApiCall]] = defaultdict(list)
    for call in export.api_calls:
        calls[call.thread & ~THREAD_BITS, call.correlation].append(call)
    ranges = RangesByThread(export.ranges)
    attributed = []
    for execution in export.executions:
        launch = launch_of(execution, calls.get((execution.process, execution.correlation), []))
        path = ranges.open_at(launch.thread, launch.start) if launch else ()
        attributed.append(Attributed(execution, launch, path))
    return attributed


def launch_of(execution: Execution, candidates: list[ApiCall]) -> ApiCall | None:
    """The launching call among the calls of one process that share the execution's correlation id.

    A call cannot start after the execution ended (an execution without a usable clock cannot tell). Launch-like names
    come first. Correlation ids may restart: calls that do not overlap are generations, and the latest one counts. In
    it, the outermost call.
    """
    if execution.is_valid:
        candidates = [call for call in candidates if call.start <= execution.end]
    candidates = [call for call in candidates if LAUNCH_NAME.search(call.name)] or candidates
    generation: list[ApiCall] = []
    for call in sorted(candidates, key=lambda call: (call.start, -call.end, call.row)):
        if generation and call.start >= max(other.end for other in generation):
            generation = []
        generation.append(call)
    return generation[0] if generation else None


class RangesByThread:
    """Closed ranges, by thread and start."""

    def __init__(self, ranges: tuple[Range, ...]) -> None:
        self._ranges: dict[int, list[Range]] = defaultdict(list)
        for candidate in sorted(ranges, key=lambda each: each.start):
            if not candidate.is_unclosed:
                self._ranges[candidate.thread].append(candidate)
        self._starts = {thread: [each.start for each in mine] for thread, mine in self._ranges.items()}

    def open_at(self, thread: int, time: int) -> tuple[Range, ...]:
        """Ranges with start <= time < end, outermost first.

        Innermost is the latest start; of equal starts the shorter; of equal ends too, the later row.
        """
        started = bisect_right(self._starts.get(thread, []), time)
        open_ranges = [each for each in self._ranges.get(thread, [])[:started] if time < each.end]
        return tuple(sorted(open_ranges, key=lambda each: (each.start, -each.end, each.row)))
