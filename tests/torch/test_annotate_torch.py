"""Ranges of a real torch on a CPU: balanced, with the cost of every operator, and without a trace in the results."""

from __future__ import annotations

import importlib.util
import threading
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from mfupipe import annotate
from mfupipe.annotate import Annotation, parse_message

pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="no torch"),
]
if importlib.util.find_spec("torch") is not None:
    import torch
    from torch import nn
    from torch.nn import functional

    from mfupipe.annotate_torch import annotate_module, annotate_optimizer, count_flop


class Recorder:
    """An emitter that keeps what it is told, per thread, and refuses a pop too many."""

    name = "recorder"

    def __init__(self) -> None:
        self.open: dict[int, list[str]] = {}
        self.messages: list[str] = []
        self.deepest = 0

    def push(self, message: str) -> None:
        here = self.open.setdefault(threading.get_ident(), [])
        here.append(message)
        self.deepest = max(self.deepest, len(here))
        self.messages.append(message)

    def pop(self) -> None:
        self.open[threading.get_ident()].pop()

    def found(self, direction: str) -> list[Annotation]:
        parsed = [parse_message(message) for message in self.messages]
        return [annotation for annotation in parsed if annotation.direction == direction]

    def is_balanced(self) -> bool:
        return not any(self.open.values())


@pytest.fixture
def recorder() -> Iterator[Recorder]:
    found = Recorder()
    with annotate.emitting_to(found):
        yield found


def names(annotations: list[Annotation]) -> list[str]:
    return [annotation.name for annotation in annotations]


class Block(nn.Module):
    """A residual block as in ResNet: both ReLU and the addition work in place."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(4, 4, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(4)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x: Any) -> Any:
        out = self.norm(self.conv(x))
        out += x
        return self.relu(out)


def make_network() -> Any:
    torch.manual_seed(0)
    stem = [nn.Conv2d(3, 4, 3, stride=2, padding=1), nn.ReLU(inplace=True), nn.MaxPool2d(2)]
    return nn.Sequential(*stem, Block(), Block(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 5))


def gradients(model: Any, inputs: Any) -> list[Any]:
    functional.cross_entropy(model(inputs), torch.tensor([1, 2])).backward()
    return [parameter.grad for parameter in model.parameters()]


def test_annotated_gradients_equal_plain_ones_with_modules_that_work_in_place(recorder: Recorder) -> None:
    inputs = torch.randn(2, 3, 16, 16)
    plain = gradients(make_network(), inputs)
    model = make_network()
    annotate_module(model)
    annotated = gradients(model, inputs)
    assert all(torch.equal(a, b) for a, b in zip(plain, annotated, strict=True))
    assert recorder.is_balanced()


def test_every_operator_has_a_range_forward_and_backward(recorder: Recorder) -> None:
    model = make_network()
    annotate_module(model)
    gradients(model, torch.randn(2, 3, 16, 16))
    expected = Counter(conv2d=3, relu=3, max_pool2d=1, batch_norm=2, add=2, adaptive_avg_pool2d=1, linear=1)
    # both batch norms count their batches on the device
    assert Counter(names(recorder.found("forward"))) == expected + Counter(add=2)
    # each block's input has two consumers: its two gradients are added up
    assert Counter(names(recorder.found("backward"))) == expected + Counter(gradient_accumulation=2)
    assert all(a.flop is not None and a.bytes is not None for a in recorder.found("backward"))
    assert recorder.is_balanced()


def test_no_range_with_a_cost_is_inside_another(recorder: Recorder) -> None:
    """The innermost cost counts: an outer one would lose its FLOP to what it encloses."""
    model = nn.Sequential(nn.Linear(4, 4), make_residual(), nn.Linear(4, 4))
    annotate_module(model)
    model(torch.randn(2, 3, 4)).mean().backward()
    added = [a for a in recorder.found("backward") if a.name == "gradient_accumulation"]
    assert added and recorder.deepest == 1


def make_residual() -> nn.Module:
    """Two linear layers whose results and input are added up: its input's gradient has three parts."""

    class Residual(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.one, self.two = nn.Linear(4, 4), nn.Linear(4, 4)

        def forward(self, x: Any) -> Any:
            return x + self.one(x) + self.two(x)

    return Residual()


def test_backward_runs_in_the_reverse_order_of_forward(recorder: Recorder) -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(inplace=True), nn.LayerNorm(4), nn.GELU())
    annotate_module(model)
    model(torch.randn(2, 3, 4)).mean().backward()
    assert names(recorder.found("backward")) == names(recorder.found("forward"))[::-1]


def test_a_convolution_states_hand_derived_flop_and_bytes(recorder: Recorder) -> None:
    model = nn.Conv2d(8, 16, 3, stride=2, padding=1, groups=4)
    annotate_module(model)
    model(torch.randn(2, 8, 10, 10, requires_grad=True)).sum().backward()
    forward, backward = recorder.found("forward")[0], recorder.found("backward")[0]
    flop = 2 * (2 * 16 * 5 * 5) * (2 * 9)
    data, weight, bias, result = 2 * 8 * 100, 16 * 2 * 9, 16, 2 * 16 * 25
    assert (forward.flop, forward.bytes) == (flop, 4 * (data + weight + bias + result))
    assert (backward.flop, backward.bytes) == (2 * flop, 4 * (result + 2 * data + 2 * weight + bias))


def test_the_first_layer_has_no_gradient_of_its_input(recorder: Recorder) -> None:
    model = nn.Sequential(nn.Linear(8, 4), nn.Linear(4, 2))
    annotate_module(model)
    model(torch.randn(3, 8)).sum().backward()
    last, first = recorder.found("backward")
    assert (first.flop, last.flop) == (2 * 3 * 8 * 4, 2 * 2 * 3 * 4 * 2)


def test_frozen_weights_cost_no_backward(recorder: Recorder) -> None:
    model = nn.Linear(8, 4).requires_grad_(requires_grad=False)
    annotate_module(model)
    model(torch.randn(3, 8, requires_grad=True)).sum().backward()
    assert [a.flop for a in recorder.found("backward")] == [2 * 3 * 8 * 4]


@pytest.mark.parametrize("causal", [True, False])
def test_attention_counts_the_pairs_that_the_mask_leaves(recorder: Recorder, causal: bool) -> None:
    class Attention(nn.Module):
        def forward(self, q: Any, k: Any) -> Any:
            return functional.scaled_dot_product_attention(q, k, k, is_causal=causal, enable_gqa=True)

    model = Attention()
    annotate_module(model)
    q, k = torch.randn(2, 8, 6, 4, requires_grad=True), torch.randn(2, 2, 6, 4, requires_grad=True)
    model(q, k).sum().backward()
    flop = 4 * 2 * 8 * 4 * (21 if causal else 36)
    forward, backward = recorder.found("forward")[0], recorder.found("backward")[0]
    assert (forward.name, forward.flop) == ("attention", flop)
    assert (backward.flop, backward.extra_flop) == (2 * flop, flop // 2)


@pytest.mark.parametrize("causal", [True, False])
def test_multi_head_attention_counts_projections_and_pairs(recorder: Recorder, causal: bool) -> None:
    layer = nn.MultiheadAttention(8, 2)
    annotate_module(layer)
    x, mask = torch.randn(6, 3, 8, requires_grad=True), nn.Transformer.generate_square_subsequent_mask(6)
    layer(x, x, x, need_weights=False, is_causal=causal, attn_mask=mask if causal else None)[0].sum().backward()
    # four 8 x 8 projections of 18 rows; two products over the pairs, 3 sequences, width 8
    flop = 4 * 2 * 18 * 64 + 4 * 3 * (21 if causal else 36) * 8
    forward, backward = recorder.found("forward")[0], recorder.found("backward")[0]
    assert (forward.name, forward.flop, backward.flop) == ("multi_head_attention", flop, 2 * flop)
    # forward: x once, weights, biases, result, and four tensors of its size kept for backward
    assert forward.bytes == 4 * (144 + 4 * 64 + 4 * 8 + 144 + 4 * 144)
    assert recorder.is_balanced()


def test_autocast_products_are_bf16_and_norms_are_fp32(recorder: Recorder) -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.LayerNorm(4))
    annotate_module(model)
    with torch.autocast("cpu", torch.bfloat16):
        model(torch.randn(2, 4)).sum().backward()
    linear = recorder.found("forward")[0]
    assert linear.dtype == "bf16"
    assert linear.bytes == 4 * (8 + 16 + 4) + 2 * 8  # float32 operands cross the border, a bf16 result leaves
    assert recorder.is_balanced()


def test_without_gradients_there_is_no_backward_range(recorder: Recorder) -> None:
    model = make_network().eval()
    annotate_module(model)
    with torch.no_grad():
        model(torch.randn(2, 3, 16, 16))
    assert recorder.found("forward")
    assert not recorder.found("backward")


def test_a_module_that_raises_leaves_no_range_open(recorder: Recorder) -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(5, 5))
    annotate_module(model)
    with pytest.raises(RuntimeError):
        model(torch.randn(2, 4))
    assert recorder.is_balanced()
    assert not torch.overrides._get_current_function_mode_stack()


def test_removed_hooks_leave_no_range(recorder: Recorder) -> None:
    model = make_network()
    annotate_module(model).remove()
    gradients(model, torch.randn(2, 3, 16, 16))
    assert not recorder.messages


def test_activation_checkpointing_and_two_backward_passes_stay_balanced(recorder: Recorder) -> None:
    from torch.utils.checkpoint import checkpoint

    class Checkpointed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)

        def forward(self, x: Any) -> Any:
            return self.second(checkpoint(self.first, x, use_reentrant=True))

    model = Checkpointed()
    annotate_module(model)
    loss = model(torch.randn(2, 4, requires_grad=True)).sum()
    loss.backward(retain_graph=True)
    assert recorder.is_balanced()
    once = len(recorder.found("backward"))
    second = nn.Linear(4, 4)
    annotate_module(second)
    result = second(torch.randn(2, 4)).sum()
    result.backward(retain_graph=True)
    result.backward()
    assert recorder.is_balanced()
    assert [a.flop for a in recorder.found("backward")[once:]] == [2 * 2 * 4 * 4] * 2


@pytest.mark.parametrize(
    ("kind", "options", "moved"),
    [("SGD", {}, 3), ("SGD", {"momentum": 0.9}, 5), ("Adam", {}, 7), ("AdamW", {"amsgrad": True}, 9)],
)
def test_an_optimizer_step_moves_parameters_gradients_and_states(
    recorder: Recorder, kind: str, options: dict[str, Any], moved: int
) -> None:
    model = nn.Linear(8, 4)
    optimizer = getattr(torch.optim, kind)(model.parameters(), lr=0.1, **options)
    annotate_optimizer(optimizer)
    for _ in range(2):
        model(torch.randn(2, 8)).sum().backward()
        optimizer.step()
    step = recorder.found("update")[-1]
    assert (step.name, step.flop, step.bytes) == (kind, 0, moved * 4 * (32 + 4))
    assert recorder.is_balanced()


def test_counting_works_on_the_meta_device_and_emits_nothing(recorder: Recorder) -> None:
    with torch.device("meta"):
        model = nn.Sequential(nn.Linear(1 << 14, 1 << 14), nn.Linear(1 << 14, 1 << 14))
        inputs = torch.empty(1 << 10, 1 << 14)
    forward, backward = count_flop(lambda: model(inputs))
    assert (forward, backward) == (2 * 2 * 2**38, 3 * 2 * 2**38)
    assert not recorder.messages
