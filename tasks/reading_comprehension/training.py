"""Settings of a reading comprehension training."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from colloquy.base.config import Positive, with_defaults
from colloquy.engine import training_settings

DEFAULTS = {"epochs": 12.0, "batch_size": 60, "decay": 1.0, "ema": 0.999}


class Training(with_defaults(training_settings.DecayingTraining, **DEFAULTS)):
    """Settings of a training; the defaults are the paper's, but with Adam, its usual learning rate
    and clipped gradients."""

    optimizer: Literal["adam", "adadelta"] = "adam"
    """`adam`, or the paper's `adadelta`, for which `learning_rate` is 0.5 in the paper and must be
    set."""
    max_context: Positive = 400
    """Most words of a context that are read at once. Of a longer one, training reads the first
    window that has an answer, and leaves out questions whose answers are all longer than a quarter
    of this; the predictor reads all windows; a score and an export read it whole."""
    max_question: Positive = 30
    """Most words of a question that training reads, the first ones; elsewhere it is read whole."""
    shared_norm: bool = False
    """Ask each question also of a paragraph of its article that does not answer it, and normalise
    over both and the option that there is no answer; needs a model with `no_answer`. A batch then
    has twice `batch_size` contexts. See `losses.shared_norm_loss`.
    """
    added_sentences: Annotated[float, Field(ge=0, le=1)] = 0.0
    """Fraction of the questions whose context gets a sentence of another paragraph of the article,
    before it, after it or between its sentences. It needs `shared_norm`.
    """
    question_words: Annotated[float, Field(ge=0, le=1)] = 0.0
    """Fraction of the sentences of `added_sentences` that mislead by the question's words, see
    `tasks.reading_comprehension.misleading`. Each of the others is the sentence of the paragraph
    that shares most words with the question.
    """
    removed_answers: Annotated[float, Field(ge=0, le=1)] = 0.0
    """Fraction of the second contexts that are replaced, where possible, by the question's own
    context with a misleading sentence in place of the one that has all its answers. It needs
    `shared_norm`.
    """

    @model_validator(mode="after")
    def _check_shared_norm(self):
        if not self.shared_norm and (self.added_sentences or self.removed_answers):
            raise ValueError("added_sentences and removed_answers need shared_norm=true")
        if self.question_words and not self.added_sentences:
            raise ValueError("question_words needs added_sentences above 0")
        return self
