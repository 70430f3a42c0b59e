_global_forward_pre_hooks = {}


class Handle:
    def __init__(self, hooks, hook):
        self.hooks = hooks
        hooks[id(self)] = hook

    def remove(self):
        self.hooks.pop(id(self), None)


def register_module_forward_pre_hook(hook):
    return Handle(_global_forward_pre_hooks, hook)


class Parameter:
    def __init__(self, is_cuda=True):
        self.is_cuda = is_cuda


class Module:
    def __init__(self, children=(), parameter=None):
        self.children, self.parameter, self._forward_pre_hooks = list(children), parameter or Parameter(), {}

    def modules(self):
        yield self
        for child in self.children:
            yield from child.modules()

    def parameters(self):
        return iter([self.parameter])

    def register_forward_pre_hook(self, hook):
        return Handle(self._forward_pre_hooks, hook)

    def forward(self, x):
        for child in self.children:
            x = child(x)
        return x

    def __call__(self, x):
        for hook in (*_global_forward_pre_hooks.values(), *self._forward_pre_hooks.values()):
            hook(self, (x,))
        return self.forward(x)


class OptimizedModule(Module):
    def __init__(self, wrapped):
        Module.__init__(self, [wrapped])
