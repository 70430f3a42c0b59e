"""Finds the borders between steps: optimizer steps, else repeated calls of the outermost module on a GPU.

Loaded by sitecustomize.py beside it when torch is imported; standard library only, Python 3.8 and later.
"""

# ruff: noqa: BLE001 - a fault in here must never reach the program
from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator
from typing import Any

DISCOVERY_LIMIT = 20000  # module calls watched while looking for the outermost one


class Watch:
    """Hooks torch: optimizer steps, outermost module calls, torch.compile, and captures that the program
    opens itself."""

    def __init__(self, session: Any) -> None:
        self.session, self.torch = session, session.torch
        self.compiling: Callable[[], bool] = getattr(
            getattr(self.torch, "compiler", None), "is_compiling", lambda: False
        )
        self.candidates: list[Any] = []
        self.inside: dict[int, int] = {}
        self.calls_watched = 0
        self.global_hook: Any = None
        self.stepping = threading.local()

    def install(self) -> None:
        self.watch_optimizers()
        self.watch_modules()
        self.watch_compile()
        self.watch_profiler_start()

    def replace(self, owner: Any, name: str, value: Any) -> None:
        """Set an attribute, and set it back when the session is over, unless someone replaced ours
        meanwhile."""
        before = getattr(owner, name)
        setattr(owner, name, value)

        def restore() -> None:
            if getattr(owner, name) is value:
                setattr(owner, name, before)

        self.session.undo.append(restore)

    # Optimizers

    def watch_optimizers(self) -> None:
        base, session = self.torch.optim.Optimizer, self.session
        original = base.__init__

        def init(optimizer: Any, *args: Any, **kwargs: Any) -> None:
            session.optimizers_built += 1
            original(optimizer, *args, **kwargs)
            self.wrap_step(type(optimizer))

        self.replace(base, "__init__", functools.wraps(original)(init))

    def wrap_step(self, kind: Any) -> None:
        """Wrap a class's step once, outside torch's own wrapper: torch's post hooks run inside a range of autograd,
        which loses its end when operator ranges are switched off inside it."""
        if getattr(kind.step, "mfupipe_wrapped", False):
            return
        step, compiling = kind.step, self.compiling

        def stepped(optimizer: Any, *args: Any, **kwargs: Any) -> Any:
            if compiling():
                return step(optimizer, *args, **kwargs)
            with self.outermost() as is_outermost:
                result = step(optimizer, *args, **kwargs)
            if is_outermost:
                self.optimizer_stepped(optimizer)
            return result

        functools.update_wrapper(stepped, step)
        stepped.mfupipe_wrapped = True  # type: ignore[attr-defined]
        self.replace(kind, "step", stepped)

    @contextlib.contextmanager
    def outermost(self) -> Iterator[bool]:
        """True around the step of an optimizer that no other step of this thread called (super().step())."""
        is_first = not getattr(self.stepping, "now", False)
        self.stepping.now = True
        try:
            yield is_first
        finally:
            self.stepping.now = not is_first

    def optimizer_stepped(self, optimizer: Any) -> None:
        if self.session.is_over():
            return
        self.stop_watching_modules()
        followed = self.inside.setdefault(-1, id(optimizer))  # with several optimizers, the first one is the border
        if followed == id(optimizer):
            self.session.border("optimizer")

    # Modules

    def watch_modules(self) -> None:
        register = getattr(self.torch.nn.modules.module, "register_module_forward_pre_hook", None)
        if register is not None:
            self.global_hook = register(self.module_called)
            self.session.undo.append(self.stop_watching_modules)

    def stop_watching_modules(self) -> None:
        if self.global_hook is not None:
            self.global_hook.remove()
            self.global_hook = None

    def module_called(self, module: Any, args: Any) -> None:
        """While looking: a module that is inside none seen before is outermost; the first such called
        twice is the step."""
        if self.session.is_over() or self.compiling():
            return
        try:
            self.consider(module)
        except Exception as error:
            self.session.leave("failed", error)

    def consider(self, module: Any) -> None:
        self.calls_watched += 1
        if self.calls_watched > DISCOVERY_LIMIT:
            self.stop_watching_modules()
        elif any(module is known for known in self.candidates):
            if self.is_step(module):
                self.follow(module)
        elif id(module) not in self.inside:
            self.add_candidate(module)

    def add_candidate(self, module: Any) -> None:
        children = {id(child) for child in module.modules()}
        self.candidates = [known for known in self.candidates if id(known) not in children] + [module]
        self.inside.update(dict.fromkeys(children, id(module)))

    def is_step(self, module: Any) -> bool:
        """On the GPU, and not a forward pass of training, whose step is the optimizer's."""
        first = next(iter(module.parameters()), None)
        if first is None or not first.is_cuda:
            return False
        return not (self.session.optimizers_built and self.torch.is_grad_enabled())

    def follow(self, module: Any) -> None:
        self.stop_watching_modules()
        self.candidates = []
        hook = module.register_forward_pre_hook(lambda *_: self.followed_call())
        self.session.undo.append(hook.remove)

    def followed_call(self) -> None:
        if not self.compiling():
            self.session.border("module")

    # torch.compile

    def watch_compile(self) -> None:
        """Global hooks make compiled modules warn and recompile: from the first torch.compile on, only
        instances are hooked."""
        original = getattr(self.torch, "compile", None)
        if original is None:
            return

        def compile_watched(*args: Any, **kwargs: Any) -> Any:
            self.stop_watching_modules()
            return self.compiled(original(*args, **kwargs))

        self.replace(self.torch, "compile", functools.wraps(original)(compile_watched))

    def compiled(self, result: Any) -> Any:
        if self.session.state == "waiting" and isinstance(result, self.torch.nn.Module):
            hook = result.register_forward_pre_hook(self.compiled_call)
            self.session.undo.append(hook.remove)
        return result

    def compiled_call(self, module: Any, args: Any) -> None:
        if not self.compiling() and self.inside.setdefault(-2, id(module)) == id(module) and self.is_step(module):
            self.session.border("module")

    # The program's own captures

    def watch_profiler_start(self) -> None:
        cudart = getattr(self.torch._C, "_cudart", None)
        original = getattr(cudart, "cudaProfilerStart", None)
        if original is None:
            return

        def start() -> Any:
            self.session.user_capture()
            return original()

        start.mfupipe_original = original  # type: ignore[attr-defined]
        self.replace(cudart, "cudaProfilerStart", start)


def attach(torch: Any, session: Any) -> None:
    """Hook torch for a session; a fault while hooking is in its status."""
    try:
        Watch(session).install()
    except Exception as error:
        session.leave("failed", error)
