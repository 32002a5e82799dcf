"""`tasks.selection.split`, `batches`, `scoring` and `task`: batches, losses, baselines, groups."""

import re
import shutil
import types

import numpy as np
import pytest
from dam_models import batch_of
from helpers import randomised, refusal, scoring_of, to_numpy, train_small

from colloquy.data.vocabulary import Vocabulary
from colloquy.engine.examples import take_examples
from colloquy.engine.limits import describe_exceeded
from colloquy.models.dam import DAM, DAMConfig
from colloquy.tasks import TASKS
from colloquy.tasks.selection import measuring
from colloquy.tasks.selection.baselines import baseline_scores
from colloquy.tasks.selection.batches import draw_negatives, training_batches
from colloquy.tasks.selection.data import load_dataset
from colloquy.tasks.selection.echoes import echo_rows
from colloquy.tasks.selection.groups import groups_of_contexts
from colloquy.tasks.selection.lexical import document_weights, equal_stems
from colloquy.tasks.selection.ranking_batches import ranking_batches
from colloquy.tasks.selection.scoring import (
    pointwise_loss,
    score,
    softmax_loss,
)
from colloquy.tasks.selection.split import SelectionSplit
from colloquy.tasks.selection.training import Training

EOS = 1
SIZES = types.SimpleNamespace(max_turns=3, max_words=4)


def split_in_loops(context):
    """DAM's release: one turn per `_EOS_`; what follows the last is a turn if it has a word."""
    turns, turn = [], []
    for word in context:
        if word == EOS:
            turns.append(turn)
            turn = []
        else:
            turn.append(word)
    return [*turns, turn] if turn else turns


def collate_in_loops(contexts, candidates, max_turns, max_words, multiple):
    """Batch of contexts (lists of turns) and candidates (lists of responses)."""

    def cut(lists):
        return [ids[-max_words:] for ids in lists]

    def width(side):
        longest = max([1, *(len(ids) for each in some for ids in each[side])])
        return min(-(-longest // multiple) * multiple, max_words)

    pairs = zip(contexts, candidates, strict=True)
    some = [(cut(turns[-max_turns:]), cut(responses)) for turns, responses in pairs]
    return batch_of(some, k=width(0), j=width(1))


def corpus(seed, contexts=13, longest=29, share_of_eos=0.3):
    """`c, r, y` of a `data.pkl`: consecutive lines share a context, some texts are empty."""
    rng = np.random.default_rng(seed)
    c, r, y = [], [], []
    for _ in range(contexts):
        words = rng.integers(2, 97, rng.integers(0, longest))
        context = np.where(rng.random(len(words)) < share_of_eos, EOS, words).tolist()
        for _ in range(rng.integers(1, 4)):
            c.append(list(context))
            r.append(rng.integers(2, 97, rng.integers(0, 11)).tolist())
            y.append(int(rng.integers(2)))
    return c, r, y


# === SelectionSplit ===


def test_split_of_matches_loops_and_equal_contexts_of_consecutive_lines_are_one():
    c, r, y = corpus(2)
    split = SelectionSplit.of(c, r, y, EOS)
    turns = split.turns.lists()
    assert [turns[split.turns_of(number)] for number in split.context_of_line] == [
        split_in_loops(context) for context in c
    ]
    assert split.responses.lists() == r
    assert split.label.tolist() == y and split.label.dtype == np.int32
    split = SelectionSplit.of([[5, 1], [5, 1], [6, 1], [5, 1], [], []], [[7]] * 6, [1] * 6, EOS)
    assert split.context_of_line.tolist() == [0, 0, 1, 2, 3, 3]
    assert split.num_turns_of_context.tolist() == [1, 1, 1, 0]
    assert split.first_turn_of_context.tolist() == [0, 1, 2, 3]
    assert split.turns.lists() == [[5], [6], [5]]


@pytest.mark.parametrize(("max_turns", "max_words", "multiple"), [(2, 3, 1), (9, 50, 4)])
def test_collate_matches_loops(max_turns, max_words, multiple):
    for seed in range(7):
        c, r, y = corpus(seed)
        split = SelectionSplit.of(c, r, y, EOS)
        rng = np.random.default_rng(seed)
        lines = rng.integers(0, len(c), 5)
        responses = rng.integers(-1, len(r), (5, 3))
        found = split.collate(
            split.context_of_line[lines], responses, max_turns, max_words, multiple
        )
        expected = collate_in_loops(
            [split_in_loops(c[line]) for line in lines],
            [[r[i] if i >= 0 else [] for i in row] for row in responses],
            *(max_turns, max_words, multiple),
        )
        assert found.keys() == expected.keys()
        for name, ids in found.items():
            np.testing.assert_array_equal(ids, expected[name], strict=True)


# === Training ===


def make_split(sizes=(2, 3, 2), positives=1):
    """A context for each of `sizes`, its number of lines, of which the first `positives` are
    positive.
    """
    rng = np.random.default_rng(0)
    texts = [
        [*rng.integers(3, 90, 3 + i % 3), EOS, *rng.integers(3, 90, 2), EOS]
        for i in range(len(sizes))
    ]
    contexts = [texts[i] for i, size in enumerate(sizes) for _ in range(size)]
    responses = [rng.integers(3, 90, rng.integers(1, 6)).tolist() for _ in contexts]
    return SelectionSplit.of(
        contexts, responses, [int(j < positives) for size in sizes for j in range(size)], EOS
    )


def batches_of(split, seed=1, **training):
    return training_batches(
        split, SIZES, Training(batch_size=7, **training), np.random.default_rng(seed)
    )


def drawn(split, **options):
    """`{(lines of the candidates): (context, labels)}` of all examples of an epoch."""
    return {
        tuple(lines): (int(context), labels.tolist())
        for batch in batches_of(split, **options)
        for context, lines, labels in zip(*batch, strict=True)
    }


def test_negatives_of_the_file():
    every_line = {
        (0,): (0, [1]),
        (1,): (0, [0]),
        (2,): (1, [1]),
        (3,): (1, [0]),
        (4,): (1, [0]),
        (5,): (2, [1]),
    }
    assert drawn(make_split()) == {**every_line, (6,): (2, [0])}
    split = make_split(sizes=(2, 3, 2, 1))  # the last context has nothing to compare
    with_positive = {(0, 1): (0, [1, 0]), (2, 3, 4): (1, [1, 0, 0]), (5, 6): (2, [1, 0])}
    assert drawn(split, loss="softmax") == with_positive
    for training, lacking in [
        (Training(loss="softmax"), "a correct or a wrong response"),
        (Training(negatives="fresh"), "a correct response"),
    ]:
        split.label[0] = int(training.negatives == "file")
        *_, left_out = describe_exceeded(TASKS["selection"].limits(split, SIZES, training))
        assert left_out.startswith(f"1 of 4 contexts lack {lacking} and are left out")


def test_fresh_negatives_are_other_lines_positives_of_other_words_and_differ_by_epoch():
    split = make_split(sizes=(2,) * 40)
    options = {"negatives": "fresh", "negatives_per_positive": 3, "loss": "softmax"}
    found = drawn(split, **options)
    assert sorted(lines[0] for lines in found) == list(range(0, 80, 2))
    assert all(line % 2 == 0 and line != lines[0] for lines in found for line in lines[1:])
    assert all(found[lines] == (lines[0] // 2, [1, 0, 0, 0]) for lines in found)
    assert drawn(split, **options) == found != drawn(split, seed=2, **options)
    split = SelectionSplit.of(
        [[3, EOS], [4, EOS], [5, EOS], [6, EOS]], [[7], [7], [7], [8]], [1] * 4, EOS
    )
    lines = np.array([0] * 50)
    found = draw_negatives(split, lines, lines[:1], 1, np.random.default_rng(0))
    assert found.tolist() == [[0]] * 50  # only line 0 is in the pool: there are no other words
    found = draw_negatives(split, np.arange(4), np.arange(4), 1, np.random.default_rng(0))
    assert found[:3, 0].tolist() == [3, 3, 3] and found[3, 0] in (0, 1, 2)
    # Another correct response of the same context is no negative.
    split = SelectionSplit.of([[3, EOS], [3, EOS], [4, EOS]], [[7], [8], [9]], [1] * 3, EOS)
    found = draw_negatives(split, np.array([0] * 50), np.arange(3), 1, np.random.default_rng(0))
    assert found.tolist() == [[2]] * 50


def test_a_split_without_something_to_compare_is_refused():
    assert "no line with label 1" in refusal(batches_of, make_split(positives=0), negatives="fresh")
    assert "contexts with both labels" in refusal(
        batches_of, make_split(sizes=(1, 1)), loss="softmax"
    )


def test_an_epoch_has_every_example_once_and_any_batch_of_it_alone(monkeypatch):
    monkeypatch.setattr("colloquy.tasks.selection.batches.POOL", 3)
    split = make_split(sizes=(2, 3) * 19)

    def epoch(seed=5):
        return batches_of(split, seed, loss="softmax", negatives="fresh")

    every = list(epoch())
    lines = np.concatenate([responses[:, 0] for _, responses, _ in every]).tolist()
    assert sorted(lines) == np.flatnonzero(split.label == 1).tolist() != lines
    assert len(epoch()) == len(every) > 3
    for place in (len(every) - 1, 0, 4):
        np.testing.assert_equal(epoch()[place], every[place])
    assert lines != np.concatenate([responses[:, 0] for _, responses, _ in epoch(6)]).tolist()


# === Losses and scores ===


def test_losses_are_those_of_the_definitions():
    labels = np.array([[1.0, 0.0, 0.0]], "float32")
    logits = np.array([[0.5, -2.0, 3.0]], "float32")
    g = 1 / (1 + np.exp(-logits))
    pointwise = -np.log(np.where(labels == 1, g, 1 - g)).mean(axis=1)
    np.testing.assert_allclose(to_numpy(pointwise_loss(labels, logits)), pointwise, rtol=1e-5)
    softmax = -np.log(np.exp(0.5) / np.exp(logits).sum())
    np.testing.assert_allclose(to_numpy(softmax_loss(labels, logits)), [softmax], rtol=1e-5)
    assert float(pointwise_loss(labels * 0, logits * 0 + 50, clip=10.0)[0]) == 10.0


def test_score_gives_every_line_what_it_gets_alone(sizes=(1, 3, 25, 2)):
    config = DAMConfig(vocabulary_size=97, embedding_dim=5, max_turns=3, max_words=4, levels=1)
    model = randomised(DAM(config), seed=5)
    split = make_split(sizes)
    scores = score(model, split, config)
    # lines differ, so a mix-up would show
    assert scores.shape == (sum(sizes),) and np.ptp(scores) > 0.1
    # The first and the last line of each context, and one between; more would each be traced.
    for line in (0, 1, 3, 4, 15, 28, 29, 30):
        alone = model(split.collate(split.context_of_line[[line]], np.array([[line]]), 3, 4))
        np.testing.assert_allclose(scores[line], to_numpy(alone)[0, 0], rtol=1e-5)


@pytest.mark.parametrize("masking, rows, candidates", [("exact", 12, 5), ("release", 8, 10)])
@pytest.mark.parametrize("pairs", [1, 80])
def test_ranking_batches_hold_each_line_once_and_like_lengths_together(
    masking, rows, candidates, pairs
):
    contexts = []
    for turns, lines in enumerate((10, 1, 3, 25, 2, 10), 1):
        contexts += [[10 + turns, EOS] * turns] * lines
    lengths = np.random.default_rng(0).integers(1, 40, len(contexts))
    responses = [[7] * length for length in lengths]
    split = SelectionSplit.of(contexts, responses, [1] * len(contexts), EOS)
    config = types.SimpleNamespace(max_turns=6, max_words=30, masking=masking)

    scored = []
    padded_sizes = []
    for numbers, lines in ranking_batches(split, config, pairs):
        assert 0 < len(numbers) == len(lines) <= max(1, pairs // candidates)
        assert lines.shape[1] == candidates
        for context, row in zip(numbers, lines, strict=True):
            row = row[row >= 0]
            assert (split.context_of_line[row] == context).all()
            assert (np.diff(lengths[row]) >= 0).all()
            scored.append(row.tolist())
            longest = min(lengths[row[-1]], 30)
            padded_sizes.append((-(-split.num_turns_of_context[context] // 3), -(-longest // 6)))
    assert sorted(line for row in scored for line in row) == list(range(len(contexts)))
    assert len(scored) == rows
    assert padded_sizes == sorted(padded_sizes)  # few turns first, then short responses
    assert ranking_batches(SelectionSplit.of([], [], [], EOS), config, pairs) == []


def test_baselines_know_overlap_from_chance():
    contexts = []
    responses = []
    for i in range(30):
        contexts += [[10 + i, 50, EOS]] * 2
        responses += [[10 + i, 60], [40, 60]]
    split = SelectionSplit.of(contexts, responses, [1, 0] * 30, EOS)
    dataset = types.SimpleNamespace(splits={"train": split, "dev": split}, eos_id=EOS, unk_id=2)
    baselines = baseline_scores(dataset, "dev")
    assert set(baselines) == {"random", "constant", "TF-IDF cosine"}
    assert (baselines["TF-IDF cosine"][::2] > baselines["TF-IDF cosine"][1::2]).all()
    assert (baselines["constant"] == baselines["constant"][0]).all()
    assert len(set(baselines["random"])) == 60


@pytest.fixture
def grouped():
    """Contexts with these numbers of words, three lines each; the second has no positive."""
    contexts = []
    for lengths in [[3], [2, 7], [1, 6], [4] * 12, [60, 5, 51]]:
        context = []
        for length in lengths:
            context += [*[5] * length, EOS]
        contexts += [context] * 3
    labels = [1, 0, 0, 0, 0, 0, *[1, 0, 0] * 3]
    return SelectionSplit.of(contexts, [[5, 6]] * 15, labels, EOS)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("turns", [("1", 1, 1.0), ("2", 1, 0.0), ("3", 1, 1.0), ("10+", 1, 1.0)]),
        ("last_turn", [("0-5", 2, 1.0), ("6-10", 1, 0.0), ("51+", 1, 1.0)]),
        ("words", [("0-5", 3, 2 / 3), ("31-50", 1, 1.0)]),
    ],
)
def test_groups_of_contexts_are_scored_by_themselves(grouped, name, expected):
    scores = np.zeros(15, "float32")
    scores[[0, 7, 9, 12]] = 1.0  # contexts 1, 4 and 5 are ranked right, 3 is not
    rows = []
    for row in groups_of_contexts(grouped, scores, name):
        rows.append((row.name, row.examples, row.metrics["R10@1"]))
    assert rows == expected
    equal = groups_of_contexts(grouped, np.zeros(15, "float32"), name, ties="release")
    assert any(row.metrics["R10@1"] > 0 for row in equal)  # of equal scores the first counts
    grouped.label[:] = 0  # no group has both labels
    assert groups_of_contexts(grouped, scores, name) == []


def test_scores_that_are_no_numbers_are_refused(grouped, monkeypatch):
    monkeypatch.setattr(measuring, "score", lambda *_: np.full(15, np.nan, "float32"))
    dataset = types.SimpleNamespace(path="data", splits={"dev": grouped})
    model = types.SimpleNamespace(config=None)
    given = scoring_of(TASKS["selection"], model, dataset, "dev")
    dropped = types.SimpleNamespace(options=types.SimpleNamespace(partial_batches="drop"))
    message = refusal(TASKS["selection"].metrics_by_group, dropped, ["turns"])
    assert "partial_batches=drop is for the scores of whole splits" in message
    message = refusal(TASKS["selection"].metrics_by_group, given, ["turns"])
    assert re.search("data, dev: scores: .* Received: nan", message)


def test_examples_are_evenly_spaced_and_name_the_correct_candidates():
    """Five contexts with two candidates each: `a b` and the context's number in words."""
    contexts = []
    responses = []
    for number, context in enumerate([[3, 1], [4, 2, 1, 5, 1], [6, 1], [7, 1, 7, 1], [3, 4, 1]]):
        contexts += [context] * 2
        responses += [[3, 4], [3 + number]]
    labels = [1, 0, 1, 1, 0, 0, 1, 0, 1, 0]
    dataset = types.SimpleNamespace(
        vocabulary=Vocabulary(("_EOS_", "_UNK_", *"abcde")),
        splits={"dev": SelectionSplit.of(contexts, responses, labels, EOS)},
    )
    examples = take_examples(TASKS["selection"], dataset, 4)
    titles = [f"dev, context {number}" for number in (1, 2, 3, 5)]
    assert [example["title"] for example in examples] == titles
    assert examples[1]["instance"] == {"turns": ["b _UNK_", "c"], "candidates": ["a b", "b"]}
    expected = [["a b"], ["a b", "b"], [], ["a b"]]
    assert [example["expected"] for example in examples] == expected
    assert len(take_examples(TASKS["selection"], dataset, 7)) == 5
    dataset.vocabulary = None
    assert take_examples(TASKS["selection"], dataset, 3) == []


@pytest.mark.slow
def test_a_lexical_match_gets_document_weights_and_stems(prepared, tmp_path, capsys):
    """A model with stems starts from one without: it takes over what that has learned, but for the
    lexical match.
    """
    first = train_small(
        "selection", prepared, tmp_path / "first", {"levels": "0", "lexical.gain": "3"}, epochs=1e-6
    )
    settings = {"levels": "0", "lexical.gain": "3", "lexical.stems": "true"}
    options = {"init_from": first.path, "epochs": 1e-6, "learning_rate": 0.0}
    second = train_small("selection", prepared, tmp_path / "second", settings, **options)
    assert f"{first.path} lacks weights of lexical_match:" in capsys.readouterr().out
    dataset, plain, stemmed = load_dataset(prepared), first.load_model(), second.load_model()
    layer = stemmed.get_layer("lexical_match")
    stems = equal_stems(dataset.vocabulary, layer.idf.shape[0])
    assert (stems != np.arange(len(stems))).any()
    np.testing.assert_array_equal(layer.stem.numpy(), stems)
    np.testing.assert_array_equal(
        layer.idf.numpy(), document_weights(dataset.splits["train"], len(stems), stems)
    )
    weights = plain.get_layer("lexical_match").idf.numpy()
    np.testing.assert_array_equal(weights, document_weights(dataset.splits["train"], len(stems)))
    for name in ("word_embedding", "aggregation"):
        for weight, learned in zip(
            stemmed.get_layer(name).weights, plain.get_layer(name).weights, strict=True
        ):
            np.testing.assert_allclose(weight.numpy(), learned.numpy(), atol=1e-6)
    ids = shutil.copytree(prepared, tmp_path / "ids")
    (ids / "vocabulary.txt").unlink()
    found = refusal(train_small, "selection", ids, tmp_path / "run", settings)
    assert re.search(
        r"lexical\.stems expects words, not ids alone\. .*ids has no vocabulary", found
    )
    assert not (tmp_path / "run").exists()


# === Turns of a context beside the true response: `evaluate.py --by=echo` ===

CONTEXTS = [[5, 6, EOS, 7, 8, 9, 10, EOS], [14, EOS], [15, 16, EOS, 17, 18, EOS]]
RESPONSES = [[20], [30], [21, 22], [31], [17, 18], [32]]  # of each context a positive first


def test_rows_compare_the_true_response_with_each_turn_that_differs_from_it():
    contexts = [context for context in CONTEXTS for _ in range(2)]
    split = SelectionSplit.of(contexts, RESPONSES, [1, 0] * 3, EOS)

    # The score of a candidate is its smallest id: turns 7.. and 14 lose to responses 20 and 21.
    def score(lines):
        return np.array([min(ids) for ids in lines.responses.lists()], float)

    last, before = echo_rows(split, -score(split), lambda lines: -score(lines))
    # Context 2 says its last turn again: it is left out there.
    assert last == ("last turn", 2, {"R10@1": 1.0, "R11@1": 0.0, "echo above": 1.0})
    assert before.examples == 2
    last, before = echo_rows(split, score(split), score)
    assert last.metrics == {"R10@1": 0.0, "R11@1": 0.0, "echo above": 0.0}
