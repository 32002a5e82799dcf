"""Pickles of plain values, read without Python's own unpickler. See `machine`."""
