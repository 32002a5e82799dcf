"""The exported generation model and the chat: their sources are prepare.py's, their replies those of the run."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from base.files import UserError
from data.tokenizers import TOKENIZERS, normalize
from data.vocabulary import EOS_ID, Vocabulary
from engine import export as exporting
from engine.run import Run
from models.decoding import Decoding
from tasks import TASKS
from tasks.generation.chat import GenerationChat
from tasks.generation.export import GenerationText
from tasks.generation.predictor import GenerationPredictor
from tasks.generation.search import reply, words_of

generation = TASKS["generation"]
TEXTS = [
    "It's 3,000.5 -- isn\u2019t it ... \u201cwell\u201d?",
    "\uff28\uff49! \u4f60\u597d\uff0c\u4e16\u754c OK\u3002",
    "\ufb01ne \u2026 \u00a0 x\u200by \u1e9b",
    "",
    " \t ",
]


@pytest.fixture(scope="module")
def run(trained_generation):
    return trained_generation


@pytest.fixture(scope="module")
def path(run, tmp_path_factory):
    return exporting.export(
        generation, run, tmp_path_factory.mktemp("exported") / "model", decode="beam=3,max_length=7"
    )


@pytest.mark.parametrize("name", ["words", "mixed", "characters", "space"])
@pytest.mark.parametrize("text", TEXTS)
def test_tokens_are_those_of_prepare(name, text):
    tokens = TOKENIZERS[name].tokenize(normalize(text))
    vocabulary = Vocabulary.of(tokens)
    source = GenerationText(vocabulary, name, lower=True, turns=1).source(tf.constant([[text], ["x y z"]]))
    real = [id for id in source[0].numpy().tolist() if id]
    assert real == [*vocabulary.encode(tokens), EOS_ID]


def test_the_last_turns_that_are_not_empty_make_the_source():
    vocabulary = Vocabulary.of(["a", "b", "c"])  # 3, 4, 5
    text = GenerationText(vocabulary, "words", lower=True, turns=2)
    found = text.source(tf.constant([["a", "", "b", "c d"], ["", "a", "", ""], ["", "", "", ""]])).numpy()
    assert found.tolist() == [[4, 1, 5, 2, 1], [3, 1, 0, 0, 0], [1, 0, 0, 0, 0]]


def test_replies_are_those_of_the_run_whatever_stands_beside_them(run, path):
    model = tf.saved_model.load(str(path))
    dataset = generation.dataset_of(run)
    split, decoding = dataset.splits["dev"], Decoding(beam=3, max_length=7)
    ids, scores = reply(run.load_model(), split, np.arange(5), decoding)
    turns = [text.split("\t") for text in split.source_texts[:5]]
    most = max(map(len, turns))
    found = model.reply(turns=tf.constant([[""] * (most - len(each)) + each for each in turns]))
    tokenizer = TOKENIZERS[dataset.text.tokenizer]
    for row in range(5):
        alone = model.reply(turns=tf.constant([turns[row]]))
        for k in range(3):
            expected = tokenizer.detokenize(words_of(ids[row, k], dataset.vocabulary))
            assert found["replies"][row, k].numpy().decode() == alone["replies"][0, k].numpy().decode() == expected
        np.testing.assert_allclose(found["scores"][row], scores[row], rtol=1e-4)
        np.testing.assert_allclose(alone["scores"][0], scores[row], rtol=1e-4)


def test_the_predictor_answers_as_the_run_does(run):
    split, dataset = generation.dataset_of(run).splits["dev"], generation.dataset_of(run)
    ids, scores = reply(run.load_model(), split, np.arange(5), Decoding(beam=3, max_length=7))
    predictor = GenerationPredictor(run, Decoding(beam=3, max_length=7))
    instances = [{"turns": text.split("\t")} for text in split.source_texts[:5]]
    for row, found in enumerate(predictor.predict(instances)):
        texts = [predictor.tokenizer.detokenize(words_of(each, dataset.vocabulary)) for each in ids[row]]
        assert [each["text"] for each in found["best"]] == texts and found["response"] == texts[0]
        np.testing.assert_allclose([each["score"] for each in found["best"]], scores[row], rtol=1e-4)
    assert predictor.source(["_EOS_ hello", "", "you"])[1].count(EOS_ID) == 2  # what a user writes ends no turn
    assert predictor.predict([]) == []


def test_an_empty_text_gets_a_reply(path):
    model = tf.saved_model.load(str(path))
    found = model.reply(turns=tf.constant([[""], [" "]]))
    assert found["replies"].shape == (2, 3) and np.isfinite(found["scores"]).all()
    np.testing.assert_allclose(found["scores"][0], found["scores"][1])


def test_sampling_repeats_itself(run, tmp_path):
    path = exporting.export(generation, run, tmp_path / "model", decode="sample=true,beam=5,temperature=2,max_length=7")
    model = tf.saved_model.load(str(path))
    first, second = (model.reply(turns=tf.constant([["hello"]]))["replies"].numpy().tolist() for _ in range(2))
    assert first == second and len(set(first[0])) > 1


def test_jieba_cannot_be_exported():
    with pytest.raises(UserError, match="jieba needs a package that no graph holds"):
        GenerationText(Vocabulary.of(["a"]), "jieba", lower=True, turns=1)


def test_only_models_that_write_are_told_how(run, tmp_path):
    with pytest.raises(UserError, match="has no field 'beams'"):
        exporting.export(generation, run, tmp_path / "model", decode="beams=3")
    assert not (tmp_path / "model" / "1").exists()


# === Chat ===


@pytest.fixture
def chat(run):
    return GenerationChat(generation.predictor(Run.open(run.path)))


def test_a_chat_answers_as_the_run_does_and_remembers(chat, run):
    dataset = generation.dataset_of(run)
    split = dataset.splits["dev"]
    row = next(i for i, text in enumerate(split.source_texts) if "\t" not in text)
    ids, _ = reply(run.load_model(), split, [row], Decoding())
    expected = chat.predictor.tokenizer.detokenize(words_of(ids[0, 0], dataset.vocabulary))
    [texts] = chat.reply(split.source_texts[row].upper())
    assert list(texts)[-1] == expected
    assert len(chat.said) == 2
    assert chat.commands["/reset"]("") == "forgotten" and chat.said == []


WORDY = Decoding(min_length=4, max_length=7, block_ngrams=2)


def test_a_reply_is_written_word_by_word(chat):
    chat.predictor.decode_by(WORDY)
    [texts] = chat.reply("hello")
    texts = list(texts)
    again = chat.predictor.explain({"turns": ["hello"]})
    assert texts[-1] == again["response"] == chat.said[1] and len(texts) > 2
    assert texts[1] != texts[-1] and len(texts) > 4
    assert chat.last["attention"][0]["rows"] == again["attention"][0]["rows"]
    np.testing.assert_allclose(
        chat.last["attention"][0]["weights"], again["attention"][0]["weights"], rtol=1e-4, atol=1e-6
    )


def test_drawn_replies_are_written_as_they_are_drawn_at_once(run):
    decoding = Decoding(sample=True, top_k=5, min_length=4, block_ngrams=2, max_length=7)
    one, other = (generation.predictor(Run.open(run.path)) for _ in range(2))
    one.decode_by(decoding), other.decode_by(decoding)
    for text in ("hello", "i like tea ."):
        *_, written = one.write([text])
        assert written["response"] == other.predict([{"turns": [text]}])[0]["response"]


def test_what_is_written_when_a_reply_is_stopped_is_remembered(chat):
    chat.predictor.decode_by(WORDY)
    [texts] = chat.reply("hello")
    next(texts)
    second = next(texts)
    texts.close()
    assert chat.said == ["hello", second]


def test_an_empty_line_gets_no_reply(chat):
    assert list(chat.reply("")) == [] and chat.said == []


def test_the_chat_says_what_the_model_reads(chat):
    assert chat.HELP.startswith("The model reads the last 2 turns, its own replies among them.")
    chat.predictor.turns = 1
    assert GenerationChat(chat.predictor).HELP.startswith("The model reads what you said last, and nothing before.")


def test_commands_change_how_replies_are_found(chat):
    assert chat.commands["/beam"]("3") == "beam of 3"
    reply, note = chat.reply("hello")
    first, *lines = note.split("\n")
    assert first == "log probability by the length penalty, and reply:" and len(lines) == 3
    assert lines[0][10:] == reply and float(lines[0][:8]) <= 0
    assert chat.commands["/beam"]("1") == "greedy search" and len(list(chat.reply("hello"))) == 1
    assert chat.commands["/sample"]("0.7") == "sampling at temperature 0.7" and len(list(chat.reply("hello"))) == 1
    assert chat.predictor.decoding == Decoding(sample=True, temperature=0.7)
    for command, argument in (("/beam", "x"), ("/beam", "0"), ("/sample", "0"), ("/sample", "warm")):
        assert f"Received: {argument}" in chat.commands[command](argument)


def test_attention_is_shown(chat, tmp_path):
    assert chat.commands["/attention"]("") == "Say something first."
    for texts in chat.reply("hello you"):
        list(texts)
    [shown] = chat.last["attention"]
    weights = np.array(shown["weights"])
    assert weights.shape == (len(shown["rows"]), len(shown["columns"])) and shown["columns"][-1] == "_EOS_"
    np.testing.assert_allclose(weights.sum(axis=1), 1, rtol=1e-5)
    lines = chat.commands["/attention"]("").plain.splitlines()
    assert lines[0].split()[-1] == "_EOS_" and len(lines) == 1 + len(weights)
    picture = tmp_path / "a.png"
    assert chat.commands["/attention"](str(picture)) == f"{picture} written"
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert "Received: a.txt" in chat.commands["/attention"]("a.txt")


def test_recurrent_layers_inside_of_layers_are_exported_without_cudnn(run):
    """Keras has no public way to reach them: this is seen with 3.15."""
    assert keras.__version__.startswith("3.15.")
    model = run.load_model()
    recurrent = [layer for layer in model._flatten_layers() if hasattr(layer, "use_cudnn")]
    assert recurrent and all(layer.use_cudnn for layer in recurrent)
    exporting.without_cudnn(model)
    assert not any(layer.use_cudnn for layer in recurrent)
