"""A LLaMA-shaped transformer on random tokens: training, prefill, or decoding with a cache, in fp32, tf32 or bf16.

python workloads/transformer.py --variant bf16 --mode decode
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from mfupipe.annotate_torch import annotate_module, annotate_optimizer, count_flop
from mfupipe.measure import Choices, Options, StepWork, Workload, main

CHOICES = Choices(variants=("bf16", "fp32", "tf32"), modes=("train", "prefill", "decode"))
CONVENTION = "analytic, causal attention counted exactly, no embedding, logits in"


@dataclass(frozen=True)
class Shape:
    """One model and its input: batch sequences of `length` tokens, in the cache when one more is decoded."""

    layers: int
    width: int
    heads: int
    key_heads: int
    inner: int
    vocabulary: int
    length: int
    batch: int

    @property
    def head_width(self) -> int:
        """Of query, key and value."""
        return self.width // self.heads


_FULL = Shape(4, 4096, 32, 8, 14336, 32000, length=2048, batch=8)
SHAPES = {"full": _FULL, "tiny": Shape(2, 64, 4, 2, 128, 97, length=16, batch=2)}


class Attention(nn.Module):
    """Grouped-query attention with rotary positions; `cache` holds keys and values, its last place is free."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.heads, self.key_heads, self.head_width = shape.heads, shape.key_heads, shape.head_width
        columns = (shape.heads + 2 * shape.key_heads) * shape.head_width
        self.project = nn.Linear(shape.width, columns, bias=False)
        self.out = nn.Linear(shape.width, shape.width, bias=False)

    def forward(self, x: Any, rotation: tuple[Any, Any], cache: tuple[Any, Any] | None) -> Any:
        """(B, S, width) to the same."""
        batch, length, width = x.shape
        heads = (self.heads, self.key_heads, self.key_heads)
        parts = self.project(x).split([n * self.head_width for n in heads], dim=-1)
        query, key, value = (
            part.view(batch, length, n, self.head_width).transpose(1, 2) for part, n in zip(parts, heads, strict=True)
        )
        query, key = rotate(query, rotation), rotate(key, rotation)
        if cache is not None:
            for old, new in zip(cache, (key, value), strict=True):
                old[:, :, -new.shape[2] :].copy_(new)
            key, value = cache
        mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=cache is None, enable_gqa=True)
        return self.out(mixed.transpose(1, 2).reshape(batch, length, width))


def rotate(x: Any, rotation: tuple[Any, Any]) -> Any:
    """Rotary position embedding."""
    cosine, sine = rotation
    left, right = x.chunk(2, dim=-1)
    return x * cosine + torch.cat([-right, left], dim=-1) * sine


class Block(nn.Module):
    """Attention and a gated MLP, each behind a norm and added to its input."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.RMSNorm(shape.width), nn.RMSNorm(shape.width)
        self.attention = Attention(shape)
        self.gate = nn.Linear(shape.width, shape.inner, bias=False)
        self.up = nn.Linear(shape.width, shape.inner, bias=False)
        self.down = nn.Linear(shape.inner, shape.width, bias=False)

    def forward(self, x: Any, rotation: tuple[Any, Any], cache: tuple[Any, Any] | None) -> Any:
        """(B, S, width) to the same."""
        x = x + self.attention(self.norm1(x), rotation, cache)
        normed = self.norm2(x)
        return x + self.down(functional.silu(self.gate(normed)) * self.up(normed))


class Transformer(nn.Module):
    """Token ids to logits, or to the loss against the next tokens when they are given."""

    cosine: torch.Tensor
    sine: torch.Tensor

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.embedding = nn.Embedding(shape.vocabulary, shape.width)
        self.blocks = nn.ModuleList(Block(shape) for _ in range(shape.layers))
        self.norm = nn.RMSNorm(shape.width)
        self.head = nn.Linear(shape.width, shape.vocabulary, bias=False)
        positions = torch.arange(shape.length)[:, None]
        angles = positions / 10000 ** (torch.arange(shape.head_width // 2) * 2 / shape.head_width)
        self.register_buffer("cosine", angles.cos().repeat(1, 2))
        self.register_buffer("sine", angles.sin().repeat(1, 2))

    def forward(self, tokens: Any, target: Any = None, caches: list[tuple[Any, Any]] | None = None) -> Any:
        """Without caches the tokens are at the first positions, with them at the last."""
        places = slice(-tokens.shape[1], None) if caches else slice(tokens.shape[1])
        rotation = (self.cosine[places], self.sine[places])
        x = self.embedding(tokens)
        for index, block in enumerate(self.blocks):
            x = block(x, rotation, caches[index] if caches else None)
        logits = self.head(self.norm(x))
        return logits if target is None else functional.cross_entropy(logits.flatten(0, 1), target.flatten())


@dataclass(frozen=True)
class Inputs:
    """Tokens and next tokens (B, S), or one token per sequence and the caches of every layer."""

    tokens: Any
    target: Any = None
    caches: list[tuple[Any, Any]] | None = None


def make_inputs(shape: Shape, options: Options, device: str) -> Inputs:
    """Random tokens; random-normal keys and values in the caches."""
    length = 1 if options.mode == "decode" else shape.length
    tokens = torch.randint(shape.vocabulary, (shape.batch, length), device=device)
    if options.mode == "train":
        return Inputs(tokens, torch.randint(shape.vocabulary, tokens.shape, device=device))
    if options.mode == "prefill":
        return Inputs(tokens)
    size = (shape.batch, shape.key_heads, shape.length, shape.head_width)
    pairs = [[torch.randn(size, device=device, dtype=dtype_of(options)) for _ in "kv"] for _ in range(shape.layers)]
    return Inputs(tokens, caches=[(key, value) for key, value in pairs])


def dtype_of(options: Options) -> torch.dtype:
    """Of parameters and activations."""
    return torch.bfloat16 if options.variant == "bf16" else torch.float32


def count_work(shape: Shape, options: Options) -> StepWork:
    """Work of a step, counted layer by layer on the meta device. Decoding must read the weights and the caches."""
    with torch.device("meta"):
        model, given = Transformer(shape).to(dtype_of(options)), make_inputs(shape, options, "meta")
    forward, backward = count_flop(lambda: model(given.tokens, given.target, given.caches))
    read = [*model.blocks.parameters(), *model.head.parameters(), *(t for pair in given.caches or [] for t in pair)]
    return StepWork(
        flop=forward + backward if options.mode == "train" else forward,
        items=shape.batch,
        tokens=given.tokens.numel(),
        phase=options.mode,
        flop_convention=CONVENTION,
        bytes=sum(t.numel() * t.element_size() for t in read) if options.mode == "decode" else None,
    )


def build(options: Options) -> Workload:
    """The step of the options, and its work."""
    torch.manual_seed(0)
    torch.backends.cuda.matmul.allow_tf32 = options.variant == "tf32"
    shape = SHAPES[options.size]
    shape = Shape(**{**vars(shape), "batch": options.batch or shape.batch})
    work, given = count_work(shape, options), make_inputs(shape, options, options.device)
    with torch.device(options.device):
        model = Transformer(shape).to(dtype_of(options))
    if options.mode == "train":
        return training(options, model, given, work)

    run = torch.no_grad()(lambda: model(given.tokens, caches=given.caches))
    return Workload(run, work, lambda: annotate_module(model), options.device)


def training(options: Options, model: nn.Module, given: Inputs, work: StepWork) -> Workload:
    """Forward, backward, AdamW in one fused kernel."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)

    def step() -> None:
        model(given.tokens, given.target).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return Workload(step, work, lambda: (annotate_module(model), annotate_optimizer(optimizer)), options.device)


if __name__ == "__main__":
    sys.exit(main(build, CHOICES))
