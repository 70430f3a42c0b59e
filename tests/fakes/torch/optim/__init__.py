from . import optimizer
from .optimizer import SGD, Optimizer

del optimizer  # as torch does
