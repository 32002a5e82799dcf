"""The contexts, turns and responses that a training cuts or leaves out."""

from colloquy.engine.limits import Limit


def limits_of(split, config, training):
    """Lists each `Limit`.

    Args:
        split: `SelectionSplit`.
        config: Config of the model.
        training: `tasks.selection.training.Training`.
    """
    limits = [
        Limit(
            unit="contexts",
            is_exceeded=split.num_turns_of_context > config.max_turns,
            effect=f"have over {config.max_turns} turns, of which the last are read",
            remedy="--set max_turns=N reads more",
        )
    ]
    for unit, texts in (("turns", split.turns), ("responses", split.responses)):
        limits.append(
            Limit(
                unit=unit,
                is_exceeded=texts.lengths > config.max_words,
                effect=f"have over {config.max_words} words, of which the last are read",
                remedy="--set max_words=N reads more",
            )
        )
    if training.negatives == "file" and training.loss == "softmax":
        lacks_label = (split.count_lines(1) == 0) | (split.count_lines(0) == 0)
        limits.append(
            Limit(
                unit="contexts",
                is_exceeded=lacks_label,
                effect="lack a correct or a wrong response and are left out",
                remedy="--set loss=pointwise reads them",
            )
        )
    return limits
