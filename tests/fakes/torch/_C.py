from ._log import log


class _cudart:
    @staticmethod
    def cudaProfilerStart():
        log("start")
        return 0

    @staticmethod
    def cudaProfilerStop():
        log("stop")
        return 0
