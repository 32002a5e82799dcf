"""Scores: one task a file, each the official definition, in NumPy and SciPy alone."""
