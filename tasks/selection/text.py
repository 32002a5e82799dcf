"""How raw strings become the words of a response-selection run."""

from data.tokenizers import WHITESPACE


def text_settings(run):
    """`tokenizer` and `lower` of `data.tokenizers.words_of` for a run's texts; older runs split at white space.

    Args:
        run: A `engine.runs.Run`.
    """
    return run.config["dataset"].get("text", {"tokenizer": WHITESPACE, "lower": False})
