"""`tasks.selection.retrieval.build`: pairs, clean pairs, an index of a run; build_index."""

import math
import os

import pytest
from helpers import refusal

from colloquy.base.files import checksums_of
from colloquy.data.tokenizer_config import TokenizerConfig
from colloquy.tasks.selection.retrieval.build import (
    inverse_document_frequency,
    of_corpus,
    read_pairs,
)
from colloquy.tasks.selection.retrieval.clean import clean_pairs
from colloquy.tasks.selection.retrieval.index import RetrievalIndex
from colloquy.tasks.selection.retrieval.run_index import index_of_run

# === Pairs ===


def test_every_turn_but_the_first_is_paired_with_the_two_before_it_once():
    conversations = [["a", "b", "c"], ["a", "b "], [], ["d", "a", "b", "c"]]
    pairs, words_by_text = read_pairs(conversations, TokenizerConfig(tokenizer="terms", lower=True))
    assert [(pair["context"], pair["text"]) for pair in pairs] == [
        (["a"], "b"),
        (["a", "b"], "c"),
        (["d"], "a"),
        (["d", "a"], "b"),
    ]
    assert words_by_text == {text: [text] for text in "abcd"}


# === Clean pairs ===


@pytest.mark.parametrize(
    ("text", "is_kept"),
    [
        ("bob : try it now please", False),
        ("try it or try that with bob then", False),
        ("try it or try that with Cyd then", False),
        ("try zork", False),  # a word that the model does not know
        ("zork try it or try it", False),
        ("try it or try zork now please", True),
        ("", False),
        ("try it or try __url__", False),
        ("yes . . . it", False),  # nothing but common words
        ("yes , try it or die bitch !", False),
        ("! try", False),  # a command to a bot
        ("yes ! try it | pears", False),
        ("yes , try it", True),
        ("apples , pears , plums and it", True),
    ],
)
def test_a_pair_is_kept_if_its_response_can_answer_anybody(monkeypatch, text, is_kept):
    monkeypatch.setattr("colloquy.tasks.selection.retrieval.clean.MIN_TEXTS", 20)
    monkeypatch.setattr("colloquy.tasks.selection.retrieval.clean.COMMON_FRACTION", 0.3)
    monkeypatch.setattr("colloquy.tasks.selection.retrieval.clean.RARE_FRACTION", 0.1)
    others = ["bob , it", "it , bob", "Cyd , it"]
    for number in range(19):
        others.append(f"yes , it {number}")
        others.append(f"apples it {number}")
    words_by_text = {other: other.split() for other in [*others, text]}
    known_words = set("bob try it yes apples pears plums and or that with then now die Cyd".split())
    pair = {"text": text, "context": ["x"]}
    kept = clean_pairs([pair, pair], words_by_text, known_words)
    assert kept == [pair, pair] * is_kept


def test_inverse_document_frequencies_are_of_responses():
    idf = inverse_document_frequency([["a", "b"], ["a", "c"], ["a", "a"]], {"a", "b", "c", "d"})
    expected = {"a": 0.0, "b": math.log(2), "c": math.log(2), "d": math.log(4)}
    assert idf == pytest.approx(expected)


# === The index of a run ===


def test_a_run_with_pairs_gets_an_index_in_the_cache_once(
    run_with_pairs, selection_predictor, prepared, capsys
):
    before = checksums_of(run_with_pairs)
    built = index_of_run(run_with_pairs, selection_predictor)
    assert built.parent == run_with_pairs.parent / "cache" / "colloquy"
    assert checksums_of(run_with_pairs) == before
    assert capsys.readouterr().err == f"{built}: built once, of {run_with_pairs / 'pairs'}\n"

    index = RetrievalIndex(built, selection_predictor.vocabulary)
    assert index.size > 9
    conversations = of_corpus("smn", prepared.parent / "raw")
    turns = {turn for conversation in conversations for turn in conversation}
    assert {pair["text"] for pair in index.responses.corpus} <= turns

    assert index_of_run(run_with_pairs, selection_predictor) == built
    assert capsys.readouterr().out == ""
    with open(run_with_pairs / "pairs" / "train.txt", "a") as file:
        file.write("1\thow are you ?\tfine\n")
    assert index_of_run(run_with_pairs, selection_predictor) != built


def test_without_a_cache_an_index_is_among_the_users_temporary_files(
    trained_selection, run_with_pairs, selection_predictor, tmp_path, monkeypatch, capsys
):
    assert index_of_run(trained_selection.path, selection_predictor) is None
    with monkeypatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", "/proc")
        patch.setattr("tempfile.tempdir", str(tmp_path))
        built = index_of_run(run_with_pairs, selection_predictor)
        assert built.parent == tmp_path / f"colloquy-{os.getuid()}"
        assert built.parent.stat().st_mode & 0o777 == 0o700
        assert RetrievalIndex(built, selection_predictor.vocabulary).size > 9
        assert str(built) in capsys.readouterr().err
        assert index_of_run(run_with_pairs, selection_predictor) == built
        assert capsys.readouterr().err == ""

        (tmp_path / "colloquy-12345").mkdir()
        patch.setattr(os, "getuid", lambda: 12345)
        message = refusal(index_of_run, run_with_pairs, selection_predictor)
        assert "belongs to another user" in message
    (run_with_pairs / "pairs" / "train.txt").write_text("1\tno response\n")
    assert "train.txt, line 1" in refusal(index_of_run, run_with_pairs, selection_predictor)
    assert not (run_with_pairs.parent / "cache" / "colloquy").exists() or not list(
        (run_with_pairs.parent / "cache" / "colloquy").iterdir()
    )
