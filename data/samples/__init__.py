"""Excerpts of real corpora with their licences, so that every task runs without a download."""

import pathlib

SQUAD = pathlib.Path(__file__).parent / "squad"
"""An excerpt of SQuAD 1.1 with word vectors, as the raw files that prepare.py reads."""
