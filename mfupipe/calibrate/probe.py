"""Runs in a Python with torch: times matrix products and memory traffic, prints rows as JSON.

Burst: the best over shapes and data of the median of a few calls after a pause. The data are random-normal, and zeros,
which draw so little power that no power limit acts: real programs, whose gradients are small, come between the two.
Sustained: the best shape on random-normal data back to back for seconds. Usage: python probe.py SUSTAINED_SECONDS
"""

from __future__ import annotations

import importlib
import itertools
import json
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

SHAPES = (
    (4096, 4096, 4096),
    (8192, 8192, 2048),
    (8192, 8192, 8192),
    (16384, 8192, 4096),
    (8192, 28672, 4096),
)
FILLS = ("random", "zero")
BURST_REPEATS = 5
PAUSE_S = 0.2
COPY_BYTES = 1 << 30


def main() -> None:
    torch: Any = importlib.import_module("torch")
    if not torch.cuda.is_available():
        raise SystemExit("no GPU: torch.cuda.is_available() is False")
    sustained_s = float(sys.argv[1])
    rows = [row for dtype in ("bf16", "fp16", "tf32", "fp32", "fp8") for row in matmul_rows(torch, dtype, sustained_s)]
    rows += traffic_rows(torch, sustained_s)
    name, source = torch.cuda.get_device_name(), f"mfupipe calibrate, torch {torch.__version__}"
    filled = [{"device_name": name, "kind": "measured", **row, "source": f"{source}, {row['source']}"} for row in rows]
    print(json.dumps(filled))


def matmul_rows(torch: Any, dtype: str, sustained_s: float) -> list[dict[str, Any]]:
    """Burst and sustained FLOP/s of one dtype (2 m n k per product); no rows for a dtype this GPU lacks."""
    rates: dict[tuple[str, tuple[int, int, int]], float] = {}
    for fill, shape in itertools.product(FILLS, SHAPES):
        try:
            seconds = burst_seconds(torch, product(torch, dtype, fill, *shape))
        except (RuntimeError, AttributeError, TypeError) as error:
            print(f"{dtype} {shape}: {error}", file=sys.stderr)
            return []
        rates[fill, shape] = 2.0 * shape[0] * shape[1] * shape[2] / seconds
    fill, shape = max(rates, key=lambda key: rates[key])
    long = max(SHAPES, key=lambda item: rates["random", item])
    seconds = sustained_seconds(torch, product(torch, dtype, "random", *long), sustained_s)
    rate = 2.0 * long[0] * long[1] * long[2] / seconds
    return [
        row(dtype, "burst", rates[fill, shape], None, "matmul m={} n={} k={}, {} data".format(*shape, fill)),
        row(dtype, "sustained", rate, None, "matmul m={} n={} k={}, random data".format(*long)),
    ]


def product(torch: Any, dtype: str, fill: str, m: int, n: int, k: int) -> Callable[[], object]:
    """A call that multiplies (m, k) by (k, n) in one arithmetic."""
    make = torch.randn if fill == "random" else torch.zeros
    if dtype == "fp8":
        return fp8_product(torch, make, m, n, k)
    kinds = {"bf16": torch.bfloat16, "fp16": torch.float16}
    torch.backends.cuda.matmul.allow_tf32 = dtype == "tf32"
    left = make(m, k, device="cuda", dtype=kinds.get(dtype, torch.float32))
    right = make(k, n, device="cuda", dtype=left.dtype)
    out = torch.empty(m, n, device="cuda", dtype=left.dtype)
    return lambda: torch.mm(left, right, out=out)


def fp8_product(torch: Any, make: Callable[..., Any], m: int, n: int, k: int) -> Callable[[], object]:
    """e4m3 by e4m3 into bf16; the second factor is column-major, as the hardware wants it."""
    left = make(m, k, device="cuda").to(torch.float8_e4m3fn)
    right = make(n, k, device="cuda").to(torch.float8_e4m3fn).t()
    scale = torch.ones((), device="cuda")
    return lambda: torch._scaled_mm(left, right, scale_a=scale, scale_b=scale, out_dtype=torch.bfloat16)


def traffic_rows(torch: Any, sustained_s: float) -> list[dict[str, Any]]:
    """Bytes read and written per second: the best of a copy, a pointwise kernel and a sum, which only reads."""
    source = torch.randn(COPY_BYTES // 2, device="cuda", dtype=torch.bfloat16)
    target = torch.empty_like(source)
    calls: dict[str, tuple[float, Callable[[], object]]] = {
        "copy": (2.0 * COPY_BYTES, lambda: target.copy_(source)),
        "pointwise": (2.0 * COPY_BYTES, lambda: torch.neg(source, out=target)),
        "addition": (3.0 * COPY_BYTES, lambda: torch.add(source, target, out=target)),
        "sum": (1.0 * COPY_BYTES, lambda: torch.sum(source)),
    }
    rates = {name: moved / burst_seconds(torch, call) for name, (moved, call) in calls.items()}
    best = max(rates, key=lambda name: rates[name])
    moved, call = calls[best]
    where = f"{best} over {COPY_BYTES} bytes, read + written"
    sustained = moved / sustained_seconds(torch, call, sustained_s)
    print(rates, file=sys.stderr)
    return [row("bytes", "burst", None, rates[best], where), row("bytes", "sustained", None, sustained, where)]


def burst_seconds(torch: Any, call: Callable[[], object]) -> float:
    """Median of a few calls, timed one by one by the GPU, after a warm-up and a pause."""
    call()
    torch.cuda.synchronize()
    time.sleep(PAUSE_S)
    call()
    events = [torch.cuda.Event(enable_timing=True) for _ in range(BURST_REPEATS + 1)]
    events[0].record()
    for event in events[1:]:
        call()
        event.record()
    torch.cuda.synchronize()
    return statistics.median(float(a.elapsed_time(b)) / 1e3 for a, b in itertools.pairwise(events))


def sustained_seconds(torch: Any, call: Callable[[], object], seconds: float) -> float:
    """Mean time of a call over at least `seconds` back to back, with at most a few calls queued."""
    calls, began = 0, time.perf_counter()
    first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    first.record()
    while time.perf_counter() - began < seconds:
        for _ in range(20):
            call()
        calls += 20
        torch.cuda.synchronize()
    last.record()
    torch.cuda.synchronize()
    return float(first.elapsed_time(last)) / 1e3 / calls


def row(dtype: str, condition: str, flop_per_s: float | None, bytes_per_s: float | None, source: str) -> dict[str, Any]:
    return {
        "dtype": dtype,
        "condition": condition,
        "flop_per_s": flop_per_s,
        "bytes_per_s": bytes_per_s,
        "source": source,
    }


if __name__ == "__main__":
    main()
