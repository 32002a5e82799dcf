"""`tasks.dialog.predictor` on a small simulated corpus."""

import numpy as np
import pytest

from base.files import UserError
from engine.train import start
from tasks import TASKS
from tasks.dialog.scoring import predict

dialog = TASKS["dialog"]
USER = {"speaker": "user", "text": "hello"}


@pytest.fixture(scope="module")
def predictor(trained_dialog):
    return dialog.predictor(trained_dialog)


@pytest.mark.parametrize(
    ("text", "words", "unknown"),
    [
        ("Pancake, XYZZY!", ["pancake", "xyzzy"], ["xyzzy"]),
        (" \t", ["<SILENCE>"], []),
        ("?! hello", ["?!", "hello"], []),
        ("hello " * 1000, ["hello"] * 32, []),
    ],
)
def test_words_are_read_without_capitals_and_punctuation(predictor, text, words, unknown):
    assert {"pancake", "hello"} <= set(predictor.world.vocabulary.words) and predictor.config.max_words == 32
    assert predictor.read(text) == words and predictor.unknown(words) == unknown


@pytest.mark.parametrize("model", ["memma", "supervised-embeddings"])
def test_each_turn_is_answered_as_the_model_does_in_a_batch(trained_dialog, prepared_dialog, tmp_path, model):
    run = trained_dialog
    if model != "memma":
        run = start(dialog, model, prepared_dialog, tmp_path / "run", {"epochs": 0.3})
    dataset, predictor, histories = dialog.dataset_of(run), dialog.predictor(run), []
    split = dataset.splits["dev"]
    for each in split.dialogs:
        said = dataset.conversation(split, each)
        histories += [said[: turn + 1] for turn in each["turns"]]
    found = predictor.predict([{"history": said, "candidates": predictor.world.candidates} for said in histories])
    expected = predict(predictor.model, split)
    assert [each["response"] for each in found] == [predictor.world.candidates[number] for number in expected]
    assert bool(predictor.explain({"history": histories[-1]})["attention"]) == (model == "memma")


def test_a_batch_is_answered_as_each_instance_alone(predictor):
    said = [USER, {"speaker": "bot", "text": predictor.world.candidates[3]}]
    instances = [
        {"history": [USER]},
        {"history": [*said, {"speaker": "user", "text": "thai food please"}], "facts": ["prezzo R_cuisine thai"]},
        {"history": [{"speaker": "user", "text": ""}]},
        {"history": said},  # after the bot: silence
    ]
    together = predictor.predict(instances)
    for instance, found in zip(instances, together, strict=True):
        [alone] = predictor.predict([instance])
        assert alone["response"] == found["response"] == found["said"][0]["text"]
        scores = [each["score"] for each in found["best"]]
        np.testing.assert_allclose([each["score"] for each in alone["best"]], scores, rtol=1e-4)
        assert scores == sorted(scores, reverse=True) and sum(scores) <= 1
        expected = found["best"][0]["text"] if scores else predictor.world.puzzled
        assert found["response"] == expected
    rows = predictor.explain(instances[1])["attention"][0]["rows"]
    assert rows == ["user: hello", f"bot: {said[1]['text']}", "fact: prezzo R_cuisine thai"]
    assert predictor.explain(instances[0])["attention"] == [] and predictor.predict([]) == []


@pytest.mark.parametrize(
    ("instance", "message"),
    [
        ({"history": [USER], "candidates": ["no such"]}, "instance 0, candidates: .*'no such'"),
        ({"history": [{"speaker": "cat", "text": "mew"}]}, "instance 0.*speaker.*cat"),
    ],
)
def test_a_wrong_instance_is_refused(predictor, instance, message):
    with pytest.raises(UserError, match=message):
        predictor.predict([instance])
