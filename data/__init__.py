"""From corpora to batches: readers, tokenizers, vocabulary, word vectors, pickles, sequences."""
