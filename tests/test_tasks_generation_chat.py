"""`tasks.generation.chat`: replies word by word, beams, and what the commands say."""

import numpy as np
import pytest

from models.decoding import Decoding
from tasks import TASKS
from tasks.generation.chat import GenerationChat

generation = TASKS["generation"]
WORDY = Decoding(min_length=4, max_length=7, block_ngrams=2)


@pytest.fixture
def chat(trained_generation):
    return GenerationChat(generation.predictor(trained_generation))


def test_a_reply_is_written_word_by_word_and_remembered(chat):
    chat.predictor.decoding = WORDY
    assert chat.HELP.startswith("The model reads the last 2 turns, its own replies among them.")
    [texts] = chat.reply("Hello")
    texts = list(texts)
    again = chat.predictor.explain({"turns": ["hello"]})
    assert texts[-1] == again["response"] == chat.said[1] and len(texts) > 4
    assert texts[1] != texts[-1]
    [shown], [expected] = chat.last["attention"], again["attention"]
    assert shown["rows"] == expected["rows"]
    np.testing.assert_allclose(shown["weights"], expected["weights"], rtol=1e-4, atol=1e-6)
    assert chat.reset() == "A new conversation." and chat.said == []
    assert list(chat.reply("\u200b")) == [] and chat.said == []
    [texts] = chat.reply("hello")
    next(texts)
    second = next(texts)
    texts.close()  # it was stopped
    assert chat.said == ["hello", second]
    chat.predictor.text = chat.predictor.text.replace(turns=1)
    assert GenerationChat(chat.predictor).HELP.startswith("The model reads what you said last, and nothing before.")


def test_drawn_replies_are_written_as_they_are_drawn_at_once(trained_generation):
    one, other = (generation.predictor(trained_generation) for _ in range(2))
    one.decoding = other.decoding = WORDY.replace(sample=True, top_k=5)
    for text in ("hello", "i like tea ."):
        *_, written = one.write(one.Instance(turns=[text]))
        assert written["response"] == other.predict([{"turns": [text]}])[0]["response"]


def test_commands_change_how_replies_are_found(chat):
    assert chat.commands["/beam"]("3") == "beam of 3"
    said, note = chat.reply("hello")
    first, *lines = note.split("\n")
    assert first == "log probability by the length penalty, and reply:" and len(lines) == 3
    assert lines[0][10:] == said and float(lines[0][:8]) <= 0
    assert chat.commands["/beam"]("1") == "greedy search" and len(list(chat.reply("hello"))) == 1
    assert chat.commands["/sample"]("0.7") == "sampling at temperature 0.7" and len(list(chat.reply("hello"))) == 1
    assert chat.predictor.decoding == Decoding(sample=True, temperature=0.7)
    for command, argument in (("/beam", "x"), ("/beam", "0"), ("/sample", "0.001"), ("/sample", "warm")):
        assert f" to 100. Received: {argument}" in chat.commands[command](argument)
    assert "/reverse" not in chat.commands


def test_attention_is_shown(chat):
    assert chat.explain() == "Say something first."
    for texts in chat.reply("hello you"):
        list(texts)
    lines = chat.explain().plain.splitlines()
    assert lines[0].split()[-1] == "_EOS_" and len(lines) == 1 + len(chat.last["attention"][0]["rows"])
