from collections import OrderedDict

from ..autograd import profiler

_global_optimizer_post_hooks = OrderedDict()


class Handle:
    def __init__(self, key):
        self.key = key

    def remove(self):
        del _global_optimizer_post_hooks[self.key]


def register_optimizer_step_post_hook(hook):
    key = len(_global_optimizer_post_hooks)
    _global_optimizer_post_hooks[key] = hook
    return Handle(key)


class Optimizer:
    def __init__(self, parameters=(), defaults=None):
        self.parameters = parameters

    def step(self):
        with profiler.record_function():
            for hook in _global_optimizer_post_hooks.values():
                hook(self, (), {})


class SGD(Optimizer):
    pass
