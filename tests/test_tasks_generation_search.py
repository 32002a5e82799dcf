"""`tasks.generation.search`: replies, how they are asked for, and how a reverse model reranks them."""

import dataclasses
import json

import numpy as np
import pytest
from helpers import copy_of, randomised, run_script, to_numpy
from reference_recurrent import nll_in_loops

from base.files import UserError
from data.vocabulary import Vocabulary
from engine.run import Run
from models.decoding import Decoding
from tasks import TASKS
from tasks.generation.chat import GenerationChat
from tasks.generation.search import parse_decoding, reply, rerank, search_of, words_of

generation = TASKS["generation"]


@pytest.fixture(scope="module")
def run(trained_generation, tmp_path_factory):
    """A copy, into which evaluate.py may write."""
    return copy_of(trained_generation, tmp_path_factory)


# === Search ===


@pytest.mark.parametrize("settings", [{}, {"beam": 3, "sample": True, "temperature": 2.0}], ids=str)
def test_replies_are_the_same_in_any_batch(generation_dataset, generation_model, settings):
    split, decoding = generation_dataset.splits["dev"], Decoding(max_length=5, **settings)
    rows = np.array([7, 0, 20, 11, 4])
    ids, scores = reply(generation_model, split, rows, decoding)
    assert ids.shape == (5, decoding.beam, 5) and scores.shape == (5, decoding.beam)
    assert (ids[:, :, 0] > 0).all()
    again, ranked = reply(generation_model, split, rows, decoding, batch_size=2)
    np.testing.assert_array_equal(again, ids)
    np.testing.assert_allclose(ranked, scores, atol=1e-4)
    other, _ = reply(generation_model, split, rows, decoding, seed=2)
    assert (other != ids).any() == decoding.sample


def test_words_of_leaves_out_what_is_no_word(generation_dataset):
    ids = generation_dataset.vocabulary.encode(["hello", "ann", "nobody"])
    assert words_of(np.array([*ids, 1, 0, 0]), generation_dataset.vocabulary) == ["hello", "ann", "_UNK_"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, Decoding()),
        ("", Decoding()),
        ("beam=3", Decoding(beam=3)),
        ("sample=true, beam=2,top_p=0.9,", Decoding(sample=True, beam=2, top_p=0.9)),
    ],
)
def test_parse_decoding(text, expected):
    assert parse_decoding(text) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("beam", r"^--decode expects field=value,\.\.\. Received: 'beam'$"),
        ("beam=3,width=5", r"^Decoding has no field 'width'; it has beam, sample, "),
        ("beam=3.5", r"^beam: .* integer.*Received: 3\.5$"),
        ("beam=", r"^beam: .* integer.*Received: $"),
        ("sample=1", r"^sample: .* boolean.*Received: 1$"),
        ("top_p=2", r"^top_p: .*less than or equal to 1.*Received: 2$"),
    ],
)
def test_parse_decoding_rejects(text, message):
    with pytest.raises(UserError, match=message):
        parse_decoding(text)


# === Reranking ===


@pytest.fixture(scope="module")
def reverse_run(generation_dataset, generation_model, run, tmp_path_factory):
    """The directory of a run whose model reads replies and writes sources, with random weights."""
    path = tmp_path_factory.mktemp("reverse") / "run"
    _create(path, run, generation_dataset, generation_model.config.replace(reverse=True), seed=2)
    return path


def _create(path, run, generation_dataset, config, seed):
    """A run like another, with random weights."""
    made = Run.create(path, {**run.record, "config": config.to_json()}, generation_dataset.vocabulary)
    made.save_best(randomised(made.build_model(), seed, 0.7))
    return made


@pytest.mark.parametrize("weight", (0.0, 0.3, 1.0))
def test_rerank_matches_loops(generation_dataset, generation_model, reverse_run, weight):
    split, rows = generation_dataset.splits["dev"], np.array([7, 1])
    reverse = Run.open(reverse_run).load_model()
    ids, scores = reply(generation_model, split, rows, Decoding(beam=3, max_length=5))
    sources = [split.source.lists()[row] for row in rows]
    found, ranked = rerank(reverse, sources, ids, scores, weight)
    for row, of_source, forward, after, values in zip(rows, ids, scores, found, ranked, strict=True):
        source = split.source.lists()[row]
        totals = []
        for words, score in zip(of_source, forward, strict=True):
            read = [word for word in words.tolist() if word > 1] + [1]
            inputs = {"source": np.array([read], "int32"), "target_in": np.array([[split.bos, *source[:-1]]], "int32")}
            logits = to_numpy(reverse(inputs))[0]
            nll = sum(nll_in_loops(word, place) for word, place in zip(source, logits, strict=True))
            totals.append((1 - weight) * score - weight * nll)
        order = np.argsort(totals)[::-1]
        np.testing.assert_array_equal(after, of_source[order])
        np.testing.assert_allclose(values, np.array(totals)[order], rtol=1e-4)
    assert (found != ids).any() == (weight > 0)


def test_measure_takes_the_reply_that_a_reverse_model_chooses(
    generation_dataset, generation_model, reverse_run, run, tmp_path
):
    split, decode = generation_dataset.splits["dev"], "beam=3,max_length=5"
    given = {"baselines": False, "decode": decode, "scores_out": tmp_path / "replies", "reverse_run": reverse_run}
    record = generation.measure(generation_model, generation_dataset, "dev", None, **given, reverse_weight=0.7)
    replies = [line.split("\t")[2] for line in (tmp_path / "replies").read_text(encoding="utf-8").splitlines()]
    ids, scores = reply(generation_model, split, range(21), Decoding(beam=3, max_length=5))
    reverse = Run.open(reverse_run).load_model()
    chosen, _ = rerank(reverse, split.source.lists(), ids, scores, 0.7)
    assert replies == [" ".join(words_of(row[0], generation_dataset.vocabulary)) for row in chosen]
    assert replies != [" ".join(words_of(row[0], generation_dataset.vocabulary)) for row in ids]
    assert record["decoding"]["reverse_weight"] == 0.7
    assert generation.describe(record)[0].endswith("; beam of 3, reranked")
    with pytest.raises(UserError, match=r"expected a run trained with --set reverse=true\. Received: seq2seq$"):
        generation.measure(generation_model, generation_dataset, "dev", None, reverse_run=run.path)


def test_a_chat_says_the_reply_that_a_reverse_model_chooses(
    generation_dataset, generation_model, reverse_run, run, tmp_path
):
    run = _create(tmp_path / "run", run, generation_dataset, generation_model.config, seed=1)
    decoding = Decoding(beam=3, min_length=2, max_length=5)
    chat = GenerationChat(generation.predictor(run), reverse_run, reverse_weight=0.7)
    assert chat.predictor.decoding == Decoding(beam=10) and "/reverse W" in chat.HELP
    chat.predictor.decode_by(decoding)
    split, forward, reverse = generation_dataset.splits["dev"], run.load_model(), Run.open(reverse_run).load_model()
    rows = [i for i, text in enumerate(split.source_texts) if "\t" not in text]
    ids, scores = reply(forward, split, rows, decoding)

    def answers():
        for row in rows:
            said, note = chat.reply(split.source_texts[row])
            yield said
            assert float(note.split("\n")[1].split()[0]) > -99
            chat.reset()
        assert f"log probability, times {1 - weight:g}, plus the reverse model's, times {weight:g}, and reply:" in note

    for weight in (1.0, 0.0):
        assert chat.commands["/reverse"](str(weight)) == f"the reverse model counts {weight:g}"
        expected, _ = rerank(reverse, [split.source.lists()[row] for row in rows], ids, scores, weight)
        texts = [
            chat.predictor.tokenizer.detokenize(words_of(best, generation_dataset.vocabulary))
            for best in expected[:, 0]
        ]
        assert list(answers()) == texts
        assert (expected[:, 0] != ids[:, 0]).any() == (weight > 0)
    assert chat.sample("0.7") and chat.predictor.decoding == Decoding(sample=True, temperature=0.7, beam=10)
    for wrong in ("2", "-1", "x", "nan", ""):
        assert chat.reverse(wrong) == f"/reverse expects a number from 0 to 1. Received: {wrong}"
    assert "/reverse" not in GenerationChat(generation.predictor(run)).commands


def test_answers_to_a_file_are_searched_for_as_asked(generation_dataset, generation_model, reverse_run, run, tmp_path):
    run = _create(tmp_path / "run", run, generation_dataset, generation_model.config, seed=1)
    lines = [{"turns": ["i am dee ."]}, {"turns": ["hello", "i like tea ."]}]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    flags = [f"--reverse_run={reverse_run}", "--reverse_weight=1", "--decode=beam=3,min_length=2,max_length=5"]
    given = f"--run={run.path}", f"--predict={tmp_path}/in.jsonl", f"--out={tmp_path}/out.jsonl"
    done = run_script("evaluate.py", *given, *flags)
    assert done.returncode == 0, done.stderr
    predictor = generation.predictor(run)
    predictor.decode_by(Decoding(beam=3, min_length=2, max_length=5))
    forward = predictor.predict(lines)
    predictor.rerank_by(reverse_run, 1.0)
    predictor.decode_by(Decoding(beam=3, min_length=2, max_length=5))
    expected = predictor.predict(lines)
    found = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [answer["response"] for answer in found] == [answer["response"] for answer in expected]
    assert [answer["response"] for answer in found] != [answer["response"] for answer in forward]


def test_a_reverse_model_of_other_words_is_refused(generation_dataset, reverse_run, run, tmp_path):
    other = Run.create(tmp_path / "run", Run.open(reverse_run).record, Vocabulary.of(["other", "words"]))
    with pytest.raises(UserError, match="expected the words of the model that writes the replies"):
        generation.predictor(run).rerank_by(other.path)
    with pytest.raises(UserError, match=r"expected a run trained with --set reverse=true\. Received: seq2seq$"):
        generation.predictor(run).rerank_by(run.path)


def test_measure_has_no_parts_where_all_pairs_are_of_one_kind(generation_dataset, generation_model):
    """All pairs of train stand in train."""
    split = generation_dataset.splits["dev"]
    for seen in (True, False):
        splits = {**generation_dataset.splits, "dev": dataclasses.replace(split, seen=np.full(21, seen))}
        given = dataclasses.replace(generation_dataset, splits=splits)
        record = generation.measure(generation_model, given, "dev", None, baselines=False, decode="max_length=1")
        assert record["parts"] == {} and record["counts"]["unseen"] == 21 * (not seen)


def test_describe_says_how_replies_were_found():
    counts = {"pairs": 1234, "unseen": 7}
    for settings, how in (({}, "greedy"), ({"beam": 5}, "beam of 5"), ({"beam": 5, "sample": True}, "sampling")):
        record = {"counts": counts, "search": search_of(Decoding(**settings)), "unit": "mixed"}
        title, caption = generation.describe(record)
        assert title == f"1,234 pairs, 7 of them not in train; {how}"
        assert "tokenizer mixed" in caption
