"""What a dialog model holds of its world as constants: the candidates, and the entities in them."""

import numpy as np


def sizes_of(world):
    """The fields of a model's config that a world decides: `{field: value}`."""
    members, _, groups = world.match_groups
    words = world.encoded_candidates.words
    return {
        "vocabulary_size": len(world.vocabulary),
        "candidates": (len(words), int((words != 0).sum())),
        "entities": len(world.entities),
        "types": len(world.types),
        "candidate_entities": world.encoded_candidates.entities.shape,
        "match_groups": members.shape,
        "match_candidates": groups.shape,
    }


def set_world(model, world):
    """Gives a model the candidates of a world, and the entities in them."""
    candidates = world.encoded_candidates
    words = candidates.typed_words if "typed_words" in model.config.reads else candidates.words
    rows, columns = np.nonzero(candidates.words)
    tables = {
        "candidate_words": lambda: [words[rows, columns]],
        "candidate_rows": lambda: [rows],
        "match_types": lambda: world.match_groups,
        "entity_pointer": lambda: [candidates.entities],
    }
    for layer in model.layers:
        if layer.name in tables:
            trained = layer.trainable_variables
            layer.set_weights([*(np.asarray(v) for v in trained), *tables[layer.name]()])
