"""Baselines of dialog models, and upper bounds of models that only repeat what they saw."""

import itertools

import numpy as np

from colloquy.metrics.dialog import (
    dialog_metrics,
    nearest_neighbour,
    reachable_by_seen,
    reachable_by_types,
    tfidf_match,
)


def baselines_and_upper_bounds(dataset, split):
    """Scores two baselines, and upper bounds of models that repeat responses of train, or also fill
    in types.
    """
    domain = dataset.domain
    train = dataset.splits["train"]
    test = dataset.splits[split]
    candidates = domain.encoded_candidates.words.lists()
    contexts, inputs = _contexts_and_inputs(test)
    _, train_inputs = _contexts_and_inputs(train)
    train_sentences = np.unique(train.fields["sentences"].flat())
    train_texts = train.sentences.words.lists(train_sentences)

    is_seen = reachable_by_seen(train.answers, test.answers)
    is_typed = reachable_by_types(
        train.answers,
        test.answers,
        candidates,
        _type_of_ids(domain),
        [set(context) for context in contexts],
    )

    def score(predicted):
        return dialog_metrics(predicted, test.answers, test.dialog)

    return {
        "baselines": {
            "TF-IDF match": score(tfidf_match(train_texts, contexts, candidates)),
            "nearest neighbour": score(nearest_neighbour(train_inputs, train.answers, inputs)),
        },
        "upper_bounds": {
            "seen responses": score(np.where(is_seen, test.answers, -1)),
            "match types": score(np.where(is_typed, test.answers, -1)),
        },
    }


def _type_of_ids(domain):
    """`{word id: type}` of the knowledge base's values."""
    types = {
        name: value_type for name, value_type, source in domain.entities if source == "knowledge"
    }
    words = enumerate(domain.vocabulary.words, 1)
    return {word_id: types[word] for word_id, word in words if word in types}


def _contexts_and_inputs(split):
    """The word ids of the conversation up to each turn, and of its user's sentence."""
    contexts = []
    inputs = []
    for dialog in split.dialogs:
        sentences = split.sentences.words.lists(dialog["sentences"])
        for turn in dialog["turns"]:
            contexts.append(list(itertools.chain(*sentences[: turn + 1])))
            inputs.append(sentences[turn])
    return contexts, inputs
