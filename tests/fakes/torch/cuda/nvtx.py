from .._log import log


def range_start(text):
    log("open " + text)
    return 7


def range_end(handle):
    log("close %d" % handle)
