"""Tiny workloads on a CPU: they run alone, keep the protocol with profile, and count what the literature counts."""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import mfupipe
from mfupipe import annotate
from mfupipe.annotate import Annotation, parse_message
from mfupipe.profile.evidence import read_steps

pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="no torch"),
]
ROOT = Path(mfupipe.__file__).parents[1]
WORKLOADS = ROOT / "workloads"
RUNS = [
    (name, mode, variant)
    for name, modes in (
        ("resnet50", ("infer", "train")),
        ("transformer", ("train", "prefill", "decode")),
        ("softmax", ("infer",)),
        ("matmul_residual", ("infer",)),
    )
    for mode in modes
    for variant in ("fp32", "bf16")
] + [("softmax", "infer", "bf16_unmasked"), ("matmul_residual", "infer", "bf16_fused")]


def load(name: str) -> Any:
    found = importlib.util.spec_from_file_location(f"workload_{name}", WORKLOADS / f"{name}.py")
    assert found is not None and found.loader is not None
    module = importlib.util.module_from_spec(found)
    sys.modules[found.name] = module
    found.loader.exec_module(module)
    return module


class Recorder:
    """Keeps messages, with those that were open around them."""

    name = "recorder"

    def __init__(self) -> None:
        self.open: list[Annotation] = []
        self.closed: list[tuple[Annotation, ...]] = []

    def push(self, message: str) -> None:
        self.open.append(parse_message(message))
        self.closed.append(tuple(self.open))

    def pop(self) -> None:
        self.open.pop()


def options(mode: str, variant: str, **others: Any) -> Any:
    from mfupipe.measure import Options

    return Options(
        **{"batch": None, "warmup": 1, "steps": 2, "size": "tiny", "device": "cpu", **others},
        mode=mode,
        variant=variant,
    )


@pytest.mark.parametrize(("name", "mode", "variant"), RUNS)
def test_every_step_is_a_range_whose_operators_add_up_to_its_flop(
    name: str, mode: str, variant: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from mfupipe.measure import measure

    monkeypatch.setenv("MFUPIPE_STEPS_FILE", str(tmp_path / "steps.json"))
    workload = load(name).build(options(mode, variant))
    recorder = Recorder()
    with annotate.emitting_to(recorder):
        measure(workload, options(mode, variant))
    assert not recorder.open
    steps = [stack[0] for stack in recorder.closed if len(stack) == 1 and stack[0].name == "step"]
    assert [step.index for step in steps] == [0, 1]
    assert {(step.flop, step.items, step.phase) for step in steps} == {(workload.work.flop, workload.work.items, mode)}
    for index in (0, 1):
        inside = [stack[-1] for stack in recorder.closed if len(stack) > 1 and stack[0].index == index]
        assert sum(a.flop for a in inside if a.flop is not None) == workload.work.flop
        assert {a.direction for a in inside} == ({"forward", "backward", "update"} if mode == "train" else {"forward"})
        # Gradients may be added up between the nodes of one call (a convolution and its weight's cast; rms_norm is
        # several nodes on a CPU): the call's cost is in its first part, and the rest has none.
        rest = {(a.name, a.flop, a.direction) for a in inside if a.bytes is None}
        assert rest <= {("conv2d", None, "backward"), ("rms_norm", None, "backward")}


@pytest.mark.parametrize(("name", "mode"), [("resnet50", "train"), ("transformer", "decode")])
def test_a_workload_runs_alone_and_writes_what_profile_reads(name: str, mode: str, tmp_path: Path) -> None:
    script = str(WORKLOADS / f"{name}.py")
    argv = [sys.executable, script, "--steps", "2", "--warmup", "1", "--variant", "bf16", "--mode", mode]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "MFUPIPE_STEPS_FILE": str(tmp_path / "steps.json")}
    argv += ["--size", "tiny", "--device", "cpu"]
    result = subprocess.run(argv, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert "ms per step (n=2" in result.stdout
    report = read_steps(tmp_path / "steps.json")
    assert report is not None
    assert len(report.untraced_step_ns) == 2 and min(report.untraced_step_ns) > 0
    assert report.items_per_step == 2
    assert report.flop_per_step is not None and report.flop_convention is not None
    raw = json.loads((tmp_path / "steps.json").read_text())
    versions = {"torch", "cuda", "python"}
    assert set(raw) == {"untraced_step_ns", "items_per_step", "flop_per_step", "flop_convention"} | versions


def test_every_workload_is_known_to_profile_and_has_fp32_and_bf16() -> None:
    from mfupipe.profile.request import known_workloads

    names = {name for name, _, _ in RUNS}
    assert names == set(known_workloads())
    assert all({"fp32", "bf16"} <= set(load(name).CHOICES.variants) for name in names)
    assert all(len((WORKLOADS / f"{name}.py").read_text().splitlines()) < 200 for name in names)


def test_both_ways_to_add_a_residual_agree() -> None:
    import torch

    module = load("matmul_residual")
    tensors = [torch.randn(size, dtype=torch.float64) for size in ((4, 3), (3, 5), (4, 5))]
    assert torch.allclose(module.separate(*tensors), module.fused(*tensors))


def test_without_a_gpu_the_error_names_the_way_out() -> None:
    import torch

    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    argv = [sys.executable, str(WORKLOADS / "transformer.py"), "--size", "tiny", "--steps", "1"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    result = subprocess.run(argv, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 3
    assert "--device cpu" in result.stderr
    assert "Traceback" not in result.stderr


def test_resnet50_has_the_published_flop_and_parameters() -> None:
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    module = load("resnet50")
    full = {"size": "full", "batch": 1}
    forward, trained = (module.step_flop(options(mode, "fp32", **full)) for mode in ("infer", "train"))
    assert (forward, trained) == (8_178_368_512, 24_299_077_632)
    with torch.device("meta"):
        model, (images, labels) = (
            module.WithLoss(module.plain_resnet50()),
            module.inputs(options("train", "fp32", **full), "meta"),
        )
        with FlopCounterMode(display=False) as counter:
            model(images, labels).backward()
    assert sum(parameter.numel() for parameter in model.parameters()) == 25_557_032
    assert counter.get_total_flops() == trained


def test_transformer_flop_equal_an_independent_counter_and_exact_causal_attention() -> None:
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    module = load("transformer")
    shape, chosen = module.SHAPES["tiny"], options("train", "fp32")
    model, given = module.Transformer(shape), module.make_inputs(shape, chosen, "cpu")
    with FlopCounterMode(display=False) as counter:
        model(given.tokens, given.target).backward()
    # torch's counter leaves attention on a CPU out: two products over S (S + 1) / 2 pairs, three times over
    pairs = shape.length * (shape.length + 1) // 2
    attention = 3 * shape.layers * 4 * shape.batch * shape.heads * pairs * shape.head_width
    assert module.count_work(shape, chosen).flop == counter.get_total_flops() + attention
    assert torch.isfinite(model(given.tokens, given.target))


def test_decoding_with_a_cache_equals_the_last_token_of_prefill() -> None:
    import torch

    module = load("transformer")
    shape, chosen = module.SHAPES["tiny"], options("prefill", "fp32")
    torch.manual_seed(0)
    model, given = module.Transformer(shape), module.make_inputs(shape, chosen, "cpu")
    caches: list[tuple[Any, Any]] = []
    for block in model.blocks:
        keep(block.attention, caches)
    with torch.no_grad():
        whole = model(given.tokens)[:, -1]
        last = model(given.tokens[:, -1:], None, [(torch.zeros_like(k) + k, v + 0) for k, v in caches])[:, 0]
    assert torch.allclose(whole, last, atol=1e-5)


def keep(attention: Any, caches: list[tuple[Any, Any]]) -> None:
    """Note keys and values of the first call, with the last place wiped."""
    functional: Any = importlib.import_module("torch.nn.functional")

    def noting(*arguments: Any) -> Any:
        original = functional.scaled_dot_product_attention

        def seen(query: Any, key: Any, value: Any, **others: Any) -> Any:
            caches.append((key.clone(), value.clone()))
            for kept in caches[-1]:
                kept[:, :, -1] = 0
            return original(query, key, value, **others)

        functional.scaled_dot_product_attention = seen
        try:
            return forward(*arguments)
        finally:
            functional.scaled_dot_product_attention = original
            attention.forward = forward

    forward, attention.forward = attention.forward, noting
