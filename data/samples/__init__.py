"""Simulated corpora, one per task, embedded so that everything runs without a download.

Each task has a function `write_*(directory, count, seed, held_out)`, which writes the raw files of a corpus, or nothing
at all if it fails. `count` is the number of conversations, dialogs or passages in all splits together, `held_out` that
in each of dev and test; the same seed writes the same bytes. It returns the number of entries in each file,
`{"train.txt": 2250, ...}`, and raises a `ValueError` if there is too little to divide, an `OSError` if the files cannot
be written.
"""
