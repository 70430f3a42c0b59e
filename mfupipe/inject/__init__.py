"""The directory that `mfupipe profile --capture auto` puts on the target's PYTHONPATH; nothing here is
imported by mfupipe."""
