"""Stage 2, INGEST: a trace of any Nsight Systems from 2020 on becomes the same few Parquet tables."""

from mfupipe.ingest.model import Finding, Progress, SourceFormat, TraceInfo
from mfupipe.ingest.write import write_raw

__all__ = ["Finding", "Progress", "SourceFormat", "TraceInfo", "write_raw"]
