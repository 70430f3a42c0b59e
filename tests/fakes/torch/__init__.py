"""A stand-in for torch with the hooks that mfupipe/inject uses; every CUDA and NVTX call becomes a line of the file FAKE_TORCH_LOG.

Runs on Python 3.8. `FAKE_TORCH_CUDA=0` stands for a machine without a GPU.
"""

import os

from . import _C, compiler, cuda, nn, optim, version
from .autograd import profiler as _profiler

__version__ = "0.0.fake"
grad_enabled = [True]


def is_grad_enabled():
    return grad_enabled[0]


class no_grad:
    def __enter__(self):
        grad_enabled[0] = False

    def __exit__(self, *_):
        grad_enabled[0] = True


def compile(target=None, **options):
    return nn.OptimizedModule(target) if isinstance(target, nn.Module) else target
