"""Excerpts of real corpora with their licences, so that every task runs without a download."""

import pathlib

SAMPLES = pathlib.Path(__file__).parent
DIALOG_BABI = SAMPLES / "dialog_babi"
"""Sixty dialogs of dialog bAbI, with the knowledge base and the candidates that they need."""
SQUAD = SAMPLES / "squad"
"""An excerpt of SQuAD 1.1 with word vectors, as the raw files that prepare.py reads."""
