"""Settings of a reading comprehension training."""

from typing import Annotated, Literal

from pydantic import Field

from colloquy.base.config import Positive, with_defaults
from colloquy.engine import task

DEFAULTS = {"epochs": 12.0, "batch_size": 60, "decay": 1.0, "ema": 0.999}


class Training(with_defaults(task.DecayingTraining, **DEFAULTS)):
    """Settings of a training; the defaults are the paper's, with Adam's usual learning rate."""

    optimizer: Literal["adam", "adadelta"] = "adam"
    """`adam`, or the paper's `adadelta`, whose learning rate there is 0.5."""
    max_context: Positive = 400
    """Words of a context that are read at once. Of a longer one, training reads the window that has
    the answer, and the predictor all windows; a score and an export read it whole."""
    max_question: Positive = 30
    """Words of a question that training reads."""
    shared_norm: bool = False
    """Ask each question also of a paragraph of its article that does not answer it, and normalise
    over both and the option that there is no answer; needs a model with `no_answer`. A batch then
    has twice `batch_size` contexts. See `shared_norm.shared_norm_loss`.
    """
    added_sentences: Annotated[float, Field(ge=0, le=1)] = 0.0
    """Fraction of the questions whose context gets a sentence of another paragraph of the article,
    before it, after it or between its sentences. Only with `shared_norm`.
    """
    question_words: Annotated[float, Field(ge=0, le=1)] = 0.0
    """Fraction of these sentences that get the words of the question, see `misleading`. The others
    are those that share most words with the question.
    """
    removed_answers: Annotated[float, Field(ge=0, le=1)] = 0.0
    """Fraction of the second contexts of `shared_norm` that are the question's own context with
    a misleading sentence in place of the sentence that has the answer.
    """
