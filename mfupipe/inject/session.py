"""Counts the steps of a torch program, times some of them, and opens and closes a capture around as many
more.

Loaded by sitecustomize.py beside it when torch is imported; standard library only, Python 3.8 and later.
"""

# ruff: noqa: BLE001 - a fault in here must never reach the program
from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

RANK_VARIABLES = ("RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID", "PMI_RANK")


def process_rank() -> str | None:
    """Rank of this process by the launcher's environment, None outside a launcher."""
    for name in RANK_VARIABLES:
        if os.environ.get(name, "").isdigit():
            return os.environ[name]
    return None


def write_json(path: str, content: dict[str, Any]) -> None:
    """Write beside and rename, so that a reader never sees half a file."""
    beside = f"{path}.{os.getpid()}.tmp"
    with open(beside, "w") as stream:
        json.dump(content, stream)
    os.replace(beside, path)


def claim(path: str, rank: str | None) -> str:
    """Decide this process's part: 'owner' (the first to come), 'peer' (another rank of the same job), or
    'bystander'."""
    beside, claimed = f"{path}.{os.getpid()}.claim", path + ".claim"
    with open(beside, "w") as stream:
        stream.write(rank or "")
    try:
        os.link(beside, claimed)
        return "owner"
    except FileExistsError:
        with open(claimed) as stream:
            owner_rank = stream.read()
        return "peer" if rank is not None and owner_rank not in ("", rank) else "bystander"
    finally:
        os.unlink(beside)


class Ranges:
    """Start/end ranges through torch's own NVTX: they may cross the push/pop ranges that autograd emits."""

    def __init__(self, torch: Any) -> None:
        self.nvtx = torch.cuda.nvtx
        self.handle: Any = None
        self.kind = "start_end" if hasattr(self.nvtx, "range_start") else "push_pop"

    def open(self, text: str) -> None:
        if self.kind == "start_end":
            self.handle = self.nvtx.range_start(text)
        else:
            self.nvtx.range_push(text)

    def close(self) -> None:
        if self.kind == "start_end":
            self.nvtx.range_end(self.handle)
        else:
            self.nvtx.range_pop()


class Session:
    """Counts the borders between steps of one process and acts at four of them: warm-up over, timing
    over, capture over."""

    def __init__(self, torch: Any, path: str) -> None:
        self.torch, self.path, self.pid = torch, path, os.getpid()
        self.warmup = max(1, int(os.environ.get("MFUPIPE_WARMUP", "10")))
        self.steps = max(1, int(os.environ.get("MFUPIPE_STEPS", "10")))
        self.operators = os.environ.get("MFUPIPE_OPERATORS", "aten")
        self.state, self.reason, self.error = "waiting", "", ""
        self.rule, self.part, self.borders, self.captured = "", "", 0, 0
        self.thread: int | None = None
        self.untraced_ns: list[int] = []
        self.untraced_total_ns: int | None = None
        self.events: list[Any] = []
        self.started_ns = 0
        self.ranges: Ranges | None = None
        self.autograd_ranges: Any = None
        self.optimizers_built = 0
        self.undo: list[Callable[[], object]] = []

    # Borders

    def border(self, rule: str) -> None:
        """One step ended and the next begins. Never raises."""
        if self.is_over():
            return
        try:
            if self.counts(rule):
                self.advance()
        except Exception as error:
            self.leave("failed", error)

    def is_over(self) -> bool:
        """True once the capture is closed or given up, and always in a forked child."""
        return self.state in ("closed", "left") or os.getpid() != self.pid

    def counts(self, rule: str) -> bool:
        """True when this border is one of the steps followed: on a GPU, not being compiled or captured,
        on one thread."""
        cuda = self.torch.cuda
        if not cuda.is_initialized() or cuda.is_current_stream_capturing():
            return False
        if rule != self.rule:
            if self.rule == "optimizer" or self.state != "waiting":
                return False
            self.rule, self.borders, self.thread = rule, 0, threading.get_ident()
        if threading.get_ident() != self.thread:
            return False
        if not self.part:
            self.part = claim(self.path, process_rank())
            if self.part == "bystander":
                self.leave("another process is captured", None)
                return False
        return True

    def advance(self) -> None:
        self.borders += 1
        past = self.borders - self.warmup
        if past == 0:
            self.begin_timing()
        elif 0 < past <= self.steps:
            self.mark()
            if past == self.steps:
                self.end_timing()
                self.open_capture()
        elif past > self.steps:
            self.next_step(past - self.steps)

    # The untraced steps

    def mark(self) -> None:
        if self.part == "owner":
            event = self.torch.cuda.Event(enable_timing=True)
            event.record()
            self.events.append(event)

    def begin_timing(self) -> None:
        self.state = "timing"
        if self.part == "owner":
            self.torch.cuda.synchronize()
            self.started_ns = time.perf_counter_ns()
            self.mark()
            self.report()

    def end_timing(self) -> None:
        if self.part == "owner":
            self.torch.cuda.synchronize()
            self.untraced_total_ns = time.perf_counter_ns() - self.started_ns
            pairs = zip(self.events, self.events[1:])
            self.untraced_ns = [round(1e6 * first.elapsed_time(second)) for first, second in pairs]
            self.events = []

    # The captured steps

    def open_capture(self) -> None:
        self.ranges = Ranges(self.torch)
        if self.part == "owner":
            self.state = "open"
            self.report()
            status = profiler_call(self.torch, "cudaProfilerStart")
            if status != 0:
                raise RuntimeError(f"cudaProfilerStart returned {status}")
        self.state = "open"
        self.enter_autograd_ranges()
        self.ranges.open("step|index=0")

    def enter_autograd_ranges(self) -> None:
        if self.operators != "aten":
            return
        try:
            self.autograd_ranges = self.torch.autograd.profiler.emit_nvtx(record_shapes=True)
            self.autograd_ranges.__enter__()
        except Exception as error:
            # another profiler of torch is active: the steps are captured without operators
            self.autograd_ranges, self.error = None, f"no operator ranges: {error}"

    def next_step(self, number: int) -> None:
        assert self.ranges is not None
        self.ranges.close()
        self.captured = number
        if number < self.steps:
            self.ranges.open(f"step|index={number}")
        else:
            self.close_capture()

    def close_capture(self) -> None:
        self.leave_autograd_ranges()
        if self.part == "owner":
            self.torch.cuda.synchronize()
            self.state = "closing"  # said before the profiler writes: an old one can take the program down with it
            self.report()
            profiler_call(self.torch, "cudaProfilerStop")
        self.state = "closed"
        self.remove_hooks()
        self.report()

    def leave_autograd_ranges(self) -> None:
        if self.autograd_ranges is not None:
            self.autograd_ranges.__exit__(None, None, None)
            self.autograd_ranges = None

    # The ends

    def user_capture(self) -> None:
        """The program opens a capture of its own: leave it alone."""
        if self.state in ("waiting", "timing"):
            self.leave("the program opens its own capture", None)

    def leave(self, reason: str, error: BaseException | None) -> None:
        was_open, self.state, self.reason = self.state == "open", "left", reason
        self.error = self.error if error is None else f"{type(error).__name__}: {error}"
        try:
            self.remove_hooks()
            if was_open and self.part == "owner":
                self.leave_autograd_ranges()
                profiler_call(self.torch, "cudaProfilerStop")
            self.report()
        except Exception as fault:
            self.error += f" / while leaving: {fault}"

    def finish(self) -> None:
        """At exit: a capture that is still open ends here, and the status says how far the program came."""
        if not self.is_over():
            self.leave(self.shortfall(), None)

    def shortfall(self) -> str:
        if self.state == "open":
            return "the program ended inside the capture"
        if not self.torch.cuda.is_initialized():
            return "no CUDA"
        if not self.rule:
            return "no optimizer step" if self.optimizers_built else "no repeated module call"
        return "too few steps"

    def remove_hooks(self) -> None:
        while self.undo:
            self.undo.pop()()

    def report(self) -> None:
        """Write the status: the owner's file, or one beside it for a process that took no part."""
        if self.part in ("peer", "bystander"):
            return
        path = self.path if self.part == "owner" else f"{self.path}.bystander.{self.pid}"
        write_json(path, self.status())

    def status(self) -> dict[str, Any]:
        torch = self.torch
        on_gpu = bool(self.part) and torch.cuda.is_initialized()
        return {
            "state": self.state,
            "reason": self.reason,
            "error": self.error,
            "rule": self.rule,
            "warmup": self.warmup,
            "steps": self.steps,
            "steps_seen": self.borders,
            "steps_captured": self.captured,
            "untraced_step_ns": self.untraced_ns,
            "untraced_total_ns": self.untraced_total_ns,
            "operators": self.operators,
            "python": ".".join(str(part) for part in sys.version_info[:3]),
            "torch": str(torch.__version__),
            "cuda": getattr(getattr(torch, "version", None), "cuda", None),
            "pid": self.pid,
            "rank": process_rank(),
            "device": torch.cuda.get_device_name() if on_gpu else None,
        }


def profiler_call(torch: Any, name: str) -> int:
    """Call cudaProfilerStart or cudaProfilerStop past our own watch on it; the CUDA error code (0 is
    success)."""
    function = getattr(torch.cuda.cudart(), name)
    return int(getattr(function, "mfupipe_original", function)())
