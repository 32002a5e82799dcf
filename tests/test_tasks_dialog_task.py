"""`tasks.dialog.task`: what the dataset decides, scoring, baselines and upper bounds, names."""

import dataclasses
import types

import numpy as np
import pytest
from keras import ops

from base.files import UserError
from engine.samples import sample_of
from engine.settings import make_config
from engine.train import Fit, train
from metrics.dialog import dialog_metrics, nearest_neighbour, tfidf_match
from models import MODELS
from tasks import TASKS
from tasks.dialog.baselines import baselines_and_upper_bounds
from tasks.dialog.dataset import World
from tasks.dialog.scoring import predict
from tasks.dialog.tables import set_world
from tasks.dialog.task import Training

dialog = TASKS["dialog"]
SMALL = {"embedding_dim": "6", "heads": "2", "hops": "1"}


@pytest.fixture(scope="module")
def dataset(prepared_dialog):
    return dialog.load_dataset(prepared_dialog)


def build(dataset, name="memma", **settings):
    entry = MODELS[name]
    return entry.build(make_config(entry.config, dialog.model_settings(dataset, {**SMALL, **settings})))


@pytest.fixture(scope="module")
def model(dataset):
    """A model with large random weights and the dataset's candidates."""
    built = build(dataset, match_types="true")
    dialog.initialise(built, dataset, Training())
    rng = np.random.default_rng(5)
    for variable in built.trainable_variables:
        variable.assign(rng.normal(0.0, 0.7, variable.shape))
    return built


# === What the dataset decides ===


def test_model_settings_are_filled_in(dataset):
    found = dialog.model_settings(dataset, {"hops": "2"})
    world = dataset.world
    words = [len(text.split()) for text in world.candidates]
    assert found == {
        "hops": "2",
        "vocabulary_size": len(world.vocabulary.words),
        "candidates": (477, sum(words)),
        "entities": len(world.entities),
        "types": len({type for _, type, _ in world.entities}),
        "candidate_entities": world.encoded_candidates.entities.shape,
        "match_groups": world.match_groups[0].shape,
        "match_candidates": world.match_groups[2].shape,
        "max_words": 32,  # the next multiple of 16
    }
    longest = max(*words, *dataset.splits["train"].sentences.lengths)
    assert 16 < longest <= 32


@pytest.mark.parametrize("name", ["vocabulary_size", "candidates", "entities", "types", "match_groups", "max_words"])
def test_model_settings_refuse_what_is_decided(dataset, name):
    decided = dialog.model_settings(dataset, {})[name]
    with pytest.raises(UserError) as caught:
        dialog.model_settings(dataset, {name: "3"})
    assert str(caught.value) == f"--set {name}=3: {dataset.path} decides {name}, it is {decided}"


def test_check_fits_refuses_another_world(dataset):
    config = make_config(MODELS["memma"].config, dialog.model_settings(dataset, {}))
    dialog.check_fits(config, dataset)
    world = dataset.world
    fewer = dataclasses.replace(dataset, world=dataclasses.replace(world, candidates=world.candidates[1:]))
    with pytest.raises(UserError, match=r"task1: the run has candidates \(477, \d+\), here it is \(476, \d+\): they"):
        dialog.check_fits(config, fewer)
    unknown = dataclasses.replace(dataset, world=dataclasses.replace(world, entities=world.entities[1:]))
    with pytest.raises(UserError, match=r"the run has entities \d+, here it is \d+: they come"):
        dialog.check_fits(config, unknown)


def test_training_takes_no_eos_id(prepared_dialog, tmp_path):
    message = r"--eos_id is for published selection data\. Received: --eos_id=7 with memma$"
    with pytest.raises(UserError, match=message):
        train(dialog, "memma", prepared_dialog, tmp_path / "run", Fit(), {}, eos_id=7)
    assert not list(tmp_path.iterdir())


def test_the_sample_is_made_once(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = sample_of(dialog)
    assert path.match("build/sample-dialog-*/prepared/task1")
    made = [(file, file.stat().st_mtime_ns) for file in sorted(tmp_path.rglob("*"))]
    assert sample_of(dialog) == path
    assert [(file, file.stat().st_mtime_ns) for file in sorted(tmp_path.rglob("*"))] == made
    assert len(dialog.load_dataset(path).splits["train"]) == 400


# === The model's tables ===


def rows_of(words, rows):
    """The candidates that a model's flat tables stand for."""
    return [words[rows == row].tolist() for row in range(rows.max() + 1)]


def test_set_world_gives_a_model_its_candidates(dataset, model):
    weights = {layer.name: layer.get_weights() for layer in model.layers}
    ids = {word: id for id, word in enumerate(dataset.vocabulary.words, 1)}
    texts = [[ids[word] for word in text.split()] for text in dataset.world.candidates]
    assert rows_of(*weights["candidate_words"], *weights["candidate_rows"]) == texts
    vectors, *tables = weights["match_types"]
    assert vectors.std() > 0.5  # what was trained stays
    members, types_, groups = dataset.world.match_groups
    assert len(members) > 100 and groups.max() == len(members)
    for found, expected in zip(tables, (members, types_, groups), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_set_world_gives_an_entity_model_types_and_entities(dataset):
    built = build(dataset, "entity-memma")
    kernel = built.get_layer("entity_pointer").get_weights()[0]
    set_world(built, dataset.world)
    expected = dataset.world.encoded_candidates
    found = built.get_layer("entity_pointer").get_weights()
    np.testing.assert_array_equal(found[0], kernel)
    np.testing.assert_array_equal(found[1], expected.entities)
    words, rows = (built.get_layer(f"candidate_{name}").get_weights()[0] for name in ("words", "rows"))
    typed = [row[row > 0].tolist() for row in expected.typed_words]
    assert [[id for id in row if id] for row in rows_of(words, rows)] == typed
    assert words.max() > len(dataset.vocabulary)  # types have ids after those of the words


# === Batches and scoring ===


def test_training_batches_hold_every_dialog_once(dataset):
    split, training = dataset.splits["train"], Training()
    batches = dialog.training_batches(split, None, training, 3, np.random.default_rng(0))
    assert sorted(np.concatenate(batches).tolist()) == list(range(26))
    assert max(map(len, batches)) == 3
    again = dialog.training_batches(split, None, training, 3, np.random.default_rng(1))
    assert [batch.tolist() for batch in batches] != [batch.tolist() for batch in again]


def test_collate_reads_what_the_model_reads(dataset, model):
    inputs, answers = dialog.collate(dataset.splits["train"], model.config, [3, 1], 16)
    assert sorted(inputs) == ["mentions", "sentences", "speakers", "times", "turns", "words"]
    assert sorted(inputs) == sorted(model.config.reads)
    assert inputs["words"].shape == (64, 32) and answers.shape == (2, 16)
    assert inputs["mentions"].shape == (2, 48, len(dataset.world.entities))


@pytest.mark.parametrize("batch_size", [1, 3, 32])
def test_predict_gives_what_a_dialog_gets_alone(dataset, model, batch_size):
    split = dataset.splits["dev"]
    expected = []
    for row, sentences in enumerate(split.dialogs):
        inputs, _ = split.collate([row], model.config.reads, model.config.entities, multiple=1)
        logits = ops.convert_to_numpy(model(inputs))
        assert logits.shape == (1, len(sentences["turns"]), 477)
        expected += np.argmax(logits[0], axis=1).tolist()
    assert len(set(expected)) > 20  # turns differ, so a mix-up would show
    seen = []

    def progress(batches):
        seen.append(len(batches))
        return batches

    predicted = predict(model, split, model.config, batch_size, progress)
    assert predicted.tolist() == expected
    assert seen == [-(-7 // batch_size)]


def test_validate_chooses_by_responses(dataset, model):
    split = dataset.splits["dev"]
    predicted = predict(model, split, model.config)
    metrics, chosen_by = dialog.validate(model, split)
    assert metrics == dialog_metrics(predicted, split.answers, split.dialog)
    assert chosen_by == metrics["per_response"] == np.mean(predicted == split.answers)
    assert chosen_by < dialog.best_score


# === Baselines and upper bounds ===


def test_baselines_and_upper_bounds_are_those_of_the_texts(dataset, monkeypatch):
    """The same from the raw texts, as sets and lists of words."""
    world, words = dataset.world, (None, *dataset.vocabulary.words)
    ids = {word: id for id, word in enumerate(words)}

    def examples(split):
        for row in split.dialogs:
            texts = [[words[id] for id in split.sentences.words[s] if id] for s in row["sentences"]]
            for turn, answer in zip(row["turns"], row["answers"], strict=True):
                yield [word for text in texts[: turn + 1] for word in text], texts[turn], answer, texts

    def encode(texts):
        return [[ids[word] for word in text] for text in texts]

    train, test = dataset.splits["train"], dataset.splits["test"]
    contexts, inputs, gold, _ = zip(*examples(test), strict=True)
    _, train_inputs, trained, dialogs = zip(*examples(train), strict=True)
    candidates = [text.split() for text in world.candidates]
    type_of = {name: type for name, type, source in world.entities if source == "knowledge"}

    def form(candidate):
        return tuple(type_of.get(word, f"_{word}") for word in candidates[candidate])

    forms = {form(candidate) for candidate in trained}
    seen = [answer in trained for answer in gold]
    typed = [
        known or (form(answer) in forms and {w for w in candidates[answer] if w in type_of} <= set(context))
        for known, answer, context in zip(seen, gold, contexts, strict=True)
    ]
    assert 0 < sum(seen) < sum(typed) < len(gold)
    documents = []

    def watched(train_documents, *args):
        documents.extend(tuple(words[id] for id in text) for text in train_documents)
        return tfidf_match(train_documents, *args)

    monkeypatch.setattr("tasks.dialog.baselines.tfidf_match", watched)
    found = baselines_and_upper_bounds(dataset, "test")
    per_dialog = [
        np.mean([all(right[test.dialog == number]) for number in range(7)]) for right in map(np.array, (seen, typed))
    ]
    assert found["upper_bounds"] == {
        "seen responses": {"per_response": np.mean(seen), "per_dialog": per_dialog[0]},
        "match types": {"per_response": np.mean(typed), "per_dialog": per_dialog[1]},
    }
    sentences = {tuple(text) for texts in dialogs for text in texts}
    assert sorted(documents) == sorted(sentences)  # those of train alone, each once
    nearest = nearest_neighbour(encode(train_inputs), trained, encode(inputs))
    match = tfidf_match(encode(sorted(sentences)), encode(contexts), encode(candidates))
    assert found["baselines"] == {
        "TF-IDF match": dialog_metrics(match, test.answers, test.dialog),
        "nearest neighbour": dialog_metrics(nearest, test.answers, test.dialog),
    }
    assert 0.1 < found["baselines"]["nearest neighbour"]["per_response"] < 0.9


def test_describe_counts():
    record = {"counts": {"dialogs": 1000, "responses": 18340}}
    assert dialog.describe(record) == ("1,000 dialogs, 18,340 responses", None)


def test_a_run_keeps_its_world(dataset, tmp_path):
    dialog.keep_for_run(dataset, tmp_path)
    assert World.load(tmp_path) == dataset.world
    run = types.SimpleNamespace(config={"dataset": dataset.facts()})
    assert dialog.dataset_of(run).facts() == dialog.dataset_of(run, dataset.path).facts() == dataset.facts()
    with pytest.raises(UserError, match="is no directory"):
        dialog.dataset_of(run, tmp_path / "absent")
