"""The injected file against the real torch on a CPU, its CUDA calls replaced: hooks, compile, and both step rules."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import mfupipe.inject

pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="no torch"),
]
INJECT = Path(mfupipe.inject.__file__).parent
FAKE_CUDA = """
import torch
class Event:
    def __init__(self, enable_timing=False): pass
    def record(self): pass
    def elapsed_time(self, other): return 2.0
class Cudart:
    cudaProfilerStart = staticmethod(lambda: calls.append('start') or 0)
    cudaProfilerStop = staticmethod(lambda: calls.append('stop') or 0)
class Nvtx:
    range_start = staticmethod(lambda text: calls.append(text) or 1)
    range_end = staticmethod(lambda handle: None)
calls, cuda = [], torch.cuda
cuda.is_initialized, cuda.is_current_stream_capturing = (lambda: True), (lambda: False)
cuda.synchronize, cuda.Event, cuda.cudart, cuda.nvtx = (lambda: None), Event, (lambda: Cudart), Nvtx
cuda.get_device_name = lambda: 'CPU'
model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
class OnGpu:
    is_cuda = True
x = torch.randn(4, 8)
"""
TRAIN = """
optimizer = torch.optim.{optimizer}(model.parameters(), lr=0.1)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 3)
for _ in range(9):
    optimizer.zero_grad()
    model(x).square().mean().backward()
    optimizer.step()
    scheduler.step()
print(calls)
"""
INFER = """
{prepare}
type(model).parameters = lambda self: iter([OnGpu()])
with torch.no_grad():
    for _ in range(10):
        model(x)
print(calls)
"""
CALLS = "['start', 'step|index=0', 'step|index=1', 'stop']\n"


def run(tmp_path: Path, code: str) -> tuple[str, dict[str, object]]:
    status = tmp_path / "status.json"
    (tmp_path / "program.py").write_text(FAKE_CUDA + code)
    environment = {**os.environ, "PYTHONPATH": str(INJECT), "MFUPIPE_STATUS": str(status)}
    environment |= {"MFUPIPE_WARMUP": "2", "MFUPIPE_STEPS": "2"}
    argv = [sys.executable, "-W", "error", str(tmp_path / "program.py")]
    result = subprocess.run(argv, env=environment, capture_output=True, text=True, check=False, timeout=300)
    assert result.returncode == 0, result.stderr
    return result.stdout, json.loads(status.read_text())


@pytest.mark.parametrize("optimizer", ["SGD", "AdamW"])
def test_training_steps_are_found_by_the_optimizer(tmp_path: Path, optimizer: str) -> None:
    stdout, status = run(tmp_path, TRAIN.format(optimizer=optimizer))
    assert stdout == CALLS
    assert (status["state"], status["rule"], status["untraced_step_ns"]) == (
        "closed",
        "optimizer",
        [2_000_000] * 2,
    )


def test_the_border_is_outside_the_range_that_torch_puts_around_a_step(tmp_path: Path) -> None:
    watch = """
inside, seen = [], []
class Recorded(torch.autograd.profiler.record_function):
    def __enter__(self): inside.append(self.name); return super().__enter__()
    def __exit__(self, *rest): inside.pop(); return super().__exit__(*rest)
torch.autograd.profiler.record_function = Recorded
for name in ('cudaProfilerStart', 'cudaProfilerStop'):
    setattr(Cudart, name, staticmethod(lambda: seen.append(list(inside)) or 0))
"""
    stdout, _ = run(tmp_path, watch + TRAIN.format(optimizer="AdamW") + "print(seen)\n")
    assert stdout.splitlines()[-1] == "[[], []]"


def test_inference_steps_are_found_by_the_outermost_module(tmp_path: Path) -> None:
    stdout, status = run(tmp_path, INFER.format(prepare=""))
    assert stdout == CALLS
    assert (status["state"], status["rule"]) == ("closed", "module")


def test_a_compiled_module_neither_warns_nor_recompiles(tmp_path: Path) -> None:
    prepare = "torch._dynamo.config.error_on_recompile = True\n"
    prepare += "model = torch.compile(model, backend='eager', fullgraph=True)"
    stdout, status = run(tmp_path, INFER.format(prepare=prepare))
    assert stdout == CALLS
    assert (status["state"], status["rule"]) == ("closed", "module")
