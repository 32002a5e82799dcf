"""tasks/selection: examples, losses, scoring."""

import itertools
import types

import keras
import numpy as np
import pytest
from keras import ops

from base.files import UserError
from models.dam import DAM, DAMConfig
from tasks import TASKS
from tasks.selection import scoring as ranking
from tasks.selection import split as batches
from tasks.selection.scoring import baseline_scores, pointwise_loss, ranking_batches, score, softmax_loss
from tasks.selection.split import SelectionSplit, candidate_lists
from tasks.selection.task import Training

EOS = 1


def make_split(sizes=(2, 3, 2), positives=1, seed=0):
    """Contexts with so many lines each, the first `positives` of them right."""
    rng = np.random.default_rng(seed)
    contexts, responses, labels = [], [], []
    for i, lines in enumerate(sizes):
        context = [*rng.integers(3, 90, 3 + i % 3).tolist(), EOS, *rng.integers(3, 90, 2).tolist(), EOS]
        for j in range(lines):
            contexts.append(context)
            responses.append(rng.integers(3, 90, rng.integers(1, 6)).tolist())
            labels.append(int(j < positives))
    return SelectionSplit.of(contexts, responses, labels, EOS)


def drawn(split, training, seed):
    """All examples of each number of candidates, in order of their first line."""
    config, found = types.SimpleNamespace(max_turns=3, max_words=4), {}
    for batch in batches.training_batches(split, config, training.replace(batch_size=7), np.random.default_rng(seed)):
        found.setdefault(batch[1].shape[1], []).append(batch)
    merged = [[np.concatenate(arrays) for arrays in zip(*each, strict=True)] for each in found.values()]
    return [
        [array[np.argsort(lines[:, 0])] for array in (contexts, lines, labels)] for contexts, lines, labels in merged
    ]


@pytest.fixture(scope="module")
def model():
    built = DAM(DAMConfig(vocabulary_size=97, embedding_dim=5, max_turns=3, max_words=4, levels=1))
    rng = np.random.default_rng(5)
    for variable in built.trainable_variables:
        variable.assign(rng.normal(0.3, 0.7, variable.shape))
    return built


def test_pointwise_loss_is_the_papers():
    labels = np.array([[1.0, 0.0, 0.0]], "float32")
    logits = np.array([[0.5, -2.0, 3.0]], "float32")
    g = 1 / (1 + np.exp(-logits))
    expected = -np.log(np.where(labels == 1, g, 1 - g)).mean(axis=1)
    np.testing.assert_allclose(ops.convert_to_numpy(pointwise_loss(labels, logits)), expected, rtol=1e-5)


def test_pointwise_loss_is_cut_at_its_clip():
    loss = pointwise_loss(np.array([[0.0]], "float32"), np.array([[50.0]], "float32"), clip=10.0)
    assert float(loss[0]) == 10.0


def test_softmax_loss_compares_the_candidates_of_a_context():
    labels = np.array([[1.0, 0.0, 0.0]], "float32")
    logits = np.array([[0.5, -2.0, 3.0]], "float32")
    expected = -np.log(np.exp(0.5) / np.exp(logits).sum())
    np.testing.assert_allclose(float(softmax_loss(labels, logits)[0]), expected, rtol=1e-5)


def test_file_negatives_give_every_line_once():
    split = make_split()
    [(contexts, responses, labels)] = drawn(split, Training(), 0)
    assert responses[:, 0].tolist() == list(range(7))
    assert contexts.tolist() == [0, 0, 1, 1, 1, 2, 2]
    assert labels[:, 0].tolist() == [1, 0, 1, 0, 0, 1, 0]


def test_file_negatives_under_a_softmax_meet_their_positive():
    split = make_split(sizes=(2, 3, 2, 1))  # the last context has nothing to compare
    lists = drawn(split, Training(loss="softmax"), 0)
    found = {
        tuple(row): int(context)
        for contexts, responses, _ in lists
        for context, row in zip(contexts, responses, strict=True)
    }
    assert found == {(0, 1): 0, (2, 3, 4): 1, (5, 6): 2}
    assert all((labels == [1] + [0] * (labels.shape[1] - 1)).all() for _, _, labels in lists)


def test_fresh_negatives_are_other_lines_positives_and_differ_by_epoch():
    split = make_split(sizes=(2,) * 40)
    training = Training(negatives="fresh", negatives_per_positive=3, loss="softmax")
    [(_, responses, labels)] = drawn(split, training, 1)
    assert responses.shape == labels.shape == (40, 4)
    assert responses[:, 0].tolist() == list(range(0, 80, 2))
    assert (responses % 2 == 0).all()  # all drawn among the positive responses
    assert (responses[:, 1:] != responses[:, :1]).all()
    [(_, again, _)] = drawn(split, training, 1)
    [(_, other, _)] = drawn(split, training, 2)
    assert (responses == again).all()
    assert (responses != other).any()


def test_fresh_negatives_never_repeat_the_positives_words():
    contexts = [[3, EOS], [4, EOS], [5, EOS], [6, EOS]]
    split = SelectionSplit.of(contexts, [[7], [7], [7], [8]], [1, 1, 1, 1], EOS)
    lines = np.array([0] * 50)
    found = split.draw_negatives(lines, lines[:1], 1, np.random.default_rng(0))
    assert found.tolist() == [[0]] * 50  # only line 0 is in the pool: no other words can be had
    found = split.draw_negatives(np.arange(4), np.arange(4), 1, np.random.default_rng(0))
    assert found[:3, 0].tolist() == [3, 3, 3]
    assert found[3, 0] in (0, 1, 2)


def test_a_split_without_positives_cannot_be_drawn_from():
    split = make_split(positives=0)
    with pytest.raises(UserError, match="no line with label 1"):
        candidate_lists(split, Training(negatives="fresh"))


@pytest.mark.parametrize("loss, negatives", [("pointwise", "file"), ("softmax", "file"), ("softmax", "fresh")])
def test_an_epoch_has_every_example_once_and_any_batch_of_it_alone(monkeypatch, loss, negatives):
    monkeypatch.setattr(batches, "POOL", 3)
    split, training = make_split(sizes=(2, 3) * 19), Training(loss=loss, negatives=negatives, batch_size=7)
    config = types.SimpleNamespace(max_turns=3, max_words=4)

    def epoch(seed=5):
        return batches.training_batches(split, config, training, np.random.default_rng(seed))

    every = list(epoch())
    lines = np.concatenate([responses[:, 0] for _, responses, _ in every])
    expected = range(95) if loss == "pointwise" else np.flatnonzero(split.label == 1)
    assert sorted(lines) == list(expected) and lines.tolist() != sorted(lines)
    assert len(epoch()) == len(epoch(6)) == len(every) > 3
    for at in (len(every) - 1, 0, 4):
        for found, whole in zip(epoch()[at], every[at], strict=True):
            np.testing.assert_array_equal(found, whole)
    assert lines.tolist() != np.concatenate([responses[:, 0] for _, responses, _ in epoch(6)]).tolist()


@pytest.mark.parametrize("sizes", [(10, 10), (1, 3, 25, 2), (7,)])
def test_score_gives_every_line_what_it_gets_alone(model, sizes):
    split = make_split(sizes)
    scores = score(model, split, model.config)
    assert scores.shape == (sum(sizes),)
    assert np.ptp(scores) > 0.1  # lines differ, so a mix-up would show
    for line in range(len(scores)):
        inputs = split.collate(split.context[[line]], np.array([[line]]), 3, 4)
        alone = ops.convert_to_numpy(model(inputs))
        np.testing.assert_allclose(scores[line], alone[0, 0], rtol=1e-5)


@pytest.mark.parametrize("masking", ["exact", "release"])
@pytest.mark.parametrize("sizes", [(10, 10, 10), (1, 3, 25, 2), (7,), (1, 1), (0, 12)])
@pytest.mark.parametrize("pairs", [1, 8, 80])
def test_ranking_batches_hold_each_line_once_and_like_lengths_together(masking, sizes, pairs, monkeypatch):
    monkeypatch.setattr(ranking, "CALL", 1)  # a batch by itself costs next to nothing
    rng = np.random.default_rng(0)
    contexts = [[10 + i, EOS] * (1 + i % 3) for i, size in enumerate(sizes) for _ in range(size)]
    lengths = np.where(rng.permutation(len(contexts)) % 2, 0, 30) + rng.integers(1, 10, len(contexts))
    lengths[10:20] = np.arange(len(lengths[10:20])) * 4  # the shorter half: at most 16 words
    lengths[: sizes[0]] = 20  # nothing to gain from cutting these in two
    split = SelectionSplit.of(contexts, [[7] * n for n in lengths], [1] * len(contexts), EOS)
    config = types.SimpleNamespace(max_turns=3, max_words=30, masking=masking)
    seen, halves = [], 0
    for chosen, lines in ranking_batches(split, config, pairs):
        assert 0 < len(chosen) == len(lines) <= max(1, pairs // lines.shape[1])
        turns, _, words = split.sizes(chosen, lines, 3, 30).T
        assert masking == "release" or len({(-(-t // 3), -(-n // 6)) for t, n in zip(turns, words, strict=True)}) == 1
        for context, row in zip(chosen, lines, strict=True):
            row = row[row >= 0]
            assert (split.context[row] == context).all()
            assert (np.diff(np.minimum(lengths[row], 30)) >= 0).all()
            same = np.flatnonzero(split.context == context)
            halves += len(row) < min(len(same), 10) and len(same) <= 10
            seen += row.tolist()
    assert sorted(seen) == list(range(len(contexts)))
    first = np.flatnonzero(split.context == 0)
    whole = [row for _, lines in ranking_batches(split, config, pairs) for row in lines if row[0] in first]
    assert sizes[0] != 10 or len(whole) == 1
    if sizes == (10, 10, 10):
        assert halves >= 2 if masking == "exact" else halves == 0


def test_batches_are_those_that_cost_least():
    rng = np.random.default_rng(4)
    T, K, J = rng.integers(1, 7, 9), 6 * rng.integers(1, 5, 9), 6 * rng.integers(1, 5, 9)

    def cost(ends):
        parts = np.split(np.arange(9), ends)
        if max(map(len, parts)) > 4:
            return np.inf
        return sum(ranking.CALL + len(part) * 5 * T[part].max() * K[part].max() * J[part].max() for part in parts)

    every = [ends for n in range(9) for ends in itertools.combinations(range(1, 9), n)]
    found = ranking._cheapest_ends(T, K, J, 5, 4)
    assert cost(found) == min(map(cost, every)) and 2 < len(found) < 8


def test_a_few_small_contexts_are_one_batch():
    contexts = [[10 + i, EOS] * (1 + i) for i in range(3) for _ in range(10)]
    split = SelectionSplit.of(contexts, [[7] * (1 + i % 10) for i in range(30)], [1] * 30, EOS)
    config = types.SimpleNamespace(max_turns=3, max_words=10, masking="exact")
    [(chosen, lines)] = ranking_batches(split, config)
    assert chosen.tolist() == [0, 1, 2] and sorted(lines.ravel()) == list(range(30))


def test_baselines_know_overlap_from_chance():
    contexts = [[10 + i, 50, EOS] for i in range(30) for _ in range(2)]
    responses = [[10 + i, 60] if right else [40, 60] for i in range(30) for right in (1, 0)]
    split = SelectionSplit.of(contexts, responses, [1, 0] * 30, EOS)

    dataset = types.SimpleNamespace(splits={"train": split, "dev": split}, eos_id=EOS, unk_id=2)
    baselines = baseline_scores(dataset, "dev")
    assert set(baselines) == {"random", "constant", "TF-IDF cosine"}
    assert (baselines["TF-IDF cosine"][::2] > baselines["TF-IDF cosine"][1::2]).all()
    assert (baselines["constant"] == baselines["constant"][0]).all()
    assert len(set(baselines["random"])) == 60


@pytest.mark.parametrize("precision", ["float32", "mixed_bfloat16", "mixed_float16"])
def test_lazy_word_vectors_move_with_their_words_alone(precision):
    config = DAMConfig(vocabulary_size=97, embedding_dim=5, max_turns=3, max_words=4, levels=1, lazy_embedding=True)
    kept = keras.config.dtype_policy()
    keras.config.set_dtype_policy(precision)
    try:
        built = DAM(config)
    finally:
        keras.config.set_dtype_policy(kept)
    built.compile(TASKS["selection"].optimizer(Training()), loss=pointwise_loss, run_eagerly=True)
    embedding = built.get_layer("word_embedding")
    before = embedding.get_weights()[0]
    moved = set()
    for first in (3, 30):
        turns = np.arange(first, first + 12).reshape(1, 3, 4)
        inputs = {"turns": turns, "responses": np.array([[[first, 80, 80, 0]]])}
        built.train_on_batch(inputs, np.array([[1.0]]))
        moved |= {*turns.flat, 80}
        now = embedding.get_weights()[0]
        changed = np.flatnonzero((now != before).any(axis=1))
        assert set(changed) <= moved | {0}
        assert {first, 80} <= set(changed)
