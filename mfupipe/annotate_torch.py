"""Every operator of a torch module in a range that carries its cost, forward and backward.

Forward calls are seen by a TorchFunctionMode. Backward ranges are opened by hooks on the autograd nodes that a call
made, on whichever thread runs them; no tensor is wrapped, so modules that work in place (ReLU(inplace=True), and
`out += x`) are undisturbed. Not for compiled modules: what a compiler fuses has no calls to see.
"""

# ruff: noqa: SLF001 - sequence numbers and graph tasks of autograd have no public names

from __future__ import annotations

import importlib
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mfupipe import annotate
from mfupipe.costs import modules
from mfupipe.costs.modules import Cost
from mfupipe.torch_calls import DTYPES, Call, describe, to_operand

torch: Any = importlib.import_module("torch")
_Mode: Any = importlib.import_module("torch.overrides").TorchFunctionMode

_MAX_KNOWN_CALLS = 4096
_LEAF_SEQUENCE = 1 << 63  # AccumulateGrad's sequence number is beyond: it belongs to no call
_ACCUMULATION = "gradient_accumulation"
# Their backward passes only look at the gradient in another way.
_VIEWS = frozenset({"TBackward0", "ViewBackward0", "UnsafeViewBackward0", "TransposeBackward0", "PermuteBackward0"})


@dataclass(frozen=True)
class Messages:
    """The two messages of a call, and their model FLOP. forward is None where nothing runs (views)."""

    forward: str | None
    backward: str
    forward_flop: int
    backward_flop: int


def _messages(call: Call) -> Messages:
    forward, backward = call.cost.forward, call.cost.backward
    return Messages(
        _write(call.name, forward, call.dtype, "forward") if forward != Cost() else None,
        _write(call.name, backward, call.dtype, "backward"),
        forward.flop,
        backward.flop,
    )


def _write(name: str, cost: Cost, dtype: str | None, direction: str) -> str:
    return annotate.write_message(
        name, flop=cost.flop, extra_flop=cost.extra_flop or None, bytes=cost.bytes, dtype=dtype, direction=direction
    )


class Operators(_Mode):  # type: ignore[misc]  # torch is not imported when types are checked
    """Context manager: calls of torch functions inside get ranges. Counts their model FLOP on the way.

    flop: of forward calls seen so far; backward_flop: of their backward passes where a gradient is needed.
    """

    def __init__(self) -> None:
        super().__init__()
        self.flop = 0
        self.backward_flop = 0
        self._known: dict[object, Messages | None] = {}

    def __torch_function__(
        self, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Run one call inside its range."""
        named = kwargs or {}
        messages = self._messages(getattr(function, "__name__", ""), args, named)
        if messages is None:
            return function(*args, **named)
        sequence = torch.autograd._get_sequence_nr()
        result = _run(messages.forward, function, args, named) if messages.forward else function(*args, **named)
        self.flop += messages.forward_flop
        if torch.is_grad_enabled() and follow(result, messages.backward, sequence):
            self.backward_flop += messages.backward_flop
        return result

    def _messages(self, name: str, args: tuple[Any, ...], named: dict[str, Any]) -> Messages | None:
        """Messages of a call, kept for calls that look the same."""
        key = (name, _look(args), _look(tuple(named.items())), torch.is_grad_enabled(), *_autocast())
        if key in self._known:
            return self._known[key]
        call = describe(name, args, named)
        messages = _messages(call) if call is not None else None
        if len(self._known) < _MAX_KNOWN_CALLS:
            self._known[key] = messages
        return messages


def _run(message: str, function: Any, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """Call a function inside a range."""
    annotate.push(message)
    try:
        return function(*args, **named)
    finally:
        annotate.pop()


def _autocast() -> tuple[object, ...]:
    """Autocast of both kinds of device: what it is, and whether it is on."""
    kinds = ("cuda", "cpu")
    return tuple(torch.is_autocast_enabled(kind) and torch.get_autocast_dtype(kind) for kind in kinds)


def _look(value: Any) -> object:
    """What of an argument decides its cost, hashable."""
    if isinstance(value, torch.Tensor):
        return (value.shape, value.dtype, value.requires_grad, value.is_contiguous(), value.device.type)
    if isinstance(value, list | tuple):
        return tuple(_look(item) for item in value)
    return value if isinstance(value, int | float | str | None) else repr(type(value)) + str(value)[:80]


# Backward


class _Span:
    """The backward pass of one call: nodes that run one after another, in one range."""

    __slots__ = ("left", "message", "nodes", "task")

    def __init__(self, message: str, nodes: int) -> None:
        self.message, self.nodes, self.left, self.task = message, nodes, nodes, -1


class _Thread(threading.local):
    """What is open on one backward thread, and the gradients that have arrived in the graph it works on.

    span: the call whose range is open. is_adding: a range of gradient accumulation is open; never both at once.
    """

    def __init__(self) -> None:
        self.span: _Span | None = None
        self.is_adding = False
        self.task = -1
        self.arrived: set[tuple[int, int]] = set()


_THREAD = _Thread()


def follow(result: Any, message: str, sequence: int) -> bool:
    """Hook the autograd nodes made since `sequence` so that their backward pass runs in a range. True if there are any.

    Nodes of one call have consecutive sequence numbers and run in falling order, so one range holds them all. It is
    closed by the last of them, else by the next call's, else when the backward pass ends.
    """
    nodes = _made_since(result, sequence)
    span = _Span(message, len(nodes))
    for node in nodes:
        edges = [_edge(target, sequence) for target in node.next_functions]
        node.register_prehook(_opener(span, node.name()))
        node.register_hook(_closer(span, edges))
    return bool(nodes)


def _made_since(result: Any, sequence: int) -> list[Any]:
    results = result if isinstance(result, list | tuple) else (result,)
    pending = [tensor.grad_fn for tensor in results if isinstance(tensor, torch.Tensor) and tensor.grad_fn is not None]
    nodes: dict[int, Any] = {}
    while pending:
        node = pending.pop()
        number = node._sequence_nr()
        if sequence <= number < _LEAF_SEQUENCE and number not in nodes:
            nodes[number] = node
            pending += [target for target, _ in node.next_functions if target is not None]
    return list(nodes.values())


def _edge(target: tuple[Any, int], sequence: int) -> tuple[int, int] | None:
    """Identity of a gradient's destination outside the call; None inside, and for leaves, which add up on their own."""
    node, index = target
    if node is None or not node._sequence_nr() < sequence:
        return None
    return (node._sequence_nr(), index)


def _opener(span: _Span, node: str) -> Callable[[Any], None]:
    def before(_: Any) -> None:
        task = torch._C._current_graph_task_id()
        if task != _THREAD.task:
            _close()
            _THREAD.task, _THREAD.arrived = task, set()
            torch.autograd.Variable._execution_engine.queue_callback(_close)
        _close_accumulation()
        if _THREAD.span is not span:
            _close()
            if not (node in _VIEWS and span.task == task):  # the rest of an interrupted call, which launches nothing
                _open(span, task)

    return before


def _open(span: _Span, task: int) -> None:
    """Open the call's range. The cost counts once: a call that was interrupted goes on under its name alone."""
    if span.task == task:
        annotate.push(span.message.partition("|")[0] + "|direction=backward")
    else:
        annotate.push(span.message)
        span.task, span.left = task, span.nodes
    _THREAD.span = span


def _closer(span: _Span, edges: list[tuple[int, int] | None]) -> Callable[[Any, Any], None]:
    def after(gradients: Any, _: Any) -> None:
        span.left -= 1
        if span.left == 0:
            _close()
        added = [g for edge, g in zip(edges, gradients, strict=False) if g is not None and _arrives_again(edge)]
        if added:
            _open_accumulation(added)

    return after


def _arrives_again(edge: tuple[int, int] | None) -> bool:
    if edge is None:
        return False
    again = edge in _THREAD.arrived
    _THREAD.arrived.add(edge)
    return again


def _open_accumulation(gradients: list[Any]) -> None:
    """Autograd adds a second gradient to the first right after this hook: both are read, the sum is written.

    The call's own range ends before: a costed range inside it would take its cost from the rest of the call.
    """
    _close()
    cost = Cost(bytes=sum(3 * gradient.numel() * gradient.element_size() for gradient in gradients))
    annotate.push(_write(_ACCUMULATION, cost, DTYPES.get(gradients[0].dtype), "backward"))
    _THREAD.is_adding = True


def _close_accumulation() -> None:
    if _THREAD.is_adding:
        annotate.pop()
        _THREAD.is_adding = False


def _close() -> None:
    _close_accumulation()
    if _THREAD.span is not None:
        annotate.pop()
        _THREAD.span = None


# What a program calls


@dataclass(frozen=True)
class Handle:
    """Takes hooks back."""

    hooks: tuple[Any, ...]

    def remove(self) -> None:
        """Remove the hooks."""
        for hook in self.hooks:
            hook.remove()


def annotate_module(model: Any) -> Handle:
    """Give every operator that this module's forward pass calls a range with its cost, forward and backward."""
    operators = Operators()

    def enter(*_: Any) -> None:
        operators.__enter__()

    def leave(*_: Any) -> None:
        operators.__exit__(None, None, None)

    before = model.register_forward_pre_hook(enter)
    return Handle((before, model.register_forward_hook(leave, always_call=True)))


def annotate_optimizer(optimizer: Any) -> Handle:
    """Give every step of this optimizer a range, direction=update. Bytes of its first step are unknown."""
    message = [annotate.write_message(type(optimizer).__name__, direction="update")]

    def before(*_: Any) -> None:
        annotate.push(message[0])

    def after(*_: Any) -> None:
        annotate.pop()
        message[0] = update_message(optimizer)

    return Handle((optimizer.register_step_pre_hook(before), optimizer.register_step_post_hook(after)))


def update_message(optimizer: Any) -> str:
    """The message of a step like the last one: what it moves are parameters with a gradient, gradients, and states."""
    updated = [p for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
    states = [
        s for p in updated for s in optimizer.state.get(p, {}).values() if isinstance(s, torch.Tensor) and s.dim()
    ]
    cost = modules.optimizer_step(map(to_operand, updated), map(to_operand, states))
    return _write(type(optimizer).__name__, cost, DTYPES.get(updated[0].dtype) if updated else None, "update")


def count_flop(run: Callable[[], object]) -> tuple[int, int]:
    """Model FLOP of what `run` calls, (forward, backward), without emitting a range. Works on the meta device."""
    operators = Operators()
    with annotate.emitting_to(None), operators:
        run()
    return operators.flop, operators.backward_flop
