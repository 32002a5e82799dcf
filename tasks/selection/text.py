"""How raw strings become the words of a response-selection dataset or run."""

from base.files import UserError
from data.tokenizers import TOKENIZERS, WHITESPACE

WHITESPACE_TEXT = {"tokenizer": WHITESPACE, "lower": False}
"""Of the release's files, and of what does not say."""


def text_settings(run):
    """`tokenizer` and `lower` of `data.tokenizers.words_of` for the texts of a run.

    Args:
        run: A `engine.run.Run`.

    Raises:
        UserError: where its config says something else.
    """
    return check_text(run.config["dataset"].get("text", WHITESPACE_TEXT), run.path)


def check_text(found, file):
    """Settings of `words_of` as a JSON file has them.

    Raises:
        UserError: where they are none.
    """
    match found:
        case {"tokenizer": str(name), "lower": bool(lower)} if name == WHITESPACE or name in TOKENIZERS:
            return {"tokenizer": name, "lower": lower}
    raise UserError(f"{file}: expected text with a known tokenizer and lower. Received: {found}")
