"""The exported generation model replies as the predictor and evaluate.py do."""

import keras
import pytest
import tensorflow as tf
from helpers import refusal

from colloquy.data.vocabulary import EOS_ID, Vocabulary
from colloquy.engine import export as exporting
from colloquy.tasks import TASKS
from colloquy.tasks.generation.data import SourceConfig
from colloquy.tasks.generation.decoding_settings import parse_decoding
from colloquy.tasks.generation.export import GenerationText
from colloquy.tasks.generation.reader import encode_turns

generation = TASKS["generation"]


def text_of(words, tokenizer="words", turns=1):
    config = SourceConfig(tokenizer=tokenizer, lower=True, turns=turns)
    return GenerationText(Vocabulary.of(words), config)


def exported(run, out, decode):
    return tf.saved_model.load(str(exporting.export(generation, run, out / "model", decode=decode)))


def test_the_last_turns_that_are_not_empty_make_the_source():
    text = text_of(["a", "b", "c"], turns=2)  # 3, 4, 5
    turns = tf.constant([["a", "", "b", "c d"], ["", "a", "", ""], ["", "", "", ""]])
    source, said = text.source(turns, reply_length=3)
    source = source.numpy().tolist()
    assert source == [[4, 1, 5, 2, 1], [3, 1, 0, 0, 0], [1, 0, 0, 0, 0]]
    # Every second turn before the last, an empty one counted; none where there is a single turn.
    assert said.numpy().any(axis=2).tolist()[1:] == [[False] * 4] * 2
    assert said.numpy()[0].tolist() == [[3, 1, 0], [0, 0, 0], [4, 1, 0], [0, 0, 0]]
    # The search ends a reply of the longest length without `_EOS_`.
    source, said = text.source(tf.constant([["a b c", "a"]]), reply_length=3)
    assert said.numpy()[0].tolist() == [[3, 4, 5], [0, 0, 0]]
    source, said = text.source(tf.zeros([2, 0], tf.string), reply_length=3)
    assert source.numpy().tolist() == [[1], [1]] and said.shape == (2, 0, 3)


@pytest.mark.slow
def test_a_reply_is_not_given_again_while_there_is_another(
    trained_generation, generation_predictor, tmp_path, monkeypatch
):
    decode = "beam=3,max_length=7,min_length=1"
    model = exported(trained_generation, tmp_path, decode)
    monkeypatch.setattr(generation_predictor, "decoding", parse_decoding(decode))
    # The model reads the last turns alone, so its search finds the same replies in both.
    ending = ["so", "well", "hello"]
    [first] = generation_predictor.predict([{"turns": ending}])
    turns = ["hello", first["response"], *ending]
    [later] = generation_predictor.predict([{"turns": turns}])
    *others, last = [reply["text"] for reply in later["best"]]
    assert [last, *others] == [reply["text"] for reply in first["best"]]
    replies = model.reply(turns=tf.constant([turns]))["replies"][0].numpy()
    assert [text.decode() for text in replies] == [reply["text"] for reply in later["best"]]
    # An empty reply is counted: otherwise what the user said would be compared in its place.
    turns = ["hello", first["response"], "well", "", *ending]
    [with_empty] = generation_predictor.predict([{"turns": turns}])
    assert with_empty["best"] == later["best"]
    padded = tf.constant([[*turns, "", ""]])
    assert model.reply(turns=padded)["replies"][0].numpy().tolist() == replies.tolist()


def test_a_word_of_a_user_ends_no_turn(generation_predictor):
    turns = ["_EOS_ hello", "", "you"]
    predictor = generation_predictor
    ids = encode_turns(turns, predictor.source_config, predictor.vocabulary).source
    assert ids.count(EOS_ID) == 2
    assert generation_predictor.predict([]) == []


@pytest.mark.slow
def test_sampling_repeats_itself(trained_generation, tmp_path):
    model = exported(trained_generation, tmp_path, "sample=true,beam=5,temperature=2,max_length=7")
    turns = tf.constant([["hello"]])
    first = model.reply(turns=turns)["replies"].numpy().tolist()
    second = model.reply(turns=turns)["replies"].numpy().tolist()
    assert first == second and len(set(first[0])) > 1


def test_what_cannot_be_exported_is_refused(trained_generation, tmp_path):
    assert "jieba" in refusal(text_of, ["a"], "jieba")
    assert "no field 'beams'" in refusal(exported, trained_generation, tmp_path, "beams=3")
    assert not (tmp_path / "model" / "1").exists()


def test_recurrent_layers_inside_of_layers_are_exported_without_cudnn(trained_generation):
    """Keras has no public way to reach them: this is seen with 3.15."""
    assert keras.__version__.startswith("3.15.")
    model = trained_generation.load_model()
    recurrent = [layer for layer in model._flatten_layers() if hasattr(layer, "use_cudnn")]
    assert recurrent and all(layer.use_cudnn for layer in recurrent)
    exporting.disable_cudnn(model)
    assert not any(layer.use_cudnn for layer in recurrent)
