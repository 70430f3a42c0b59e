from .._log import log

recording = [0]


class record_function:
    """torch's optimizers run their step, hooks included, inside one."""

    def __enter__(self):
        recording[0] += 1

    def __exit__(self, *_):
        recording[0] -= 1


class emit_nvtx:
    def __init__(self, enabled=True, record_shapes=False):
        self.record_shapes = record_shapes

    def __enter__(self):
        assert not recording[0], "a range of autograd is open"
        log("emit_nvtx shapes=%s" % self.record_shapes)

    def __exit__(self, *_):
        assert not recording[0], "a range of autograd is open: torch loses its end"
        log("emit_nvtx off")
