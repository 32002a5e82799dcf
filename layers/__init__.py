"""One mechanism per file. Layers know nothing of data, files or training, and import `keras` only."""
