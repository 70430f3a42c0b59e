"""From a Nsight Systems capture to MFU, speed of light per operator, and a ledger of every lost percent."""

__version__ = "0.1.0"
