"""What a call of a torch function costs: its name in the report, its dtype, FLOP and bytes forward and backward.

Nothing here runs on a GPU: sizes, element sizes and flags of the arguments are read, formulas are of costs/modules.py.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mfupipe.costs import modules
from mfupipe.costs.modules import CallCost, Operand
from mfupipe.costs.shape import ShapeMismatch, broadcast, numel

torch: Any = importlib.import_module("torch")

DTYPES = {
    torch.float64: "fp64",
    torch.float32: "fp32",
    torch.bfloat16: "bf16",
    torch.float16: "fp16",
    torch.int8: "int8",
}
# Autocast runs these in float32 whatever comes in (torch.amp's own list, as far as it is costed here).
_FLOAT32_UNDER_AUTOCAST = frozenset({"softmax", "log_softmax", "layer_norm", "group_norm", "cross_entropy", "rms_norm"})


@dataclass(frozen=True)
class Call:
    """One call of a function. name: of the operator in the report; dtype: the one it computes in, None when other."""

    name: str
    dtype: str | None
    cost: CallCost


@dataclass(frozen=True)
class Arguments:
    """Arguments of one call, by position or by name."""

    positional: tuple[Any, ...]
    named: dict[str, Any]
    function: str

    def get(self, position: int, name: str, default: Any = None) -> Any:
        """The argument, or the default when the call leaves it out."""
        if position < len(self.positional):
            return self.positional[position]
        return self.named.get(name, default)

    def operand(self, position: int, name: str) -> Operand:
        """A tensor that must be there. Raises ShapeMismatch."""
        value = self.optional(position, name)
        if value is None:
            raise ShapeMismatch(f"argument {name} of {self.function} is no tensor")
        return value

    def optional(self, position: int, name: str) -> Operand | None:
        """A tensor, None when the argument is absent or something else."""
        value = self.get(position, name)
        return to_operand(value) if isinstance(value, torch.Tensor) else None

    def first(self) -> Any:
        """The first tensor of real numbers among the arguments and lists among them, else the first one, else None."""
        values = (*self.positional, *self.named.values())
        tensors = [v[0] if isinstance(v, list | tuple) and v else v for v in values]
        tensors = [value for value in tensors if isinstance(value, torch.Tensor)]
        return next((value for value in tensors if value.is_floating_point()), tensors[0] if tensors else None)


def to_operand(tensor: Any) -> Operand:
    """Size, element size and need of a gradient."""
    return Operand(tuple(tensor.shape), tensor.element_size(), tensor.requires_grad and torch.is_grad_enabled())


Formula = Callable[[Arguments], CallCost]


def describe(function: str, positional: tuple[Any, ...], named: dict[str, Any]) -> Call | None:
    """The call of a torch function or method by its __name__; None when it has no formula or other arguments."""
    entry = _TABLE.get(function)
    arguments = Arguments(positional, named, function)
    if entry is None or arguments.first() is None:
        return None
    name, formula = entry
    try:
        return Call(name, arithmetic_dtype(name, arguments), formula(arguments))
    except (ShapeMismatch, IndexError):
        return None


def arithmetic_dtype(name: str, arguments: Arguments) -> str | None:
    """The dtype that the call computes in: autocast's for products, tf32 where float32 products may use it."""
    dtype = DTYPES.get(compute_type(name, arguments))
    is_product = name in _PRODUCTS
    if dtype == "fp32" and is_product and arguments.first().is_cuda and _may_use_tf32(name):
        return "tf32"
    return dtype


def compute_type(name: str, arguments: Arguments) -> Any:
    """torch's dtype of the result: autocast's where it changes this function's, else that of the first tensor."""
    tensor = arguments.first()
    kind = tensor.device.type
    autocasts = torch.amp.is_autocast_available(kind) and torch.is_autocast_enabled(kind)
    if not autocasts or not tensor.is_floating_point():
        return tensor.dtype
    if name in _PRODUCTS:
        return torch.get_autocast_dtype(kind)
    return torch.float32 if name in _FLOAT32_UNDER_AUTOCAST else tensor.dtype


def _may_use_tf32(name: str) -> bool:
    backends = torch.backends
    backend = backends.cudnn if name.startswith("conv") else backends.cuda.matmul
    chosen = getattr(getattr(backend, "conv", backend), "fp32_precision", "none")
    return bool(backend.allow_tf32) if chosen == "none" else chosen == "tf32"


def _width(name: str, arguments: Arguments) -> int:
    return int(compute_type(name, arguments).itemsize)


# Products


def _linear(a: Arguments) -> CallCost:
    return modules.linear(a.operand(0, "input"), a.operand(1, "weight"), a.optional(2, "bias"), _width("linear", a))


def _matmul(a: Arguments) -> CallCost:
    return modules.matmul(a.operand(0, "input"), a.operand(1, "mat2"), None, _width("matmul", a))


def _addmm(a: Arguments) -> CallCost:
    return modules.matmul(a.operand(1, "mat1"), a.operand(2, "mat2"), a.operand(0, "input"), _width("matmul", a))


def _baddbmm(a: Arguments) -> CallCost:
    return modules.matmul(a.operand(1, "batch1"), a.operand(2, "batch2"), a.operand(0, "input"), _width("matmul", a))


def _window(a: Arguments, spatial: tuple[int, ...], kernel: tuple[int, ...]) -> modules.Window:
    stride = _spread(a.get(3, "stride", 1), kernel)
    dilation = _spread(a.get(5, "dilation", 1), kernel)
    padding = a.get(4, "padding", 0)
    if padding == "same":
        # as long as the input: the padding of both sides together is dilation * (kernel - 1)
        return modules.Window((1,) * len(spatial), (1,) * len(spatial), (0,) * len(spatial), dilation)
    return modules.Window(kernel, stride, _spread(0 if padding == "valid" else padding, kernel), dilation)


def _spread(value: Any, kernel: tuple[int, ...]) -> tuple[int, ...]:
    """One value per dimension; a single one is for all."""
    values = (value,) if isinstance(value, int) else tuple(value)
    return values * len(kernel) if len(values) == 1 else values


def _convolution(a: Arguments) -> CallCost:
    data, weight = a.operand(0, "input"), a.operand(1, "weight")
    window = _window(a, data.shape[2:], weight.shape[2:])
    return modules.convolution(data, weight, a.optional(2, "bias"), window, _width("conv2d", a))


def _attention(a: Arguments) -> CallCost:
    mask = modules.AttentionMask(bool(a.get(5, "is_causal", default=False)), a.optional(3, "attn_mask"))
    return modules.attention(a.operand(0, "query"), a.operand(1, "key"), a.operand(2, "value"), mask)


def _multi_head_attention(a: Arguments) -> CallCost:
    """nn.MultiheadAttention: one query, key and value weight; with separate ones there is no formula."""
    inputs = (a.operand(0, "query"), a.operand(1, "key"), a.operand(2, "value"))
    tensors = {id(value): value for value in (a.get(0, "query"), a.get(1, "key"), a.get(2, "value"))}
    weight, out_weight = a.operand(5, "in_proj_weight"), a.operand(11, "out_proj_weight")
    bias, out_bias = a.optional(6, "in_proj_bias"), a.optional(12, "out_proj_bias")
    layer = modules.AttentionLayer(weight, bias, out_weight, out_bias, a.get(4, "num_heads"))
    # is_causal is a promise about attn_mask; it is kept only where the weights are not asked for
    causal = a.get(23, "is_causal", default=False) and not a.get(15, "need_weights", default=True)
    mask = modules.AttentionMask(bool(causal), None if causal else a.optional(16, "attn_mask"))
    return modules.multi_head_attention(inputs, tuple(map(to_operand, tensors.values())), layer, mask)


# Traffic


def _unary(a: Arguments) -> CallCost:
    """Backward reads the input, or the result, which is as large."""
    data = a.operand(0, "input")
    return modules.elementwise((data,), data, (data,))


def _unary_linear(a: Arguments) -> CallCost:
    """Backward needs nothing saved."""
    data = a.operand(0, "input")
    return modules.elementwise((data,), data)


def _inputs(a: Arguments) -> tuple[Operand, ...]:
    values = (a.optional(0, "input"), a.optional(1, "other"))
    return tuple(value for value in values if value is not None)


def _broadcast(inputs: tuple[Operand, ...]) -> Operand:
    return Operand(broadcast(value.shape for value in inputs), max(value.width for value in inputs))


def _binary(a: Arguments) -> CallCost:
    """Backward reads both inputs."""
    inputs = _inputs(a)
    return modules.elementwise(inputs, _broadcast(inputs), inputs)


def _binary_linear(a: Arguments) -> CallCost:
    """Backward needs nothing saved."""
    inputs = _inputs(a)
    return modules.elementwise(inputs, _broadcast(inputs))


def _dropout(a: Arguments) -> CallCost:
    data = a.operand(0, "input")
    runs = a.get(2, "training", default=True) and a.get(1, "p", 0.5) > 0
    return modules.dropout(data) if runs else modules.CallCost(modules.Cost(), modules.Cost())


def _softmax(a: Arguments) -> CallCost:
    data = a.operand(0, "input")
    return modules.softmax(data, Operand(data.shape, _width("softmax", a)))


def _row_norm(name: str, statistics: int) -> Formula:
    def formula(a: Arguments) -> CallCost:
        data = a.operand(0, "input")
        parameters = tuple(p for p in (a.optional(2, "weight"), a.optional(3, "bias")) if p is not None)
        rows = numel(data.shape[: len(data.shape) - len(a.get(1, "normalized_shape"))])
        result = Operand(data.shape, _width(name, a))
        return modules.normalization(data, parameters, result, statistics * rows)

    return formula


def _batch_norm(a: Arguments) -> CallCost:
    data = a.operand(0, "input")
    trains = a.get(5, "training", default=False)
    named = (
        ((3, "weight"), (4, "bias"))
        if trains
        else ((3, "weight"), (4, "bias"), (1, "running_mean"), (2, "running_var"))
    )
    parameters = tuple(p for position, name in named if (p := a.optional(position, name)) is not None)
    return modules.normalization(data, parameters, data, 2 * data.shape[1] if trains else 0)


def _group_norm(a: Arguments) -> CallCost:
    data = a.operand(0, "input")
    parameters = tuple(p for p in (a.optional(2, "weight"), a.optional(3, "bias")) if p is not None)
    result = Operand(data.shape, _width("group_norm", a))
    return modules.normalization(data, parameters, result, 2 * data.shape[0] * a.get(1, "num_groups"))


def _embedding(a: Arguments) -> CallCost:
    return modules.embedding(a.operand(1, "weight"), a.operand(0, "input"))


def _cross_entropy(a: Arguments) -> CallCost:
    return modules.cross_entropy(a.operand(0, "input"), a.operand(1, "target"))


def _pool(pool: Callable[[Operand, Operand], CallCost]) -> Formula:
    def formula(a: Arguments) -> CallCost:
        data = a.operand(0, "input")
        spatial = data.shape[2:]
        kernel = _spread(a.get(1, "kernel_size"), spatial)
        stride = _spread(a.get(2, "stride") or kernel, spatial)
        window = modules.Window(kernel, stride, _spread(a.get(3, "padding", 0), spatial), (1,) * len(spatial))
        return pool(data, Operand((*data.shape[:2], *window.result(spatial)), data.width))

    return formula


def _adaptive_pool(a: Arguments) -> CallCost:
    data = a.operand(0, "input")
    wanted = _spread(a.get(1, "output_size"), data.shape[2:])
    return modules.average_pooling(data, Operand((*data.shape[:2], *wanted), data.width))


def _reduction(a: Arguments) -> CallCost:
    data = a.operand(0, "input")
    return modules.elementwise((data,), Operand((0,), data.width))


def _concatenation(a: Arguments) -> CallCost:
    inputs = tuple(to_operand(tensor) for tensor in a.get(0, "tensors"))
    return modules.elementwise(inputs, Operand((sum(value.elements for value in inputs),), inputs[0].width))


def _conversion(a: Arguments) -> CallCost:
    data = a.operand(0, "input")
    wanted = {"float": torch.float32, "bfloat16": torch.bfloat16, "half": torch.float16}.get(a.function)
    given = [v for v in (*a.positional[1:], *a.named.values()) if isinstance(v, torch.dtype)]
    target = wanted or (given[0] if given else None)
    if target is None or target == a.first().dtype:
        raise ShapeMismatch("nothing is converted")
    return modules.elementwise((data,), Operand(data.shape, target.itemsize))


def _copy(a: Arguments) -> CallCost:
    """destination, source."""
    destination, source = a.operand(0, "input"), a.operand(1, "other")
    return modules.elementwise((source,), destination)


def _split(a: Arguments) -> CallCost:
    """Views forward; backward puts the gradients of the parts together."""
    data = a.operand(0, "input")
    return modules.CallCost(modules.Cost(), modules.Cost(bytes=2 * data.bytes))


def _contiguous(a: Arguments) -> CallCost:
    if a.first().is_contiguous():
        raise ShapeMismatch("nothing is copied")
    return _unary_linear(a)


_PRODUCTS = frozenset(
    ["linear", "conv1d", "conv2d", "conv3d", "matmul", "addmm", "baddbmm", "attention", "multi_head_attention"]
)
_UNARY = """
relu relu_ sigmoid sigmoid_ tanh tanh_ exp exp_ sqrt rsqrt reciprocal gelu silu mish elu leaky_relu hardswish hardtanh
relu6 softplus log sin cos pow square abs clamp
"""
_UNARY_LINEAR = "neg clone masked_fill masked_fill_ triu tril roll flip"


def _table() -> dict[str, tuple[str, Formula]]:
    """Function name to operator name and formula; a method that works in place goes by the name of the other."""
    formulas: dict[str, Formula] = {
        "linear": _linear,
        "matmul": _matmul,
        "addmm": _addmm,
        "baddbmm": _baddbmm,
        "dropout": _dropout,
        "softmax": _softmax,
        "log_softmax": _softmax,
        "layer_norm": _row_norm("layer_norm", 2),
        "rms_norm": _row_norm("rms_norm", 1),
        "batch_norm": _batch_norm,
        "group_norm": _group_norm,
        "embedding": _embedding,
        "cross_entropy": _cross_entropy,
        "max_pool2d": _pool(modules.maximum_pooling),
        "avg_pool2d": _pool(modules.average_pooling),
        "adaptive_avg_pool2d": _adaptive_pool,
        "copy_": _copy,
        "cat": _concatenation,
        "stack": _concatenation,
        "contiguous": _contiguous,
        "reshape": _contiguous,
        "flatten": _contiguous,
    }
    table = {name: (name.rstrip("_"), formula) for name, formula in formulas.items()}
    table |= {name: (name, _convolution) for name in ("conv1d", "conv2d", "conv3d")}
    table |= dict.fromkeys(("mm", "bmm"), ("matmul", _matmul))
    table |= dict.fromkeys(("to", "float", "bfloat16", "half"), ("convert", _conversion))
    table |= dict.fromkeys(("split", "chunk", "unbind"), ("split", _split))
    table |= {name: (name, _reduction) for name in ("sum", "mean", "amax")}
    table["scaled_dot_product_attention"] = ("attention", _attention)
    table["multi_head_attention_forward"] = ("multi_head_attention", _multi_head_attention)
    for names, formula in (
        (_UNARY, _unary),
        (_UNARY_LINEAR, _unary_linear),
        ("add add_ sub sub_ rsub", _binary_linear),
        ("mul mul_ div div_ maximum minimum", _binary),
    ):
        table |= {name: (name.rstrip("_"), formula) for name in names.split()}
    return table


_TABLE = _table()
