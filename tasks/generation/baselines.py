"""Baselines of response generation."""

from colloquy.metrics.generation import baselines_of


def baselines_for(dataset, pairs, config):
    """Scores of the baselines, which know the targets of train if the dataset has them."""
    train_targets = []
    if "train" in dataset.splits:
        train_targets = dataset.splits["train"].in_direction_of(config).target_texts
    return baselines_of(
        train_targets,
        pairs.source_texts,
        pairs.target_texts,
        several=pairs.has_several_references,
    )
