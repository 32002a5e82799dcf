"""Simulated corpora, one a task, embedded so that everything runs without a download."""
