"""The exported dialog model: it reads sentences as the predictor does, and answers as the run."""

import types

import numpy as np
import pytest
import tensorflow as tf
from helpers import ROOT

from colloquy.data.vocabulary import Vocabulary
from colloquy.engine import export as exporting
from colloquy.engine.run import Run
from colloquy.layers.dialog_state import INPUTS
from colloquy.tasks import TASKS
from colloquy.tasks.dialog.domain import Domain, Entity
from colloquy.tasks.dialog.export import dialog_archive
from colloquy.tasks.dialog.graph_text import DialogText
from colloquy.tasks.dialog.reader import DialogReader
from colloquy.tasks.dialog.users import Users

dialog = TASKS["dialog"]
WORDS = "_EOS_ _UNK_ <SILENCE> Hello hello red lamp red_lamp in west west_end !".split()
ENTITIES = [Entity(f"w{number}", "location", "knowledge") for number in range(9)]  # an open type
ENTITIES += [
    Entity("west", "location", "knowledge"),
    Entity("west_end_pier", "location", "knowledge"),
    Entity("west_end", "location", "calls"),
    Entity("cheap", "price", "knowledge"),
    Entity("red_lamp", "restaurant", "subjects"),
    Entity("lamp", "dish", "knowledge"),
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
    "Helllo... *chaep* in \u201cw\u00e8st\u201d, wset (west)cheep / hlelo",
    "\uff57\uff45\uff53\uff54\u200b \u2013 (west) \u2014 \u202ahello\u202c\u2026",
    "at 8:30 + not cheap :-) ... a&b 2 couples",
]


# 5 words are fewer than some sentences have.
@pytest.mark.parametrize("max_words", [5, 11])
@pytest.mark.parametrize("is_user", [True, False])
def test_sentences_become_what_the_predictor_makes_of_them(max_words, is_user):
    domain = Domain(Vocabulary(tuple(WORDS)), ["hello"], [], ENTITIES)
    config = types.SimpleNamespace(max_words=max_words, entities=len(ENTITIES), reads=INPUTS)
    reader = DialogReader(domain, Users(words=["hello", "in"]), config)
    text = DialogText(domain, reader)
    expected = [sentence.split()[:max_words] for sentence in SENTENCES]
    if is_user:
        expected = [reader.split(sentence) for sentence in SENTENCES]

    read = text.read(tf.constant([SENTENCES]), tf.fill((1, len(SENTENCES)), is_user))
    words = text.split(read[0])
    for row, expected_words in zip(words.numpy(), expected, strict=True):
        assert [word.decode() for word in row if word] == expected_words
    unknown = [", ".join(reader.unknown(words)) for words in expected]
    assert [words.decode() for words in text.unknown(read[0]).numpy()] == unknown

    ids, typed_ids, entities = text.encode(words)
    encoded = domain.encode(expected)
    rows = range(len(SENTENCES))
    np.testing.assert_array_equal(ids, encoded.words.padded(rows, max_words))
    np.testing.assert_array_equal(typed_ids, encoded.typed_words.padded(rows, max_words))
    for row, expected_entities in zip(entities.numpy(), encoded.entities.lists(), strict=True):
        assert set(row) - {0} == set(expected_entities)


# === Answers ===


def said_by_user(*texts):
    return [{"speaker": "user", "text": text} for text in texts]


def inputs_of(histories):
    """The inputs of the endpoint, padded with ""."""
    longest = max(len(history) for history in histories)
    inputs = {"history": [], "speakers": []}
    for history in histories:
        padding = [""] * (longest - len(history))
        row = dialog.export_inputs({"history": history})
        for name, texts in inputs.items():
            texts.append(row[name][0] + padding)
    return inputs


OPENINGS = (
    "hello",
    "cheap chinese in the north",
    "vietnamese food in rome",
    "Good morning!",
    "can you book a table with italian food in paris",
    "i want a moderately priced restaurant in the west part of town",
    "is it open on sunday?",
    "for six please",
    "",
    "?!",
)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["entity-memma-task5", "entity-memma-task6"])
def test_a_published_model_answers_plain_openings_alike(name, tmp_path):
    run = Run.open(ROOT / "pretrained" / name)
    model = tf.saved_model.load(str(exporting.export(dialog, run, tmp_path / "model")))
    histories = [said_by_user(text) for text in OPENINGS]
    inputs = {name: tf.constant(rows) for name, rows in inputs_of(histories).items()}
    responses = [text.decode() for text in model.respond(**inputs)["response"].numpy()]
    answers = dialog.predictor(run).predict([{"history": history} for history in histories])
    assert responses == [answer["response"] for answer in answers]
    unknown = [text.decode() for text in model.respond(**inputs)["unknown"].numpy()]
    assert unknown == [", ".join(answer["unknown"]) for answer in answers]
    # Some openings get a response of the candidates, the others a remark.
    assert {bool(answer["best"]) for answer in answers} == {True, False}


@pytest.mark.slow
def test_a_bot_without_calls_is_exported(trained_dialog, tmp_path):
    predictor = dialog.predictor(trained_dialog)
    predictor.domain.__dict__["slot_values"] = {}  # as of candidates without calls
    predictor.domain.__dict__.pop("slot_values_text", None)
    dialog_archive(predictor).write_out(str(tmp_path / "model"), verbose=False)
    model = tf.saved_model.load(str(tmp_path / "model"))
    inputs = inputs_of([said_by_user("xyzzy")])
    answer = model.respond(**{name: tf.constant(rows) for name, rows in inputs.items()})
    assert answer["response"].numpy()[0] == b"i do not know: xyzzy."


# === Refusals ===


@pytest.fixture(scope="module")
def respond(trained_dialog, tmp_path_factory):
    path = exporting.export(dialog, trained_dialog, tmp_path_factory.mktemp("exported") / "model")
    signature = tf.saved_model.load(str(path)).signatures["respond"]
    return lambda **inputs: signature(**{n: tf.constant(v) for n, v in inputs.items()})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("history", "speakers", "message"),
    [
        ([["hello"]], [["cat"]], "speakers must be user, bot, fact"),
        ([["hello"]], [["user", "bot"]], "history and speakers must have one shape"),
        (["hello"], [["user"]], "history_must_have_shape_B_M"),
    ],
)
def test_what_is_wrong_is_said(respond, history, speakers, message):
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        respond(history=history, speakers=speakers)


@pytest.mark.slow
def test_bytes_that_are_no_utf_8_are_unknown_words(respond):
    speakers = [["fact", "user"]]
    hostile = respond(history=[[b"a \xff\xfe\xe2", b"hello \xff\xfe\xe2"]], speakers=speakers)
    unknown = respond(history=[[b"a xyzzy", b"hello xyzzy"]], speakers=speakers)
    np.testing.assert_array_equal(hostile["scores"], unknown["scores"])
    np.testing.assert_array_equal(hostile["best"], unknown["best"])
