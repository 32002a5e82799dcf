"""Baselines and upper bounds of dialog models."""

import itertools

import numpy as np

from colloquy.metrics.dialog import (
    dialog_metrics,
    nearest_neighbour,
    reachable_by_seen,
    reachable_by_types,
    tfidf_match,
)


def baselines_and_upper_bounds(dataset, split_name):
    """Scores two baselines and two upper bounds on a split.

    The upper bounds are the best scores of a model that only repeats responses of train, and of one
    that also replaces the typed words of these responses by words of the context.

    Returns:
        `{"baselines": {name: metrics}, "upper_bounds": {name: metrics}}`; the metrics are those of
        `dialog_metrics`.
    """
    domain = dataset.domain
    train = dataset.splits["train"]
    scored = dataset.splits[split_name]
    candidates = domain.encoded_candidates.words.lists()
    contexts = [list(itertools.chain(*sentences)) for sentences in _conversations(scored)]
    # A sentence that occurs in several dialogs is one document.
    distinct_sentences = np.unique(train.fields["sentences"].flat())
    train_documents = train.sentences.words.lists(distinct_sentences)
    nearest = nearest_neighbour(_user_sentences(train), train.answers, _user_sentences(scored))

    by_seen = reachable_by_seen(train.answers, scored.answers)
    by_types = reachable_by_types(
        train.answers, scored.answers, candidates, _type_of_ids(domain), contexts
    )

    def score(predicted):
        return dialog_metrics(predicted, scored.answers, scored.dialog)

    # A prediction of -1 is no candidate, so that a response out of reach counts as wrong.
    return {
        "baselines": {
            "TF-IDF match": score(tfidf_match(train_documents, contexts, candidates)),
            "nearest neighbour": score(nearest),
        },
        "upper_bounds": {
            "seen responses": score(np.where(by_seen, scored.answers, -1)),
            "match types": score(np.where(by_types, scored.answers, -1)),
        },
    }


def _type_of_ids(domain):
    """Returns `{word id: type}`; in the paper, only values of the knowledge base have types."""
    types = {
        name: value_type for name, value_type, source in domain.entities if source == "knowledge"
    }
    words = enumerate(domain.vocabulary.words, 1)
    return {word_id: types[word] for word_id, word in words if word in types}


def _conversations(split):
    """Yields for each turn the word ids of each sentence up to the user's, which is the last."""
    for dialog in split.dialogs:
        sentences = split.sentences.words.lists(dialog["sentences"])
        for turn in dialog["turns"]:
            yield sentences[: turn + 1]


def _user_sentences(split):
    return [sentences[-1] for sentences in _conversations(split)]
