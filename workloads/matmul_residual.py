"""x @ W + residual, the end of an attention or MLP block: two kernels, the sum in the product's epilogue, or compiled.

python workloads/matmul_residual.py --variant bf16_fused

All variants are held against one bound: FLOP of the product, and every operand and the result moved once in bf16.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import torch

from mfupipe import annotate
from mfupipe.costs.modules import Operand, matmul
from mfupipe.measure import Choices, Options, StepWork, Workload, main

CHOICES = Choices(variants=("bf16", "fp32", "bf16_fused", "bf16_compiled"), modes=("infer",))
# rows, columns, inner length; full: the output projection of LLaMA-2-70B under eight-way tensor parallelism
SHAPES = {"full": (16384, 8192, 1024), "tiny": (64, 32, 16)}
BF16_BYTES = 2


def separate(x: Any, weight: Any, residual: Any) -> Any:
    """The product is written, then read again for the sum."""
    return x @ weight + residual


def fused(x: Any, weight: Any, residual: Any) -> Any:
    """The sum is part of the product."""
    return torch.addmm(residual, x, weight)


def choose(variant: str) -> Callable[..., Any]:
    """The function of a variant."""
    if variant == "bf16_compiled":
        compiled: Callable[..., Any] = torch.compile(separate, mode="max-autotune-no-cudagraphs")
        return compiled
    return fused if variant == "bf16_fused" else separate


def build(options: Options) -> Workload:
    """One product and sum per step."""
    torch.manual_seed(0)
    torch.backends.cuda.matmul.allow_tf32 = False
    rows, columns, inner = SHAPES[options.size]
    dtype = torch.float32 if options.variant == "fp32" else torch.bfloat16
    sizes = ((options.batch or rows, inner), (inner, columns), (options.batch or rows, columns))
    tensors = [torch.randn(size, device=options.device, dtype=dtype) for size in sizes]
    x, weight, residual = (Operand(size, BF16_BYTES) for size in sizes)
    cost = matmul(x, weight, residual, BF16_BYTES).forward
    function = choose(options.variant)
    name = "fp32" if options.variant == "fp32" else "bf16"

    def step() -> None:
        with (
            torch.no_grad(),
            annotate.operator("matmul_residual", flop=cost.flop, bytes=cost.bytes, dtype=name, direction="forward"),
        ):
            function(*tensors)

    work = StepWork(cost.flop, items=sizes[0][0], phase="infer", flop_convention="2 M N K", bytes=cost.bytes)
    return Workload(step, work, lambda: None, options.device)


if __name__ == "__main__":
    sys.exit(main(build, CHOICES))
