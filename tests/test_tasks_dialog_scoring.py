"""`tasks.dialog.scoring` and `task`: losses against loops, predictions, baselines, groups, what the
dataset decides.
"""

import functools
import types

import numpy as np
import pytest
from helpers import randomised, refusal

from colloquy.data.vocabulary import Vocabulary
from colloquy.engine.train import start
from colloquy.metrics.dialog import dialog_metrics, nearest_neighbour, tfidf_match
from colloquy.models import MODELS
from colloquy.tasks import TASKS
from colloquy.tasks.dialog import scoring
from colloquy.tasks.dialog.data import load_dataset
from colloquy.tasks.dialog.domain import Domain
from colloquy.tasks.dialog.scoring import (
    BREAKDOWNS,
    margin_loss,
    metrics_by_group,
    predict,
    softmax_loss,
)
from colloquy.tasks.dialog.training import Training

dialog = TASKS["dialog"]

B, T, C = 2, 3, 5


def hinge(margin):
    return lambda correct, f: sum(
        max(0.0, margin - f[correct] + f[y]) for y in range(C) if y != correct
    )


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("loss", "of_turn"),
    [
        (scoring.softmax_loss, lambda correct, f: -np.log(np.exp(f[correct]) / sum(np.exp(f)))),
        *(
            (functools.partial(scoring.margin_loss, margin=margin), hinge(margin))
            for margin in (0.1, 1.7)
        ),
    ],
    ids=["softmax", "margin .1", "margin 1.7"],
)
def test_losses_match_loops(loss, of_turn, seed):
    """Of three real turns; the logits of padded ones would weigh most."""
    rng = np.random.default_rng(seed)
    answers, logits = rng.integers(0, C, (B, T)), rng.normal(0.0, 2.0, (B, T, C)).astype("float32")
    answers[0, 2] = answers[1, 1] = answers[1, 2] = -1
    logits[answers < 0] *= 50
    turns = [(b, t) for b in range(B) for t in range(T) if answers[b, t] >= 0]
    expected = sum(of_turn(answers[turn], logits[turn].astype("float64")) for turn in turns) / 3
    assert float(np.mean(loss(answers, logits))) == pytest.approx(expected, rel=1e-5)
    # The parts of a batch weigh as many as they have real turns.
    counts = [int(dialog.loss_counts(part).sum()) for part in np.split(answers, B)]
    parts = [np.mean(loss(answers[b : b + 1], logits[b : b + 1])) for b in range(B)]
    assert counts == [2, 1] and np.dot(counts, parts) / 3 == pytest.approx(expected, rel=1e-5)
    assert not np.any(loss(np.full((B, T), -1), np.ones((B, T, C), "float32")))
    # Keras takes the axis of a single candidate away, which is always right
    one = np.ones((B, T), "float32")
    np.testing.assert_allclose(loss(np.zeros((B, T), int), one), 0.0, atol=1e-6)


# === Predictions ===


@pytest.fixture(scope="module")
def sample(prepared_dialog):
    return load_dataset(prepared_dialog)


def configured(dataset, settings):
    """The config of a MEMMA for a dataset."""
    model_settings, _ = dialog.split_settings(MODELS["memma"], settings)
    return dialog.build_config(MODELS["memma"], dataset, model_settings)


@pytest.mark.parametrize("batch_size", [1, 3, 32])
def test_predict_takes_the_best_candidate_of_each_turn(sample, batch_size):
    split = sample.splits["dev"]
    settings = {"embedding_dim": 6, "heads": 2, "hops": 1, "match_types": True, "positions": "none"}
    model = MODELS["memma"].build(configured(sample, settings))
    sample.domain.put_into(model)
    randomised(model, 5, 0.7)
    expected = []
    for row, sentences in enumerate(split.dialogs):
        inputs, _ = split.collate([row], model.config.reads, model.config.entities, 1)
        logits = np.asarray(model(inputs))
        assert logits.shape == (1, len(sentences["turns"]), 477)
        expected += np.argmax(logits[0], axis=1).tolist()
    assert len(set(expected)) > 20  # turns differ, so a mix-up would show
    seen = []

    def progress(batches):
        seen.append(len(batches))
        return batches

    assert predict(model, split, batch_size, progress).tolist() == expected
    assert seen == [-(-7 // batch_size)]
    metrics, chosen_by = dialog.validate(model, split)
    assert metrics == dialog_metrics(expected, split.answers, split.dialog)
    assert (
        chosen_by
        == metrics["per_response"]
        == np.mean(expected == split.answers)
        < dialog.max_score
    )


def test_metrics_are_means_over_the_managers():
    manager, dialog_of = np.array(["a", "a", "a", "a", "b"]), np.array([0, 0, 1, 1, 2])
    split = types.SimpleNamespace(
        manager=manager, dialog=dialog_of, answers=np.array([4, 2, 7, 3, 5])
    )
    assert scoring.metrics_of(split, np.array([4, 2, 7, 1, 6])) == {
        "metrics": {"per_response": 0.375, "per_dialog": 0.25},
        "parts": {
            "manager: a": {"per_response": 0.75, "per_dialog": 0.5},
            "manager: b": {"per_response": 0.0, "per_dialog": 0.0},
        },
    }


def test_baselines_and_upper_bounds_are_those_of_the_texts(sample):
    domain, train, test = sample.domain, sample.splits["train"], sample.splits["test"]
    types = {name: f"{{{type}}}" for name, type, source in domain.entities if source == "knowledge"}
    form = [" ".join(types.get(word, word) for word in text.split()) for text in domain.candidates]
    forms, contexts, inputs = {form[answer] for answer in train.answers}, [], []
    for split in (train, test):
        for row in split.dialogs:
            texts = [each["text"] for each in sample.conversation(split, row)]
            contexts += [" ".join(texts[: turn + 1]).split() for turn in row["turns"]]
            inputs += [sample.vocabulary.encode(texts[turn].split()) for turn in row["turns"]]
    first = len(train.answers)
    contexts = contexts[first:]
    seen = np.isin(test.answers, train.answers)
    typed = [
        form[answer] in forms and (types.keys() & domain.candidates[answer].split()) <= set(said)
        for answer, said in zip(test.answers, contexts, strict=True)
    ]
    # those of train alone, each once
    sentences = {id for row in train.dialogs for id in row["sentences"]}
    documents = train.sentences.words.lists(sorted(sentences))
    candidates = [domain.vocabulary.encode(text.split()) for text in domain.candidates]
    match = tfidf_match(documents, map(domain.vocabulary.encode, contexts), candidates)
    expected = {
        "TF-IDF match": match,
        "nearest neighbour": nearest_neighbour(inputs[:first], train.answers, inputs[first:]),
        "seen responses": np.where(seen, test.answers, -1),
        "match types": np.where(seen | typed, test.answers, -1),
    }
    assert 0 < sum(seen) < sum(seen | typed) < len(seen)
    found = scoring.baselines_and_upper_bounds(sample, "test")
    assert list(found) == ["baselines", "upper_bounds"]
    for name, scores in (found["baselines"] | found["upper_bounds"]).items():
        assert scores == dialog_metrics(expected.pop(name), test.answers, test.dialog), name
    assert not expected


# === Groups of responses ===

CANDIDATES = ["hello there", "api_call thai west", "api_call greek west"]
CANDIDATES += ["the nice rest is in the west"]  # the restaurant is written with spaces
CANDIDATES += ["the_nice_rest is in the east", "the_nice_rest is cheap , east"]
TYPES = {
    "thai": "cuisine",
    "greek": "cuisine",
    "west": "location",
    "east": "location",
    "the_nice_rest": "restaurant",
}


@pytest.fixture
def dataset():
    words = sorted({word for candidate in CANDIDATES for word in candidate.split()})
    splits = {
        "train": types.SimpleNamespace(answers=np.array([0, 1, 4])),
        # two dialogs, of three turns and of two
        "dev": types.SimpleNamespace(
            answers=np.array([0, 1, 3, 2, 5]), dialog=np.array([0, 0, 0, 1, 1])
        ),
    }
    entities = [(name, type, "knowledge") for name, type in TYPES.items()]
    domain = Domain(Vocabulary(("_EOS_", "_UNK_", *words)), CANDIDATES, [], entities)
    return types.SimpleNamespace(splits=splits, domain=domain)


def test_groups_say_what_is_wrong(dataset):
    # right; another cuisine; right; right wording of another call; another wording, right entities
    predicted = np.array([0, 2, 3, 1, 4])
    found = metrics_by_group(dataset, dataset.splits["dev"], predicted, BREAKDOWNS)
    rows = {
        name: [(each["group"], each["examples"], *each["metrics"].values()) for each in groups]
        for name, groups in found.items()
    }
    assert list(found["kind"][0]["metrics"]) == ["per_response", "template", "entities"]
    assert rows == {
        "kind": [
            ("asks the knowledge base", 2, 0.0, 1.0, 0.0),
            ("names an entity", 2, 0.5, 0.5, 1.0),
            ("other", 1, 1.0, 1.0, 1.0),
        ],
        "template": [
            ("api_call {cuisine} {location}", 2, 0.0, 1.0, 0.0),
            ("hello there", 1, 1.0, 1.0, 1.0),
            ("{restaurant} is in the {location}", 1, 1.0, 1.0, 1.0),
            ("{restaurant} is cheap , {location}", 1, 0.0, 0.0, 1.0),
        ],
        "seen": [("not in train", 3, 1 / 3, 2 / 3, 2 / 3), ("in train", 2, 0.5, 1.0, 0.5)],
        "turns": [("1-2", 4, 0.25, 0.75, 0.5), ("3-4", 1, 1.0, 1.0, 1.0)],
    }


def test_rare_templates_are_one_group_and_long_dialogs_another(dataset, monkeypatch):
    monkeypatch.setattr("colloquy.tasks.dialog.scoring.TEMPLATES", 1)
    split = types.SimpleNamespace(
        answers=np.array([1, 2, *[0] * 25]), dialog=np.repeat([0, 1], [2, 25])
    )
    found = metrics_by_group(dataset, split, split.answers, ["template", "turns"])
    assert [(each["group"], each["examples"]) for each in found["template"]] == [
        ("hello there", 25),
        ("the rest", 2),
    ]
    assert [(each["group"], each["examples"]) for each in found["turns"]] == [
        *[
            ("1-2", 4),
            ("3-4", 2),
            ("5-6", 2),
            ("7-8", 2),
            ("9-10", 2),
            ("11-15", 5),
            ("16-20", 5),
            ("21+", 5),
        ]
    ]


# === The task ===


def test_the_dataset_decides_sizes(sample):
    config = configured(sample, {"hops": "2"})
    domain = sample.domain
    words = [len(text.split()) for text in domain.candidates]
    longest = max(*words, *sample.splits["train"].sentences.words.lengths)
    expected = {
        "hops": 2,
        "vocabulary_size": len(domain.vocabulary.words),
        "candidates": (477, sum(words)),
        "entities": len(domain.entities),
        "types": len({type for _, type, _ in domain.entities}),
        "candidate_entities": (477, max(map(len, domain.encoded_candidates.entities.lists()))),
        "match_groups": domain.match_groups[0].shape,
        "match_candidates": domain.match_groups[2].shape,
        "max_words": 32,  # the next multiple of 16
    }
    assert {name: getattr(config, name) for name in expected} == expected and 16 < longest <= 32
    for name, value in list(expected.items())[1:]:
        other = "3" if isinstance(value, int) else "[3, 3]"
        found = refusal(configured, sample, {name: other})
        assert found.startswith(f"--set {name}={other}: ") and f" decides {name}" in found


def test_training_takes_no_eos_id(prepared_dialog, tmp_path):
    found = refusal(start, dialog, "memma", prepared_dialog, tmp_path / "run", {}, eos_id=7)
    assert "--eos_id=7 with memma" in found
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["dialog", "generation"])
@pytest.mark.parametrize(
    ("settings", "clip", "rates"),
    [
        ({"decay": 0.25, "gradient_clip": 3.0}, 3.0, [0.08, 0.065, 0.05, 0.02, 0.02]),
        ({"decay": 1.0, "gradient_clip": 0.0}, None, [0.08] * 5),
    ],
)
def test_learning_rate_decays_linearly_to_a_fraction(name, settings, clip, rates):
    optimizer = TASKS[name].optimizer(TASKS[name].Training(learning_rate=0.08, **settings), 40)
    assert optimizer.global_clipnorm == clip and not optimizer.use_ema
    found = []
    for step in (0, 10, 20, 40, 70):
        optimizer.iterations.assign(step)
        found.append(float(optimizer.learning_rate))
    assert found == pytest.approx(rates, rel=1e-5)
    averaged = dialog.optimizer(Training(ema=0.75), 40)
    assert averaged.use_ema and averaged.ema_momentum == 0.75


def test_loss_is_the_one_that_the_settings_name():
    answers, logits = (
        np.array([[2, -1]]),
        np.array([[[0.5, 1.0, 1.25], [9.0, 0.0, 0.0]]], "float32"),
    )
    np.testing.assert_array_equal(
        dialog.loss(Training())(answers, logits), softmax_loss(answers, logits)
    )
    chosen = dialog.loss(Training(loss="margin", margin=1.7))
    np.testing.assert_array_equal(chosen(answers, logits), margin_loss(answers, logits, 1.7))


def test_a_run_keeps_its_world(sample, tmp_path):
    dialog.save_assets(sample, tmp_path)
    assert Domain.load(tmp_path) == sample.domain
    assert {file.name for file in tmp_path.iterdir()} == {
        *Domain.FILES,
        "action_mask.json",
        "phrases.txt",
    }
    assert (tmp_path / "phrases.txt").read_text().splitlines() == sample.phrases()
    run = types.SimpleNamespace(dataset=sample.metadata())
    assert (
        dialog.dataset_of(run).metadata()
        == dialog.dataset_of(run, sample.path).metadata()
        == sample.metadata()
    )
    assert "is no directory" in refusal(dialog.dataset_of, run, tmp_path / "absent")
