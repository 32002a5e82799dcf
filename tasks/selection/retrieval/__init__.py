"""Retrieval: an index of responses, and answers from it."""
