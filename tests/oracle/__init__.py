"""What is true of an Nsight Systems export, found the slow and simple way: plain Python over its rows.

Nothing here imports mfupipe or joins in SQL, so that a fault of the warehouse cannot hide in its own test.
"""
