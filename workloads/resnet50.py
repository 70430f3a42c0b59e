"""ResNet-50 v1.5 on random images: inference or training, in fp32, tf32 or bf16 (channels_last; training: autocast).

python workloads/resnet50.py --variant bf16 --mode train
"""

from __future__ import annotations

import contextlib
import sys
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from mfupipe.annotate_torch import annotate_module, annotate_optimizer, count_flop
from mfupipe.measure import Choices, Options, StepWork, Workload, main

CHOICES = Choices(variants=("bf16", "fp32", "tf32"), modes=("infer", "train"))
CLASSES = 1000
SIDES = {"full": 224, "tiny": 64}
BATCHES = {"full": 512, "tiny": 2}  # 512: a bf16 step outlasts its traced launches


class Bottleneck(nn.Module):
    """1x1, 3x3 (which has the stride: v1.5), 1x1, added to the input."""

    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        outputs = 4 * width
        self.conv1, self.norm1 = convolution(inputs, width, 1, 1), nn.BatchNorm2d(width)
        self.conv2, self.norm2 = convolution(width, width, 3, stride), nn.BatchNorm2d(width)
        self.conv3, self.norm3 = convolution(width, outputs, 1, 1), nn.BatchNorm2d(outputs)
        self.relu = nn.ReLU(inplace=True)
        is_plain = stride == 1 and inputs == outputs
        shortcut = [] if is_plain else [convolution(inputs, outputs, 1, stride), nn.BatchNorm2d(outputs)]
        self.shortcut = nn.Sequential(*shortcut)

    def forward(self, x: Any) -> Any:
        """Add the residual in place."""
        out = self.relu(self.norm1(self.conv1(x)))
        out = self.relu(self.norm2(self.conv2(out)))
        out = self.norm3(self.conv3(out))
        out += self.shortcut(x)
        return self.relu(out)


def convolution(inputs: int, outputs: int, kernel: int, stride: int) -> nn.Conv2d:
    """A convolution without bias that keeps the size, but for its stride."""
    return nn.Conv2d(inputs, outputs, kernel, stride=stride, padding=kernel // 2, bias=False)


def plain_resnet50() -> nn.Module:
    """The same layers as torchvision's."""
    stem = [convolution(3, 64, 7, 2), nn.BatchNorm2d(64), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)]
    layers: list[nn.Module] = []
    inputs = 64
    for width, blocks in ((64, 3), (128, 4), (256, 6), (512, 3)):
        for index in range(blocks):
            stride = 2 if index == 0 and width > 64 else 1  # noqa: PLR2004 - the first stage keeps the size
            layers.append(Bottleneck(inputs, width, stride))
            inputs = 4 * width
    return nn.Sequential(*stem, *layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, CLASSES))


def resnet50() -> nn.Module:
    """torchvision's ResNet-50 where it is here and loads, else the same layers."""
    try:
        from torchvision import models  # noqa: PLC0415 - optional
    except (ImportError, RuntimeError):  # RuntimeError: built for another torch
        return plain_resnet50()
    model: nn.Module = models.resnet50()
    return model


class WithLoss(nn.Module):
    """Images and labels to the loss, so that the loss is an operator of the model too."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, images: Any, labels: Any) -> Any:
        """Mean cross entropy."""
        return functional.cross_entropy(self.model(images), labels)


def step_flop(options: Options) -> int:
    """Model FLOP of a step, counted layer by layer on the meta device: nothing is computed or allocated."""
    with torch.device("meta"):
        model, (images, labels) = WithLoss(resnet50()), inputs(options, "meta")
    if options.mode == "infer":
        return count_flop(lambda: inference(model.model, images))[0]
    return sum(count_flop(lambda: model(images, labels)))


def inference(model: nn.Module, images: Any) -> Any:
    """One forward pass."""
    with torch.no_grad():
        return model(images)


def inputs(options: Options, device: str) -> tuple[Any, Any]:
    """Random-normal images and random labels, made on the device."""
    batch, side = options.batch or BATCHES[options.size], SIDES[options.size]
    images = torch.randn(batch, 3, side, side, device=device)
    return images, torch.randint(CLASSES, (batch,), device=device)


def place(options: Options, value: Any) -> Any:
    """Move a module or images to the device, in the layout of the variant, and in bf16 for bf16 inference."""
    is_bf16 = options.variant == "bf16"
    dtype = torch.bfloat16 if is_bf16 and options.mode == "infer" else torch.float32
    return value.to(options.device, dtype, memory_format=torch.channels_last if is_bf16 else torch.contiguous_format)


def set_precision(options: Options) -> None:
    """fp32 is really fp32: no tf32 in convolutions, where it is torch's default."""
    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = options.variant == "tf32"


def build(options: Options) -> Workload:
    """The step of the options, and its work."""
    torch.manual_seed(0)
    set_precision(options)
    images, labels = inputs(options, options.device)
    work = StepWork(
        flop=step_flop(options), items=len(images), phase=options.mode, flop_convention="analytic, products only"
    )
    with torch.device(options.device):
        model = resnet50()
    if options.mode == "infer":
        model = place(options, model.eval())
        images = place(options, images)
        return Workload(lambda: inference(model, images), work, lambda: annotate_module(model), options.device)
    return training(options, WithLoss(place(options, model)), (place(options, images), labels), work)


def training(options: Options, model: nn.Module, batch: tuple[Any, Any], work: StepWork) -> Workload:
    """Forward, backward, SGD with momentum."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)

    def step() -> None:
        is_bf16 = options.variant == "bf16"
        with torch.autocast(options.device, torch.bfloat16) if is_bf16 else contextlib.nullcontext():
            loss = model(*batch)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return Workload(step, work, lambda: (annotate_module(model), annotate_optimizer(optimizer)), options.device)


if __name__ == "__main__":
    sys.exit(main(build, CHOICES))
