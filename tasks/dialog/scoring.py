"""Losses of dialog models, predictions over a split, baselines, and scores of groups of responses.

Letters: B dialogs   T turns   C candidates
"""

import collections
import itertools

import numpy as np
from keras import ops

from colloquy.data.batching import batches_by_size
from colloquy.engine.parallel import results_of
from colloquy.layers.dialog_state import READS
from colloquy.metrics.dialog import (
    METRICS,
    dialog_metrics,
    nearest_neighbour,
    reachable_by_seen,
    reachable_by_types,
    tfidf_match,
)
from colloquy.tasks.dialog.prepare import CALL

BREAKDOWNS = ("kind", "template", "seen", "turns")
"""Groupings of responses: by the purpose, the template and the occurrence in train of the correct
one; by the number of turns so far, this one among them."""
TEMPLATES = 12  # most frequent templates with a group of their own
TURNS = {1: "1-2", 3: "3-4", 5: "5-6", 7: "7-8", 9: "9-10", 11: "11-15", 16: "16-20", 21: "21+"}


def softmax_loss(answers, logits):
    """Cross-entropy over the candidates, float32 `(B,)`, whose mean is the mean over all real
    turns.

    Args:
        answers: Int `(B, T)`, -1 for padding.
        logits: Float `(B, T, C)`.

    >>> loss = softmax_loss(np.array([[1, -1]]), np.log([[[1.0, 3.0], [9.0, 9.0]]]))
    >>> round(float(ops.exp(-loss[0])), 3)
    0.75
    """
    logits = ops.cast(_of_candidates(logits, answers), "float32")
    losses = ops.sparse_categorical_crossentropy(_labels(answers), logits, from_logits=True)
    return _mean_over_turns(losses, answers)


def margin_loss(answers, logits, margin):
    """`sum_y max(0, margin - f(x, correct) + f(x, y))` over all negative `y`, averaged over the
    real turns.
    """
    logits = _of_candidates(logits, answers)
    correct = ops.take_along_axis(logits, _labels(answers)[:, :, None], axis=2)
    # the correct one gives the margin
    losses = ops.sum(ops.relu(margin - correct + logits), axis=2) - margin
    return _mean_over_turns(losses, answers)


def _of_candidates(logits, answers):
    """Logits with their axis of candidates, which Keras takes from those of a single one."""
    return ops.reshape(logits, (*ops.shape(answers), -1))


def _labels(answers):
    return ops.maximum(ops.cast(answers, "int32"), 0)


def _mean_over_turns(losses, answers):
    real = ops.cast(answers >= 0, "float32")
    dialogs = ops.cast(ops.shape(real)[0], "float32")
    return ops.sum(losses * real, axis=1) * dialogs / ops.maximum(ops.sum(real), 1.0)


def predict(model, split, batch_size=32, progress=iter, length_multiple=4, mask=None):
    """The candidate with the largest logit at each turn of a `DialogSplit`, int `(responses,)` as
    `split.answers`.

    `progress` wraps the list of batches of `batch_size` dialogs, whose lengths are rounded up to
    `length_multiple`. Where `mask`, an `ActionMask`, allows no candidate, the prediction is -1.
    """
    reads = model.config.reads

    def arrays_of(rows):
        return split.collate(rows, {*reads, *READS}, model.config.entities, length_multiple)

    def best_of(arrays):
        inputs, answers = arrays
        logits = np.asarray(model.predict_on_batch({name: inputs[name] for name in reads}))
        if mask is None:
            return answers >= 0, np.argmax(logits, axis=2)
        allowed = mask.predict_on_batch({name: inputs[name] for name in READS})
        best = np.argmax(np.where(allowed, logits, -np.inf), axis=2)
        return answers >= 0, np.where(allowed.any(axis=2), best, -1)

    chosen = np.zeros_like(split.answers)
    batches = batches_by_size(split.sizes, batch_size)
    for rows, (real, best) in results_of(best_of, arrays_of, batches, model, progress):
        for row, real_T, best_T in zip(rows, real, best, strict=True):
            chosen[split.dialog == row] = best_T[real_T]
    return chosen


def metrics_of(split, predicted):
    """The metrics of predictions, means over the split's dialog managers; and if there are several,
    those of each.
    """
    of_manager = {f"manager: {name}": split.manager == name for name in np.unique(split.manager)}
    parts = {
        n: dialog_metrics(predicted[of], split.answers[of], split.dialog[of])
        for n, of in of_manager.items()
    }
    metrics = {name: float(np.mean([part[name] for part in parts.values()])) for name in METRICS}
    return {"metrics": metrics, **({"parts": parts} if len(parts) > 1 else {})}


def baselines_and_upper_bounds(dataset, split):
    """Scores of two baselines, and upper bounds of models that repeat responses of train, or also
    fill in types.
    """
    domain, train, test = dataset.domain, dataset.splits["train"], dataset.splits[split]
    candidates = domain.encoded_candidates.words.lists()
    contexts, inputs = _contexts_and_inputs(test)
    _, train_inputs = _contexts_and_inputs(train)
    train_texts = train.sentences.words.lists(np.unique(train.fields["sentences"].flat()))
    types = {name: type for name, type, source in domain.entities if source == "knowledge"}
    type_of = {
        id: types[word] for id, word in enumerate(domain.vocabulary.words, 1) if word in types
    }
    seen = reachable_by_seen(train.answers, test.answers)
    typed = reachable_by_types(
        train.answers, test.answers, candidates, type_of, [*map(set, contexts)]
    )

    def score(predicted):
        return dialog_metrics(predicted, test.answers, test.dialog)

    return {
        "baselines": {
            "TF-IDF match": score(tfidf_match(train_texts, contexts, candidates)),
            "nearest neighbour": score(nearest_neighbour(train_inputs, train.answers, inputs)),
        },
        "upper_bounds": {
            "seen responses": score(np.where(seen, test.answers, -1)),
            "match types": score(np.where(typed, test.answers, -1)),
        },
    }


def _contexts_and_inputs(split):
    """The word ids of the conversation up to each turn, and of its user's sentence."""
    dialogs = (
        (split.sentences.words.lists(dialog["sentences"]), dialog["turns"])
        for dialog in split.dialogs
    )
    heard = [said[: turn + 1] for said, turns in dialogs for turn in turns]
    return [[*itertools.chain.from_iterable(said)] for said in heard], [said[-1] for said in heard]


def metrics_by_group(dataset, split, predicted, breakdowns):
    """Scores groups of responses by some of `BREAKDOWNS`, see `engine.task.Task.metrics_by_group`.

    `per_response` is the fraction of correct responses; `template` and `entities` are the fractions
    with the correct template, or the correct entities. `predicted` are the chosen candidates of a
    `DialogSplit`, int `(responses,)`.
    """
    domain, answers = dataset.domain, split.answers
    texts, templates = (
        np.array(domain.candidates),
        np.array([domain.template(text) for text in domain.candidates]),
    )
    entities = np.array(
        [str(sorted(numbers)) for numbers in domain.encoded_candidates.entities.lists()]
    )
    parts = {"per_response": np.arange(len(texts)), "template": templates, "entities": entities}
    correct = {name: part[predicted] == part[answers] for name, part in parts.items()}
    template, seen = templates[answers], reachable_by_seen(dataset.splits["train"].answers, answers)
    common = [each for each, _ in collections.Counter(template.tolist()).most_common(TEMPLATES)]
    calls, names = np.char.startswith(template, CALL), template != texts[answers]
    turn = np.arange(len(answers)) - np.searchsorted(split.dialog, split.dialog) + 1
    length = np.digitize(turn, [*TURNS])
    groups = {
        "kind": {
            "asks the knowledge base": calls,
            "names an entity": names & ~calls,
            "other": ~(names | calls),
        },
        "template": {each: template == each for each in common}
        | {"the rest": ~np.isin(template, common)},
        "seen": {"not in train": ~seen, "in train": seen},
        "turns": {label: length == number for number, label in enumerate(TURNS.values(), 1)},
    }

    def scores_of(of):
        metrics = {name: float(right[of].mean()) for name, right in correct.items()}
        return {"examples": int(of.sum()), "metrics": metrics}

    return {
        name: [{"group": label, **scores_of(of)} for label, of in groups[name].items() if of.any()]
        for name in breakdowns
    }
