"""Scores: one task per file, each the official definition, in NumPy and SciPy alone."""
