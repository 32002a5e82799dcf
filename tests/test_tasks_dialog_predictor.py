"""`tasks.dialog.predictor` and `chat`, on a small simulated corpus."""

import re
import types

import numpy as np
import pytest
from helpers import refusal

from colloquy.engine.chat import Note
from colloquy.engine.train import start
from colloquy.tasks import TASKS
from colloquy.tasks.dialog.chat import SHOWN, DialogChat
from colloquy.tasks.dialog.domain import Domain
from colloquy.tasks.dialog.scoring import predict

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
    assert {"pancake", "hello"} <= set(
        predictor.domain.vocabulary.words
    ) and predictor.config.max_words == 32
    assert predictor.read(text) == words and predictor.unknown(words) == unknown


@pytest.mark.parametrize("model", ["memma", "supervised-embeddings"])
def test_each_turn_is_answered_as_the_model_does_in_a_batch(
    trained_dialog, prepared_dialog, tmp_path, model
):
    run = trained_dialog
    if model != "memma":
        run = start(dialog, model, prepared_dialog, tmp_path / "run", {"epochs": 0.3})
    dataset, predictor, histories = dialog.dataset_of(run), dialog.predictor(run), []
    split = dataset.splits["dev"]
    for each in split.dialogs:
        said = dataset.conversation(split, each)
        histories += [said[: turn + 1] for turn in each["turns"]]
    found = predictor.predict(
        [{"history": said, "candidates": predictor.domain.candidates} for said in histories]
    )
    expected = predict(predictor.model, split)
    assert [each["response"] for each in found] == [
        predictor.domain.candidates[number] for number in expected
    ]
    assert bool(predictor.explain({"history": histories[-1]})["attention"]) == (model == "memma")


def test_memories_are_the_sentences_before_the_last_one_and_the_facts(predictor):
    said = [
        USER,
        {"speaker": "bot", "text": predictor.domain.candidates[3]},
        {"speaker": "user", "text": "thai please"},
    ]
    found = predictor.explain({"history": said, "facts": ["prezzo R_cuisine thai"]})
    assert found["attention"][0]["rows"] == [
        "user: hello",
        f"bot: {said[1]['text']}",
        "fact: prezzo R_cuisine thai",
    ]
    assert predictor.explain({"history": [USER]})["attention"] == [] and predictor.predict([]) == []


@pytest.mark.parametrize(
    ("instance", "message"),
    [
        ({"history": [USER], "candidates": ["no such"]}, "instance 0, candidates: .*'no such'"),
        ({"history": [{"speaker": "cat", "text": "mew"}]}, "instance 0.*speaker.*cat"),
    ],
)
def test_a_wrong_instance_is_refused(predictor, instance, message):
    assert re.search(message, refusal(predictor.predict, [instance]))


def test_a_call_that_is_no_candidate_finds_nothing(predictor):
    said = [("user", "hello"), ("bot", "api_call R_\napi_call pizza nowhere cheap"), ("user", "hi")]
    speakers = [sentence["speaker"] for sentence in predictor.conversation(said)["history"]]
    assert speakers == ["user", "bot", "user", "bot", "user"]


def test_facts_of_a_conversation_are_limited(predictor, monkeypatch):
    monkeypatch.setattr("colloquy.tasks.dialog.predictor.MAX_FACTS", 40)
    candidates = predictor.domain.candidates
    calls = [text for text in candidates if text.startswith("api_call")]
    bot = ("bot", "\n".join(calls))
    message = "history: expected at most 40 facts. Received: 4"
    assert message in refusal(predictor.conversation, [("user", "hello"), bot])
    facts = [{"speaker": "fact", "text": "prezzo R_cuisine thai"}] * 30
    instance = {"history": [*facts, USER], "facts": ["prezzo R_cuisine thai"] * 11}
    assert f"instance 0, {message}1" in refusal(predictor.predict, [instance])


# === Chat ===


@pytest.fixture
def chat(trained_dialog):
    return DialogChat(dialog.predictor(trained_dialog))


def says(chat, monkeypatch, *answers):
    """Lets the model prefer these candidates, one after the other, without a mask; returns the
    inputs that it gets.
    """
    monkeypatch.setattr(chat.predictor, "mask", None)
    left = [chat.predictor.domain.candidates.index(answer) for answer in answers]
    read, predict = [], chat.predictor.with_attention.predict_on_batch

    def preferring(inputs):
        read.append(types.SimpleNamespace(**inputs))
        logits, *weights = predict(inputs)
        logits = np.zeros_like(np.asarray(logits))
        logits[..., left.pop(0) if left else 0] = 1.0
        return [logits, *weights]

    monkeypatch.setattr(chat.predictor.with_attention, "predict_on_batch", preferring)
    return read


def test_unknown_words_are_named_and_nothing_is_understood_where_all_are(chat):
    note, answer, *_ = chat.reply("Xyzzy PANCAKE?")
    assert note.startswith("[Unknown words: xyzzy. /help") and isinstance(note, Note)
    assert answer in chat.predictor.domain.candidates
    assert chat.said[:2] == [
        {"speaker": "user", "text": "Xyzzy PANCAKE?"},
        {"speaker": "bot", "text": answer},
    ]
    note, answer = chat.reply("Xyzzy, frobnicate !")
    assert "words: xyzzy, frobnicate." in note
    assert "did not understand" in answer and "price: cheap, fancy, modest" in answer
    assert chat.reset() and chat.said == []


def test_an_empty_line_is_silence(chat, monkeypatch):
    other = next(
        text for text in chat.predictor.domain.candidates if text.startswith("you are welcome")
    )
    says(chat, monkeypatch, other)
    assert list(chat.reply("")) == [other]
    assert chat.said == [{"speaker": "user", "text": ""}, {"speaker": "bot", "text": other}]


def test_an_interrupted_answer_leaves_nothing_behind(chat, monkeypatch):
    def interrupt(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(chat.predictor, "predict", interrupt)
    with pytest.raises(KeyboardInterrupt):
        list(chat.reply("hello"))
    assert chat.said == []


def test_help_lists_values_and_phrases(chat):
    lines = chat.help().splitlines()
    values = {line.split()[0]: line[16:].split(", ") for line in lines[:3]}
    assert list(values) == ["cuisine", "location", "price"]
    assert values["price"] == ["cheap", "fancy", "modest"] and "pancake" in values["cuisine"]
    assert lines[3] == "People say, for example:" and lines[4:] == chat.predictor.phrases
    assert "that will do , thank you ." in lines


def test_a_call_brings_its_facts_into_memory(chat, monkeypatch):
    domain = chat.predictor.domain
    has = {
        relation: value
        for name, relation, value in domain.knowledge
        if name == domain.knowledge[0][0]
    }
    call = f"api_call {has['R_cuisine']} {has['R_location']} {has['R_price']}"
    other = next(text for text in domain.candidates if text.startswith("you are welcome"))
    read = says(chat, monkeypatch, call, other)
    facts = domain.search(call)
    said = f"a {has['R_price']} {has['R_cuisine']} place in {has['R_location']} ."
    assert list(chat.reply(said)) == [call, f"[{len(facts)} facts]", other]
    assert [sentence["text"] for sentence in chat.said] == [said, call, *facts, "", other]
    assert [sentence["speaker"] for sentence in chat.said] == [
        "user",
        "bot",
        *["fact"] * len(facts),
        "user",
        "bot",
    ]
    assert read[1].speakers[0, : len(facts) + 3].tolist() == [1, 2, *[3] * len(facts), 1]
    # turn 0 is the one that asks
    assert read[1].times[0, : len(facts) + 3].tolist() == [-1] * (len(facts) + 2) + [0]


def test_a_call_that_finds_nothing_is_not_made_again(chat, monkeypatch):
    monkeypatch.setattr(Domain, "search", lambda domain, call: ["api_call no result"])
    call = next(text for text in chat.predictor.domain.candidates if text.startswith("api_call"))
    says(chat, monkeypatch, *[call] * 20)
    # the second time it waits for the user
    assert list(chat.reply("hello")) == [call, "[no result]", call]
    assert chat.said[-1]["speaker"] == "bot"


def test_attention_shows_the_memories_with_the_largest_weights(chat, monkeypatch):
    assert chat.explain() == "Say something first."
    others = [text for text in chat.predictor.domain.candidates if not text.startswith("api_call")][
        :7
    ]
    says(chat, monkeypatch, *others, *others[-1:] * 3)
    for _ in others:
        list(chat.reply("hello"))
    found = chat.explained(details=False)
    weights = np.array(found["attention"][0]["weights"])
    assert weights.shape == (12, 2)  # what was said before the last turn, hops
    np.testing.assert_allclose(weights.sum(axis=0), 1.0, atol=1e-5)
    assert [each.get("group") for each in chat.explained(details=True)["attention"]] == [
        None,
        "heads",
        "heads",
    ]
    found["attention"][0]["weights"][3] = [0.75, 0.015]
    table = chat.explanation(found)
    assert [column.header for column in table.columns] == ["", "hop 1", "hop 2"]
    assert table.row_count == SHOWN and "8.33" in table.title
    assert "75.00" in list(table.columns[1].cells) and "1.50" in list(table.columns[2].cells)
    found["attention"][0]["weights"] = [[0.021, 0.02]] * 48 + [[0.0199, 0.0201]]
    assert "each of 49 memories has 1.99 to 2.10 per cent" in chat.explanation(found)
    chat.reset()
    assert chat.explain() == "Say something first."


def test_a_model_without_attention_says_so(chat):
    chat.predictor.model.attention_weights = []
    assert list(chat.reply("hello")) and chat.explain().startswith("This model has no attention")
