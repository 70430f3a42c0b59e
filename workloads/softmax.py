"""Scale, causal mask and softmax of attention scores: an eager chain in fp32 or bf16, or compiled into one kernel.

python workloads/softmax.py --variant bf16_compiled

All variants are held against one bound: the scores read once and the result written once, in bf16.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import torch

from mfupipe import annotate
from mfupipe.measure import Choices, Options, StepWork, Workload, main

CHOICES = Choices(variants=("bf16", "fp32", "bf16_unmasked", "bf16_compiled"), modes=("infer",))
# batch, heads, length
SHAPES = {"full": (8, 32, 2048), "tiny": (2, 2, 64)}
BF16_BYTES = 2
SCALE = 0.088  # one over the root of a head width of 128


def chain(scores: Any, mask: Any) -> Any:
    """Three operators that each read and write everything."""
    return torch.softmax((scores * SCALE).masked_fill(mask, float("-inf")), dim=-1)


def unmasked(scores: Any, _: Any) -> Any:
    """torch's kernel alone: what a fused chain could cost."""
    return torch.softmax(scores, dim=-1)


def choose(variant: str) -> Callable[..., Any]:
    """The function of a variant."""
    if variant == "bf16_compiled":
        compiled: Callable[..., Any] = torch.compile(chain)
        return compiled
    return unmasked if variant == "bf16_unmasked" else chain


def build(options: Options) -> Workload:
    """One softmax over all scores per step."""
    torch.manual_seed(0)
    batch, heads, length = SHAPES[options.size]
    dtype = torch.float32 if options.variant == "fp32" else torch.bfloat16
    scores = torch.randn(options.batch or batch, heads, length, length, device=options.device, dtype=dtype)
    mask = torch.ones(length, length, dtype=torch.bool, device=options.device).triu(1)
    moved = 2 * scores.numel() * BF16_BYTES
    function = choose(options.variant)
    name = "fp32" if options.variant == "fp32" else "bf16"

    def step() -> None:
        with torch.no_grad(), annotate.operator("softmax", flop=0, bytes=moved, dtype=name, direction="forward"):
            function(scores, mask)

    work = StepWork(0, items=len(scores), phase="infer", flop_convention="no products: bytes decide", bytes=moved)
    return Workload(step, work, lambda: None, options.device)


if __name__ == "__main__":
    sys.exit(main(build, CHOICES))
