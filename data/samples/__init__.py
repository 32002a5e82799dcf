"""Simulated corpora of dialogs and of reading comprehension, so that they run without a download.

Each `write_*(directory, count, seed, held_out)` writes the raw files of a corpus, all or none, and
returns the entries in each, `{"train.txt": 2250, ...}`. `count` is the number of dialogs
or passages in all splits, `held_out` that in each of dev and test. The same seed writes the
same bytes. It raises a `ValueError` if there is too little to divide, an `OSError` if the files
cannot be written.
"""
