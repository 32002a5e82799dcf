"""Simulated corpora, one per task, embedded so that everything runs without a download."""
