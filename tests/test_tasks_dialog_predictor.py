"""`tasks.dialog.predictor` and `chat`, on the excerpt of dialog bAbI."""

import types
from unittest.mock import Mock

import numpy as np
import pytest
from helpers import refusal

from colloquy.data.corpora.babi_dialog import Turn
from colloquy.tasks import TASKS
from colloquy.tasks.dialog.answers import NO_RESPONSE_FITS
from colloquy.tasks.dialog.chat import DialogChat
from colloquy.tasks.dialog.domain import Domain
from colloquy.tasks.dialog.scoring import predict

dialog = TASKS["dialog"]
HELLO = {"speaker": "user", "text": "hello"}


@pytest.fixture
def predictor(dialog_predictor):
    return dialog_predictor


@pytest.fixture
def chat(predictor):
    return DialogChat(predictor)


@pytest.mark.parametrize(
    ("text", "words", "unknown"),
    [
        ("Italian, XYZZY!", ["italian", "xyzzy"], ["xyzzy"]),
        (" \t", ["<SILENCE>"], []),
        ("?! hello", ["hello"], []),
        ("?!", ["<SILENCE>"], []),
        ("hello " * 1000, ["hello"] * 32, []),
        ("italian options", ["italian", "options"], ["options"]),  # a word of the bot
    ],
)
def test_words_are_read_without_capitals_and_punctuation(predictor, text, words, unknown):
    assert {"italian", "hello", "options"} <= set(predictor.domain.vocabulary.words)
    assert predictor.reader.split(text) == words
    assert predictor.reader.unknown(words) == unknown


def test_a_sentence_of_the_bot_that_is_no_candidate_is_left_out_with_its_question(predictor):
    said = [
        Turn("user", "hello"),
        Turn("bot", "i'm on it"),
        Turn("user", "cheap xyzzy"),
        Turn("bot", "i do not know: xyzzy"),
    ]
    read = predictor.reader.read([*said, Turn("user", "cheap")])
    assert read.turns == [*said[:2], Turn("user", "cheap")]
    assert predictor.reader.read(said).turns == [*said[:2], Turn("user", "<SILENCE>")]


def test_the_opening_of_the_training_dialogs_is_put_in(predictor, monkeypatch):
    opening = [Turn("user", "<SILENCE>"), Turn("bot", "i'm on it")]
    monkeypatch.setattr(predictor.reader, "opening", opening)
    rome = Turn("user", "rome")
    assert predictor.reader.read([rome]).turns == [*opening, rome]
    assert predictor.reader.read([Turn("user", "")]).turns == opening[:1]


@pytest.mark.parametrize(
    ("text", "remark", "reason"),
    [
        (
            "italian xyzzy in rome",
            "i do not know: xyzzy. i know cuisine: ",
            "users of the training dialogs never say xyzzy",
        ),
        ("italian in bombay", "nothing found for italian, bombay", NO_RESPONSE_FITS),
        ("hello", "i have no response to this. i know cuisine: ", NO_RESPONSE_FITS),
    ],
)
def test_a_remark_claims_nothing_and_is_not_good(predictor, monkeypatch, text, remark, reason):
    learnt = predictor.responder.mask

    def allow_nothing(inputs):
        allowed, wished = learnt.predict_on_batch(inputs)
        return np.zeros_like(allowed), wished

    mask = types.SimpleNamespace(predict_on_batch=allow_nothing)
    monkeypatch.setattr(predictor.responder, "mask", mask)
    [answer] = predictor.predict([{"history": [{"speaker": "user", "text": text}]}])
    assert answer["response"].startswith(remark)
    assert (answer["best"], answer["facts"]) == ([], [])
    assert (answer["good"], answer["reason"]) == (False, reason)
    assert [sentence["text"] for sentence in answer["said"]] == [answer["response"]]


def allow_all(predictor, monkeypatch):
    """Replaces the action mask by one that allows every candidate and waits after each."""
    candidates = len(predictor.domain.candidates)
    mask = types.SimpleNamespace(
        predict_on_batch=lambda inputs: (
            np.ones((len(inputs["turns"]), 1, candidates), bool),
            np.zeros((len(inputs["turns"]), 1, 1), bool),
        ),
        continues_C=np.zeros(candidates, bool),
    )
    monkeypatch.setattr(predictor.responder, "mask", mask)


def test_each_turn_is_answered_as_the_model_does_in_a_batch(trained_dialog, predictor, monkeypatch):
    allow_all(predictor, monkeypatch)
    dataset = dialog.dataset_of(trained_dialog)
    candidates = dataset.domain.candidates
    split = dataset.splits["dev"]
    instances = []
    for row in split.dialogs:
        conversation = dataset.conversation(split, row)
        for turn in row["turns"]:
            history = [turn._asdict() for turn in conversation[: turn + 1]]
            instances.append({"history": history})
    answers = predictor.predict(instances)
    num_best = 0
    for answer, number in zip(answers, predict(predictor.model, split), strict=True):
        assert ("good" in answer) == bool(answer["unknown"])
        if not answer["unknown"]:
            assert answer["response"] == candidates[number]
            num_best += 1
    assert num_best > 20


def test_memories_are_the_sentences_before_the_last_one(predictor):
    response = predictor.domain.candidates[3]
    fact = "prezzo R_cuisine thai"
    history = [HELLO, {"speaker": "bot", "text": response}, {"speaker": "fact", "text": fact}]
    explained = predictor.explain({"history": [*history, HELLO]})
    rows = ["user: hello", f"bot: {response}", f"fact: {fact}"]
    assert explained["attention"][0]["rows"] == rows
    read = [f"{sentence['speaker']}: {sentence['text']}" for sentence in explained["read"]]
    assert read == [*rows, "user: hello"]
    assert predictor.explain({"history": [HELLO]})["attention"] == []
    assert predictor.predict([]) == []


# === Conversations of users and assistants ===


def test_a_call_that_a_conversation_repeats_is_searched_once(predictor, monkeypatch):
    searched = Mock(return_value=["api_call no result"])
    monkeypatch.setattr("colloquy.tasks.dialog.domain.find_facts", searched)
    call = next(text for text in predictor.domain.candidates if text.startswith("api_call "))
    predictor.conversation([("user", "hi"), ("bot", "\n".join([call] * 9))])
    assert searched.call_count == 1


def test_wrong_instances_and_too_many_facts_are_refused(predictor, monkeypatch):
    monkeypatch.setattr("colloquy.tasks.dialog.reader.MAX_FACTS", 40)
    candidates = predictor.domain.candidates
    calls = [text for text in candidates if text.startswith("api_call")]
    message = "history: expected at most 40 facts. Received: "
    said = [("user", "hello"), ("bot", "\n".join(calls))]
    assert message in refusal(predictor.conversation, said)
    facts = [{"speaker": "fact", "text": "prezzo R_cuisine thai"}] * 41
    instance = {"history": [*facts, HELLO]}
    assert f"instance 0, {message}41" in refusal(predictor.predict, [instance])
    wrong = refusal(predictor.predict, [{"history": [{"speaker": "cat", "text": "mew"}]}])
    assert "instance 0" in wrong and "speaker" in wrong and "cat" in wrong


# === Chat ===


def prefer(chat, monkeypatch, *responses):
    """Lets the model prefer these candidates, one after the other, without a mask.

    Returns a list that gets the inputs of each call.
    """
    allow_all(chat.predictor, monkeypatch)
    remaining = [chat.predictor.domain.candidate_numbers[text] for text in responses]
    calls = []
    predict_on_batch = chat.predictor.with_attention.predict_on_batch

    def predict_preferred(inputs):
        calls.append(types.SimpleNamespace(**inputs))
        logits, *weights = predict_on_batch(inputs)
        logits = np.zeros_like(np.asarray(logits))
        logits[..., remaining.pop(0) if remaining else 0] = 1.0
        return [logits, *weights]

    monkeypatch.setattr(chat.predictor.with_attention, "predict_on_batch", predict_preferred)
    return calls


def candidate(chat, beginning):
    candidates = chat.predictor.domain.candidates
    return next(text for text in candidates if text.startswith(beginning))


def test_an_interrupted_answer_leaves_nothing_behind(chat, monkeypatch):
    def interrupt(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(chat.predictor, "predict", interrupt)
    with pytest.raises(KeyboardInterrupt):
        list(chat.reply("hello"))
    assert chat.said == []


def test_help_lists_values_and_phrases(chat):
    values, title, *phrases = chat.help().splitlines()
    assert values.startswith("i know cuisine: ")
    assert values.endswith("; price: cheap, expensive, moderate")
    assert title == "People say, for example:"
    assert phrases == chat.predictor.users.phrases


def test_a_call_brings_its_facts_into_memory(chat, monkeypatch):
    domain = chat.predictor.domain
    call = next(text for text in domain.candidates if len(domain.search(text)) > 1)
    facts = domain.search(call)
    response = candidate(chat, "you're welcome")
    calls = prefer(chat, monkeypatch, call, response)
    assert list(chat.reply("italian food")) == [call, f"[{len(facts)} facts]", response]
    expected = [("user", "italian food"), ("bot", call)]
    expected += [("fact", fact) for fact in facts]
    expected += [("user", ""), ("bot", response)]
    assert [(sentence["speaker"], sentence["text"]) for sentence in chat.said] == expected
    length = len(facts) + 3
    assert calls[1].speakers[0, :length].tolist() == [1, 2, *[3] * len(facts), 1]
    # The turn that asks is turn 0.
    assert calls[1].times[0, :length].tolist() == [-1] * (length - 1) + [0]


def test_a_call_that_finds_nothing_is_not_made_again(chat, monkeypatch):
    monkeypatch.setattr(Domain, "search", lambda domain, call: ["api_call no result"])
    call = candidate(chat, "api_call")
    prefer(chat, monkeypatch, *[call] * 20)
    # The second time it waits for the user.
    assert list(chat.reply("hello")) == [call, "[no result]", call]
    assert chat.said[-1]["speaker"] == "bot"


def test_attention_shows_the_memories(chat, monkeypatch):
    assert chat.explain() == "Say something first."
    responses = [text for text in chat.predictor.domain.candidates if "api_call" not in text][:7]
    prefer(chat, monkeypatch, *responses)
    for _ in responses:
        list(chat.reply("hello"))
    found = chat.explained(details=False)
    weights = np.array(found["attention"][0]["weights"])
    assert weights.shape == (12, 2)  # what was said before the last turn, hops
    np.testing.assert_allclose(weights.sum(axis=0), 1.0, atol=1e-5)
    title, *lines = chat.explain().splitlines()
    assert title == "memories"
    assert [line.split()[0] for line in lines] == ["user:", "bot:"] * 6
    assert chat.reset() and chat.said == []
