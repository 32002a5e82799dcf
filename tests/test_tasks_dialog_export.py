"""The exported dialog model: it reads sentences as the predictor does, and its answers are those of
the run.
"""

import types

import numpy as np
import pytest
import tensorflow as tf
from exported import answers_to_a_client
from helpers import copy_of, ran

from colloquy.data.text_files import write_json
from colloquy.data.vocabulary import Vocabulary
from colloquy.engine import export as exporting
from colloquy.engine.run import EXAMPLES
from colloquy.engine.train import start
from colloquy.serving.models import open_model
from colloquy.tasks import TASKS
from colloquy.tasks.dialog.data import Domain
from colloquy.tasks.dialog.export import DialogText
from colloquy.tasks.dialog.predictor import DialogPredictor

dialog = TASKS["dialog"]
FACTS = ["red_lamp R_cuisine pizza", "red_lamp R_location pellwick"]
WORDS = (
    "_EOS_",
    "_UNK_",
    "<SILENCE>",
    "Hello",
    "hello",
    "red",
    "lamp",
    "red_lamp",
    "in",
    "west",
    "west_end",
    "!",
)
ENTITIES = [
    *((f"w{n}", "location", "knowledge") for n in range(9)),  # an open type
    *(
        ("west", "location", "knowledge"),
        ("west_end_pier", "location", "knowledge"),
        ("west_end", "location", "calls"),
    ),
    *(
        ("cheap", "price", "knowledge"),
        ("red_lamp", "restaurant", "subjects"),
        ("lamp", "dish", "knowledge"),
    ),
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


def test_the_model_that_export_loaded_and_freed_of_cudnn_is_exported(trained_dialog, monkeypatch):
    model = trained_dialog.load_model()
    monkeypatch.setattr("colloquy.engine.run.Run.load_model", None)  # a second one cannot be loaded
    predictor = DialogPredictor(trained_dialog, model)
    # nothing is compiled
    assert predictor.model is model and predictor.with_attention.predict_function is None
    assert (
        "respond"
        in dialog.export_archive(trained_dialog, model, trained_dialog.vocabulary)._endpoint_names
    )


@pytest.mark.parametrize("max_words", [5, 11])
def test_sentences_become_what_the_predictor_makes_of_them(max_words):
    domain = Domain(Vocabulary(WORDS), ["hello"], [], ENTITIES)
    text, reader = DialogText(domain, max_words), object.__new__(DialogPredictor)  # without a run
    reader.config, reader._known = types.SimpleNamespace(max_words=max_words), set(WORDS[2:])
    for of_user in (True, False):
        words = text.split(tf.constant(SENTENCES), tf.fill((len(SENTENCES),), of_user))
        expected = [
            reader.read(each) if of_user else each.split()[:max_words] for each in SENTENCES
        ]
        assert [[word.decode() for word in row if word] for row in words.numpy()] == expected
        ids, typed, entities = (part.numpy() for part in text.encode(words))
        encoded = domain.encode(expected)
        for found, plain in ((ids, encoded.words), (typed, encoded.typed_words)):
            np.testing.assert_array_equal(found, plain.padded(range(len(SENTENCES)), max_words))
        assert [set(row) - {0} for row in entities] == [
            set(row) for row in encoded.entities.lists()
        ]


# === Models ===


def instances_of(run):
    """The conversations of dev in front of each answer, and some that people may write."""
    dataset, domain, found = dialog.dataset_of(run), Domain.load(run.path), []
    split = dataset.splits["dev"]
    for each in split.dialogs[:3]:
        said = dataset.conversation(split, each)
        found += [{"history": said[: turn + 1]} for turn in each["turns"]]
    said = [
        {"speaker": "user", "text": "Hello, XYZZY!"},
        {"speaker": "bot", "text": domain.candidates[5]},
    ]
    pizza = {"speaker": "user", "text": "a  Pizza place in Pellwick, please, cheap."}
    call = next(text for text in domain.candidates if text.startswith("api_call pizza pellwick"))
    called = [pizza, {"speaker": "bot", "text": call}]
    found += [
        # after the bot: silence
        {"history": said, "facts": [" ".join(fact) for fact in domain.knowledge[:3]]},
        {
            "history": [*said, {"speaker": "user", "text": "a  Pizza place, please."}],
            "facts": FACTS,
        },
        # the mask allows an offer only if the facts come after
        {"history": called, "facts": domain.search(call)},
        {"history": [*called, {"speaker": "user", "text": ""}], "facts": domain.search(call)},
        {
            "history": [
                pizza,
                {"speaker": "bot", "text": domain.fallback_response},
                {"speaker": "user", "text": "cheap !"},
            ]
        },
        {"history": [{"speaker": "user", "text": "XYZZY !"}]},
        {"history": [pizza], "facts": [""]},  # an empty fact counts as none
        {"history": [{"speaker": "user", "text": ""}], "candidates": domain.candidates[7:10]},
    ]
    return found


def arrays_of(run):
    """The same as the arrays of the endpoint, filled up with ""."""
    rows = [dialog.export_inputs(instance) for instance in instances_of(run)]
    arrays = {}
    for name in rows[0]:
        width = max(len(row[name][0]) for row in rows)
        arrays[name] = np.array(
            [row[name][0] + [""] * (width - len(row[name][0])) for row in rows], object
        )
    return arrays


def compare(run, answer):
    """The predictor's answers beside those of the export."""
    instances, predictor = instances_of(run), dialog.predictor(run)
    for row, found in enumerate(predictor.predict(instances)):
        assert answer["response"][row].decode() == found["response"]
        for name in ("facts", "unknown"):
            assert [text.decode() for text in answer[name][row] if text] == found[name]
        assert answer["continues"][row] == (len(found["said"]) > 1)
        texts = [text.decode() for text in answer["best"][row]]
        assert texts == [each["text"] for each in found["best"]] + [""] * (5 - len(found["best"]))
        scores = [each["score"] for each in found["best"]]
        np.testing.assert_allclose(
            answer["scores"][row], scores + [0.0] * (5 - len(scores)), rtol=1e-3, atol=1e-6
        )
    waits = np.flatnonzero(~answer["continues"]).tolist()  # else explain shows a later response
    for row in {*waits[:3], *waits[-4:]}:
        shown = predictor.explain(instances[row])["attention"]
        said, facts = instances[row]["history"], instances[row].get("facts", [])
        before = len(said) - (said[-1]["speaker"] == "user")
        parts = (
            answer["history_attention"][row, :, :before],
            answer["facts_attention"][row, :, : len(facts)],
        )
        if shown:
            found = np.concatenate(parts, axis=1).T
            # without what the bot did not understand; the map also has an opening
            found = found[found.any(axis=1)]
            weights = np.array(shown[0]["weights"])
            weights = weights[len(weights) - len(found) :]
            np.testing.assert_allclose(found, weights, rtol=1e-3, atol=1e-6)
        elif before + len(facts):
            assert answer["history_attention"].shape[1] == 0
        assert not answer["history_attention"][row, :, before:].any()


def test_an_exported_run_answers_as_it_does_in_a_process_without_this_project(
    trained_dialog, tmp_path
):
    done = ran("export.py", f"--run={trained_dialog.path}", f"--out={tmp_path}/model")
    calls = {
        name: ("model", name, arrays_of(trained_dialog)) for name in ("respond", "serving_default")
    }
    answers = answers_to_a_client(tmp_path, {"model": f"{tmp_path}/model/1"}, calls, done.stdout)
    compare(trained_dialog, answers["respond"])
    open_model("bot", tmp_path / "model").warm_up()  # with empty texts
    np.testing.assert_array_equal(
        answers["serving_default"]["scores"], answers["respond"]["scores"]
    )
    [first, *_] = trained_dialog.examples()
    found = dialog.predictor(trained_dialog).predict([first["instance"]])
    assert answers["example"]["response"][0].decode() == found[0]["response"]


def compare_export(run, path):
    """Exports a run and compares its answers; returns the exported model."""
    model = tf.saved_model.load(str(exporting.export(dialog, run, path)))
    inputs = {name: tf.constant(texts, tf.string) for name, texts in arrays_of(run).items()}
    compare(run, {name: value.numpy() for name, value in model.respond(**inputs).items()})
    return model


@pytest.mark.slow
@pytest.mark.parametrize("name", ["entity-memma", "supervised-embeddings"])
def test_models_with_entities_and_without_attention_too(name, prepared_dialog, tmp_path):
    own = {"hops": 2, "heads": 2, "dialog_state": True} if name == "entity-memma" else {}
    settings = {"embedding_dim": 8, "epochs": 1.0, **own}
    compare_export(
        start(dialog, name, prepared_dialog, tmp_path / "run", settings), tmp_path / "model"
    )


def test_a_bot_that_always_spoke_first_is_asked_as_if_it_had(
    trained_dialog, tmp_path_factory, tmp_path
):
    run = copy_of(trained_dialog, tmp_path_factory)
    # it allows no greeting after silence, which the sample lacks
    (run.path / "action_mask.json").unlink()
    first = {"speaker": "user", "text": "<SILENCE>"}
    write_json(run.path / EXAMPLES, [{"title": "dev, dialog 1", "instance": {"history": [first]}}])
    assert dialog.predictor(run).opening
    model = compare_export(run, tmp_path / "model")
    nothing = model.respond(**{name: tf.zeros([2, 0], tf.string) for name in arrays_of(run)})
    assert nothing["response"].shape == (2,) and nothing["history_attention"].shape == (2, 2, 0)


# === Refusals ===


@pytest.fixture(scope="module")
def model(trained_dialog, tmp_path_factory):
    path = exporting.export(dialog, trained_dialog, tmp_path_factory.mktemp("exported") / "model")
    return tf.saved_model.load(str(path)).signatures["respond"]


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
    inputs = {
        "history": [["hello"]],
        "speakers": [["user"]],
        "facts": [[""]],
        "candidates": [[""]],
        **changed,
    }
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        model(**{name: tf.constant(value) for name, value in inputs.items()})


def test_bytes_that_are_no_utf_8_are_unknown_words(model):
    def ask(word):
        inputs = {
            "history": b"hello " + word,
            "speakers": "user",
            "facts": b"a " + word,
            "candidates": "",
        }
        return model(**{name: tf.constant([[text]]) for name, text in inputs.items()})

    hostile, unknown = ask(b"\xff\xfe\xe2"), ask(b"xyzzy")
    np.testing.assert_array_equal(hostile["scores"], unknown["scores"])
    np.testing.assert_array_equal(hostile["best"], unknown["best"])
