"""What dialog needs no model for: baselines and oracle upper bounds of a split."""

import numpy as np

from metrics.dialog import dialog_metrics, nearest_neighbour, reachable_by_seen, reachable_by_types, tfidf_match


def baselines_and_upper_bounds(dataset, split):
    """Baselines, and what a model could reach at most by the responses of train, and by these and match types.

    Returns:
        `{"baselines": {name: metrics}, "upper_bounds": {name: metrics}}`; see `metrics.dialog`.
    """
    world = dataset.world
    candidates = [row[row > 0].tolist() for row in world.encoded_candidates.words]
    train, test = dataset.splits["train"], dataset.splits[split]
    contexts, inputs = _texts_of(test)
    _, train_inputs = _texts_of(train)
    train_texts = [row[row > 0].tolist() for row in train.sentences.words[_used(train)]]
    ids = {word: id for id, word in enumerate(world.vocabulary.words, 1)}
    type_of = {
        ids[name]: world.types.index(type)
        for name, type, source in world.entities
        if source == "knowledge" and name in ids
    }
    gold = test.answers
    seen = reachable_by_seen(train.answers, gold)
    typed = reachable_by_types(train.answers, gold, candidates, type_of, [set(words) for words in contexts])

    def metrics_of(predicted):
        return dialog_metrics(predicted, gold, test.dialog)

    return {
        "baselines": {
            "TF-IDF match": metrics_of(tfidf_match(train_texts, contexts, candidates)),
            "nearest neighbour": metrics_of(nearest_neighbour(train_inputs, train.answers, inputs)),
        },
        "upper_bounds": {
            "seen responses": metrics_of(np.where(seen, gold, -1)),
            "match types": metrics_of(np.where(typed, gold, -1)),
        },
    }


def _used(split):
    return np.unique(np.concatenate([dialog["sentences"] for dialog in split.dialogs]))


def _texts_of(split):
    """The words of each turn's whole conversation so far, and of its user's sentence."""
    words = [row[row > 0].tolist() for row in split.sentences.words]
    contexts, inputs = [], []
    for dialog in split.dialogs:
        for turn in dialog["turns"]:
            contexts.append([id for sentence in dialog["sentences"][: turn + 1] for id in words[sentence]])
            inputs.append(words[dialog["sentences"][turn]])
    return contexts, inputs
