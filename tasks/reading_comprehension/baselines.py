"""The baseline of reading comprehension."""

import numpy as np


def spans_of_first_words(questions):
    """The first words of each context, as many as the median answer has, int `(questions, 2)`."""
    lengths = []
    for spans in questions.spans:
        for first, last in spans:
            lengths.append(last - first)
    median = int(np.median(lengths))
    ends = np.minimum(median, questions.sizes[:, 0] - 1)
    return np.stack([np.zeros_like(ends), ends], axis=1)
