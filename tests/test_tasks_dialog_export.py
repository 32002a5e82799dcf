"""The exported dialog model: it reads sentences as the predictor does, and its answers are those of the run."""

import os
import pickle
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf
from helpers import run_script

from data.vocabulary import Vocabulary
from engine import export as exporting
from engine.train import start
from serving import models as serving_models
from tasks import TASKS
from tasks.dialog.data import World
from tasks.dialog.export import DialogText

dialog = TASKS["dialog"]
CLIENT = """
import pickle, sys
sys.modules["keras"] = None  # from here on, importing it fails
import tensorflow as tf

path, inputs, example = pickle.load(open("calls.pkl", "rb"))
loaded = tf.saved_model.load(path)
answers = {}
for name in loaded.signatures:
    found = loaded.signatures[name](**{key: tf.constant(value, tf.string) for key, value in inputs.items()})
    answers[name] = {key: value.numpy() for key, value in found.items()}
scope = {}
exec(example, scope)
answers["example"] = {key: value.numpy() for key, value in scope["answer"].items()}
answers["modules"] = [name for name in sys.modules if name.split(".")[0] in ("engine", "tasks", "models", "layers")]
pickle.dump(answers, open("answers.pkl", "wb"))
"""
FACTS = ["red_lamp R_cuisine pizza", "red_lamp R_location pellwick"]


# === Text ===

WORDS = ("_EOS_", "_UNK_", "<SILENCE>", "Hello", "hello", "red", "lamp", "red_lamp", "in", "west", "west_end", "!")
ENTITIES = [
    *((f"w{n}", "location", "knowledge") for n in range(9)),  # an open type
    *(("west", "location", "knowledge"), ("west_end_pier", "location", "knowledge"), ("west_end", "location", "calls")),
    *(("cheap", "price", "knowledge"), ("red_lamp", "restaurant", "subjects"), ("lamp", "dish", "knowledge")),
]
SENTENCES = [
    "hello in the west end pier west",
    "west end west_end red_lamp red lamp lamp cheap",
    "HELLO, Hello  \u00a0in\x1cw3? '\"in\"' west end",
    "red west end pier",
    "!! ?? \u0130n",
    "in " * 20,
    "",
    " \t",
    "_EOS_ _UNK_ <SILENCE>",
]


class Reader:
    """What `DialogPredictor.read` needs."""

    def __init__(self, world, max_words):
        self.config = type("Config", (), {"max_words": max_words})
        self._known = set(world.vocabulary.words) - {"_EOS_", "_UNK_"}


@pytest.mark.parametrize("max_words", [5, 11])
def test_sentences_become_what_the_predictor_makes_of_them(max_words):
    from tasks.dialog.predictor import DialogPredictor

    world = World(Vocabulary(WORDS), ["hello"], [], ENTITIES)
    text, reader = DialogText(world, max_words), Reader(world, max_words)
    for of_user in (True, False):
        words = text.split(tf.constant(SENTENCES), tf.fill((len(SENTENCES),), of_user))
        expected = [
            DialogPredictor.read(reader, sentence) if of_user else sentence.split()[:max_words]
            for sentence in SENTENCES
        ]
        assert [[word.decode() for word in row if word] for row in words.numpy()] == expected
        ids, typed, entities = (part.numpy() for part in text.encode(words))
        encoded = world.encode(expected)
        for found, plain in ((ids, encoded.words), (typed, encoded.typed_words)):
            np.testing.assert_array_equal(found, plain.padded(range(len(SENTENCES)), max_words))
        assert [set(row) - {0} for row in entities] == [set(row) for row in encoded.entities.lists()]


# === Models ===


def histories(run, chat_length=None):
    """The conversations of dev in front of each answer, and some that people may write."""
    dataset, world, found = dialog.dataset_of(run), World.load(run.path), []
    split = dataset.splits["dev"]
    for each in split.dialogs[:3]:
        said = dataset.conversation(split, each)
        found += [{"history": said[: turn + 1]} for turn in each["turns"]]
    said = [{"speaker": "user", "text": "Hello, XYZZY!"}, {"speaker": "bot", "text": world.candidates[5]}]
    found += [
        {"history": said, "facts": [" ".join(fact) for fact in world.knowledge[:3]]},  # after the bot: silence
        {"history": [*said, {"speaker": "user", "text": "a  Pizza place, please."}], "facts": FACTS},
        {"history": []},
        {"history": [{"speaker": "user", "text": ""}], "candidates": world.candidates[7:10]},
    ]
    return [{"candidates": world.candidates, **instance} for instance in found], world.candidates


def columns_of(instances, everything):
    """Instances as the arrays of the endpoint."""
    columns = {name: [] for name in ("history", "speakers", "facts", "candidates")}
    for instance in instances:
        columns["history"].append([sentence["text"] for sentence in instance["history"]])
        columns["speakers"].append([sentence["speaker"] for sentence in instance["history"]])
        columns["facts"].append(instance.get("facts", []))
        columns["candidates"].append([] if instance["candidates"] == everything else instance["candidates"])
    return {name: filled(rows) for name, rows in columns.items()}


def filled(rows):
    width = max(map(len, rows))
    return np.array([row + [""] * (width - len(row)) for row in rows], object).reshape(len(rows), width)


def compare(run, answer):
    """The predictor's answers beside those of the export."""
    instances, _ = histories(run)
    predictor = dialog.predictor(run)
    for row, found in enumerate(predictor.predict(instances)):
        texts = [text.decode() for text in answer["responses"][row]]
        assert texts == [each["text"] for each in found["best"]] + [""] * (5 - len(found["best"]))
        scores = [each["score"] for each in found["best"]]
        np.testing.assert_allclose(answer["scores"][row], scores + [0.0] * (5 - len(scores)), rtol=1e-3, atol=1e-6)
    for row in (2, -4, -3):
        shown = predictor.explain(instances[row])["attention"]
        said, facts = instances[row]["history"], instances[row].get("facts", [])
        before = len(said) - (said[-1]["speaker"] == "user")
        parts = answer["history_attention"][row, :, :before], answer["facts_attention"][row, :, : len(facts)]
        if shown:
            np.testing.assert_allclose(np.concatenate(parts, axis=1).T, shown[0]["weights"], rtol=1e-3, atol=1e-6)
        else:
            assert answer["history_attention"].shape[1] == 0
        assert not answer["history_attention"][row, :, before:].any()


def test_an_exported_run_answers_as_it_does_in_a_process_without_this_project(trained_dialog, tmp_path):
    done = run_script("export.py", f"--run={trained_dialog.path}", f"--out={tmp_path}/model")
    assert done.returncode == 0, done.stderr
    inputs = columns_of(*histories(trained_dialog))
    example = done.stdout.partition("\n\n")[2]
    with open(tmp_path / "calls.pkl", "wb") as file:
        pickle.dump((f"{tmp_path}/model/1", inputs, example), file)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    subprocess.run([sys.executable, "-I", "-c", CLIENT], cwd=tmp_path, check=True, env=environment)
    answers = pickle.loads((tmp_path / "answers.pkl").read_bytes())
    assert answers["modules"] == []
    compare(trained_dialog, answers["respond"])
    np.testing.assert_array_equal(answers["serving_default"]["scores"], answers["respond"]["scores"])
    [first, *_] = trained_dialog.examples()
    found = dialog.predictor(trained_dialog).predict(
        [{**first["instance"], "candidates": World.load(trained_dialog.path).candidates}]
    )
    assert answers["example"]["responses"][0, 0].decode() == found[0]["response"]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["entity-memma", "supervised-embeddings"])
def test_models_with_entities_and_without_attention_too(name, prepared_dialog, tmp_path):
    settings = {"embedding_dim": 8, "epochs": 1.0} | ({"hops": 2, "heads": 2} if name == "entity-memma" else {})
    run = start(dialog, name, prepared_dialog, tmp_path / "run", settings)
    model = tf.saved_model.load(str(exporting.export(dialog, run, tmp_path / "model")))
    inputs = {name: tf.constant(texts, tf.string) for name, texts in columns_of(*histories(run)).items()}
    compare(run, {name: value.numpy() for name, value in model.respond(**inputs).items()})


# === Refusals ===


@pytest.fixture(scope="module")
def model(trained_dialog, tmp_path_factory):
    path = exporting.export(dialog, trained_dialog, tmp_path_factory.mktemp("exported") / "model")
    return tf.saved_model.load(str(path)).signatures["respond"]


def test_an_exported_model_is_served(trained_dialog, tmp_path):
    exporting.export(dialog, trained_dialog, tmp_path / "model")
    served = serving_models.load("bot", tmp_path / "model")
    served.warm_up()
    said = [{"speaker": "user", "text": "hello"}]
    [found] = served.predictor.predict([{"history": ["hello"], "speakers": ["user"], "facts": [], "candidates": []}])
    candidates = World.load(trained_dialog.path).candidates
    [expected] = dialog.predictor(trained_dialog).predict([{"history": said, "candidates": candidates}])
    assert found["responses"] == [each["text"] for each in expected["best"]]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"speakers": [["cat"]]}, "speakers must be user, bot, fact"),
        ({"speakers": [["user", "bot"]]}, "history and speakers must have one shape"),
        ({"facts": [["a"], ["b"]]}, "equally many rows"),
        ({"candidates": [["no such"]]}, "candidates must be responses that the bot knows"),
        ({"history": ["hello"]}, "history_must_have_shape_B_M"),
    ],
)
def test_what_is_wrong_is_said(model, changed, message):
    inputs = {"history": [["hello"]], "speakers": [["user"]], "facts": [[""]], "candidates": [[""]], **changed}
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        model(**{name: tf.constant(value) for name, value in inputs.items()})


def test_bytes_that_are_no_utf_8_are_unknown_words(model):
    def answer(word):
        return model(
            history=tf.constant([[b"hello " + word]]),
            speakers=tf.constant([["user"]]),
            facts=tf.constant([[b"a " + word]]),
            candidates=tf.constant([[""]]),
        )

    hostile, unknown = answer(b"\xff\xfe\xe2"), answer(b"xyzzy")
    np.testing.assert_array_equal(hostile["scores"], unknown["scores"])
    np.testing.assert_array_equal(hostile["responses"], unknown["responses"])
