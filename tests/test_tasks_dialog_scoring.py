"""`tasks.dialog.losses`, `scoring` and `task`: losses against loops, predictions, baselines."""

import functools
import types

import numpy as np
import pytest
from helpers import randomised, refusal

from colloquy.engine.settings import build_config
from colloquy.metrics.dialog import dialog_metrics, nearest_neighbour, tfidf_match
from colloquy.models import MODELS
from colloquy.tasks import TASKS
from colloquy.tasks.dialog.baselines import baselines_and_upper_bounds
from colloquy.tasks.dialog.data import load_dataset
from colloquy.tasks.dialog.domain import Domain
from colloquy.tasks.dialog.losses import margin_loss, softmax_loss
from colloquy.tasks.dialog.scoring import predict
from colloquy.tasks.dialog.users import learn_users, load_users

dialog = TASKS["dialog"]

B, T, C = 2, 3, 5

# === Losses ===


def cross_entropy(correct, logits_C):
    return -np.log(np.exp(logits_C[correct]) / sum(np.exp(logits_C)))


def hinge(margin, correct, logits_C):
    loss = 0.0
    for c in range(C):
        if c != correct:
            loss += max(0.0, margin - logits_C[correct] + logits_C[c])
    return loss


@pytest.mark.parametrize(
    ("loss", "loss_of_turn"),
    [
        (softmax_loss, cross_entropy),
        (functools.partial(margin_loss, margin=1.7), functools.partial(hinge, 1.7)),
    ],
    ids=["softmax", "margin 1.7"],
)
def test_losses_match_loops(loss, loss_of_turn):
    """Of three real turns; the logits of padded ones would weigh most."""
    rng = np.random.default_rng(0)
    answers = rng.integers(0, C, (B, T))
    logits = rng.normal(0.0, 2.0, (B, T, C)).astype("float32")
    answers[0, 2] = answers[1, 1] = answers[1, 2] = -1
    logits[answers < 0] *= 50
    turns = [(0, 0), (0, 1), (1, 0)]
    losses = [loss_of_turn(answers[turn], logits[turn].astype("float64")) for turn in turns]
    expected = sum(losses) / 3
    assert float(np.mean(loss(answers, logits))) == pytest.approx(expected, rel=1e-5)

    # The parts of a batch weigh as many as they have real turns.
    counts = dialog.loss_counts(answers)
    parts = [float(np.mean(loss(answers[b : b + 1], logits[b : b + 1]))) for b in range(B)]
    assert counts.tolist() == [2, 1]
    assert np.dot(counts, parts) / 3 == pytest.approx(expected, rel=1e-5)

    # Padding costs nothing, and a single candidate, which is always right, neither. Keras takes
    # the axis of a single candidate away.
    assert not np.any(loss(np.full((B, T), -1), np.ones((B, T, C), "float32")))
    single = loss(np.zeros((B, T), int), np.ones((B, T), "float32"))
    np.testing.assert_allclose(single, 0.0, atol=1e-6)


# === Predictions ===


@pytest.fixture(scope="module")
def sample(prepared_dialog):
    return load_dataset(prepared_dialog)


def memma_config(dataset, settings):
    """The config of a MEMMA for a dataset."""
    model_settings, _ = dialog.split_settings(MODELS["memma"], settings)
    return build_config(dialog, MODELS["memma"], dataset, model_settings)


def test_predict_takes_the_best_candidate_of_each_turn(sample, monkeypatch):
    # Of 7 dialogs: the last batch is a part.
    monkeypatch.setattr("colloquy.tasks.dialog.scoring.BATCH_SIZE", 3)
    split = sample.splits["dev"]
    settings = {"embedding_dim": 6, "heads": 2, "hops": 1, "match_types": True, "positions": "none"}
    model = MODELS["memma"].build(memma_config(sample, settings))
    sample.domain.tables.put_into(model)
    randomised(model, 5, 0.7)
    expected = []
    for row in range(len(split)):
        inputs, _ = split.collate([row], model.config.reads, model.config.entities, 1)
        expected += np.argmax(model(inputs)[0], axis=1).tolist()
    assert len(set(expected)) > 20  # turns differ, so a mix-up would show

    assert predict(model, split).tolist() == expected
    metrics, score = dialog.validate(model, split)
    assert metrics == dialog_metrics(expected, split.answers, split.dialog)
    assert score == metrics["per_response"] == np.mean(expected == split.answers)


def contexts_and_inputs(dataset, split):
    """The words up to each turn, and the ids of its user's sentence."""
    contexts = []
    inputs = []
    for row in split.dialogs:
        texts = [turn.text for turn in dataset.conversation(split, row)]
        for turn in row["turns"]:
            contexts.append(" ".join(texts[: turn + 1]).split())
            inputs.append(dataset.vocabulary.encode(texts[turn].split()))
    return contexts, inputs


def test_baselines_and_upper_bounds_are_those_of_the_texts(sample):
    domain = sample.domain
    train = sample.splits["train"]
    test = sample.splits["test"]
    _, train_inputs = contexts_and_inputs(sample, train)
    contexts, inputs = contexts_and_inputs(sample, test)

    # Reachable: a response of train, or its form with values that the context mentions.
    type_of = {name: f"{{{t}}}" for name, t, source in domain.entities if source == "knowledge"}
    forms = []
    for text in domain.candidates:
        forms.append(" ".join(type_of.get(word, word) for word in text.split()))
    train_forms = {forms[answer] for answer in train.answers}
    is_seen = np.isin(test.answers, train.answers)
    is_typed = is_seen.copy()
    for place, (answer, context) in enumerate(zip(test.answers, contexts, strict=True)):
        values = type_of.keys() & domain.candidates[answer].split()
        if forms[answer] in train_forms and values <= set(context):
            is_typed[place] = True
    assert 0 < sum(is_seen) < sum(is_typed) < len(is_seen)

    documents = train.sentences.words.lists(np.unique(train.fields["sentences"].flat()))
    candidates = domain.encoded_candidates.words.lists()
    encoded_contexts = [domain.vocabulary.encode(context) for context in contexts]
    match = tfidf_match(documents, encoded_contexts, candidates)
    neighbour = nearest_neighbour(train_inputs, train.answers, inputs)

    def score(predicted):
        return dialog_metrics(predicted, test.answers, test.dialog)

    assert baselines_and_upper_bounds(sample, "test") == {
        "baselines": {"TF-IDF match": score(match), "nearest neighbour": score(neighbour)},
        "upper_bounds": {
            "seen responses": score(np.where(is_seen, test.answers, -1)),
            "match types": score(np.where(is_typed, test.answers, -1)),
        },
    }


# === The task ===


def test_the_dataset_decides_sizes(sample):
    config = memma_config(sample, {"hops": "2"})
    expected = {**sample.domain.tables.required_fields, "max_words": 32}  # a multiple of 16
    assert {name: getattr(config, name) for name in expected} == expected
    assert 16 < sample.splits["train"].sentences.words.lengths.max() <= 32
    assert " decides max_words" in refusal(memma_config, sample, {"max_words": "3"})


@pytest.mark.parametrize("name", ["dialog", "generation"])
def test_learning_rate_decays_linearly_to_a_fraction(name):
    training = TASKS[name].Training(learning_rate=0.08, decay=0.25, gradient_clip=3.0, ema=0.5)
    optimizer = TASKS[name].optimizer(training, 40)
    assert optimizer.global_clipnorm == 3.0
    assert optimizer.use_ema and optimizer.ema_momentum == 0.5
    for step, rate in ((0, 0.08), (10, 0.065), (20, 0.05), (40, 0.02), (70, 0.02)):
        optimizer.iterations.assign(step)
        assert float(optimizer.learning_rate) == pytest.approx(rate, rel=1e-5)


def test_a_run_keeps_its_domain(sample, tmp_path):
    dialog.save_assets(sample, tmp_path)
    files = {file.name for file in tmp_path.iterdir()}
    assert files == {*Domain.FILES, "action_mask.json", "users.json"}
    assert Domain.load(tmp_path) == sample.domain
    assert load_users(tmp_path, sample.domain) == learn_users(sample)
    run = types.SimpleNamespace(dataset=sample.metadata())
    assert dialog.dataset_of(run).metadata() == sample.metadata()
    assert "is not a directory" in refusal(dialog.dataset_of, run, tmp_path / "absent")
