"""The questions that a training cuts or leaves out."""

from colloquy.engine.limits import Limit
from colloquy.tasks.reading_comprehension.second_contexts import NONE
from colloquy.tasks.reading_comprehension.windows import overlap_of


def limits_of(split, config, training):
    """Lists each `Limit`: cut contexts and questions, left out questions, and long answers.

    Args:
        split: A `ReadingSplit`.
        config: A `BiDAFConfig`.
        training: The task's `Training`.
    """
    context_words, question_words = split.sizes.T
    limits = [
        Limit(
            unit="questions",
            is_exceeded=context_words > training.max_context,
            effect=f"have a context of over {training.max_context} words, of which a window is "
            "read",
            remedy="--set max_context=N reads more",
        ),
        Limit(
            unit="questions",
            is_exceeded=question_words > training.max_question,
            effect=f"have over {training.max_question} words, of which the first are read",
            remedy="--set max_question=N reads more",
        ),
        Limit(
            unit="questions",
            is_exceeded=split.answers_longer_than(overlap_of(training.max_context)),
            effect=f"are left out: their answers have over {overlap_of(training.max_context)} "
            f"words, which a window of {training.max_context} words may cut",
            remedy="--set max_context=N reads more",
        ),
        Limit(
            unit="questions",
            is_exceeded=split.answers_longer_than(config.max_answer_words),
            effect=f"have an answer of over {config.max_answer_words} words, which the model does "
            "not give",
            remedy="--set max_answer_words=N gives longer ones",
        ),
    ]
    if training.shared_norm:
        without_second_context = Limit(
            unit="questions",
            is_exceeded=split.second_contexts[:, 0] == NONE,
            effect="are left out, since no other context of their article lacks their answers",
            remedy="--set shared_norm=false keeps them",
        )
        limits.append(without_second_context)
    return limits
