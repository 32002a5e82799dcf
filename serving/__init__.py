"""Loaded models behind one interface: REST, pages, batching. Knows nothing of training."""
