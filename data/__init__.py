"""What turns corpora into batches: readers, tokenizers, vocabulary, word vectors, pickles, sequences."""
