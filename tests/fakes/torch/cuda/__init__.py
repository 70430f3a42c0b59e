import os

from .. import _C
from .._log import log
from . import nvtx


def is_initialized():
    return os.environ.get("FAKE_TORCH_CUDA", "1") == "1"


def is_current_stream_capturing():
    return False


def synchronize():
    log("synchronize")


def cudart():
    return _C._cudart


def get_device_name():
    return "Fake GPU"


class Event:
    count = 0

    def __init__(self, enable_timing=False):
        self.at = 0

    def record(self):
        Event.count += 1
        self.at = Event.count

    def elapsed_time(self, other):
        return 1.5 * (other.at - self.at)
