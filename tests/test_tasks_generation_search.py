"""`tasks.generation.search`, `mmi` and `chat`: replies, reranked by a reverse model; a chat."""

import copy

import numpy as np
import pytest
from helpers import copy_of, random_seq2seq, refusal, scoring_of, to_numpy
from reference_recurrent import nll_in_loops

from colloquy.data.vocabulary import Vocabulary
from colloquy.engine.run import Run
from colloquy.engine.workdir import create_run
from colloquy.models.decoding import Decoding
from colloquy.tasks import TASKS
from colloquy.tasks.generation.chat import GenerationChat
from colloquy.tasks.generation.decoding_settings import parse_decoding
from colloquy.tasks.generation.replies import load_reverse, rerank
from colloquy.tasks.generation.search import reply, words_of

generation = TASKS["generation"]


@pytest.mark.slow
def test_drawn_replies_are_the_same_in_any_batch(generation_dataset, generation_model):
    sources = generation_dataset.splits["dev"].source.take(np.array([7, 0, 20, 11, 4]))
    decoding = Decoding(max_length=5, beam=3, sample=True, temperature=2.0)
    ids, scores = reply(generation_model, sources, decoding)
    assert ids.shape == (5, decoding.beam, 5) and scores.shape == (5, decoding.beam)
    assert (ids[:, :, 0] > 0).all()

    likeliest, _ = reply(generation_model, sources, Decoding(max_length=5, beam=3))
    assert (ids != likeliest).any()

    again, scores_again = reply(generation_model, sources, decoding, batch_size=2)
    np.testing.assert_array_equal(again, ids)
    np.testing.assert_allclose(scores_again, scores, atol=1e-4)


def test_parse_decoding():
    assert parse_decoding(None) == parse_decoding("") == Decoding()
    expected = Decoding(sample=True, beam=2, top_p=0.9)
    assert parse_decoding("sample=true, beam=2,top_p=0.9, ") == expected
    for text, message in (
        ("beam", "--decode expects field=value. Received: 'beam'"),
        ("beam=3,width=5", "no field 'width'; it has beam, sample, "),
        ("beam=3.5", "beam: input should be a valid integer. Received: 3.5"),
    ):
        assert message in refusal(parse_decoding, text)


# === Reranking ===


def reverse_nll(reverse, source, reply_ids):
    """`-log p(source | reply)`, word by word."""
    read = [word for word in reply_ids.tolist() if word > 1] + [1]
    before = [reverse.begin_id, *source[:-1]]
    inputs = {"source": np.array([read], "int32"), "target_in": np.array([before], "int32")}
    logits = to_numpy(reverse(inputs))[0]
    return sum(nll_in_loops(word, row) for word, row in zip(source, logits, strict=True))


@pytest.mark.slow
def test_rerank_matches_loops(generation_dataset, generation_model):
    reverse = random_seq2seq(generation_dataset, reverse=True)
    sources = generation_dataset.splits["dev"].source.take(np.array([7, 1]))
    ids, scores = reply(generation_model, sources, Decoding(beam=3, max_length=5))
    nll = np.zeros_like(scores)
    for row, source in enumerate(sources.lists()):
        nll[row] = [reverse_nll(reverse, source, reply_ids) for reply_ids in ids[row]]
    for weight in (0.0, 0.3, 1.0):
        new_ids = rerank(reverse, sources, ids, scores, weight)
        totals = (1 - weight) * scores - weight * nll
        for row, row_totals in enumerate(totals):
            order = np.argsort(row_totals)[::-1]
            np.testing.assert_array_equal(new_ids[row], ids[row][order])
        assert (new_ids != ids).any() == (weight > 0)


def test_missing_replies_of_a_search_stay_last(generation_dataset, generation_model):
    reverse = random_seq2seq(generation_dataset, reverse=True)
    sources = generation_dataset.splits["dev"].source
    ids, scores = reply(generation_model, sources, Decoding(beam=80, max_length=1))
    new_ids = rerank(reverse, sources, ids, scores, 1.0)
    is_reply = ids.any(axis=2)
    assert not is_reply.all()
    np.testing.assert_array_equal(np.sort(is_reply)[:, ::-1], is_reply)
    np.testing.assert_array_equal(new_ids.any(axis=2), is_reply)


@pytest.fixture(scope="module")
def random_runs(trained_generation, generation_dataset, tmp_path_factory):
    """A run with random weights, and one whose model reads replies and writes sources."""
    runs = []
    for reverse in (False, True):
        model = random_seq2seq(generation_dataset, reverse=reverse)
        record = {**trained_generation.record, "config": model.config.to_json()}
        path = tmp_path_factory.mktemp("runs") / "run"
        run = create_run(path, record, generation_dataset.vocabulary)
        run.save_best(model)
        runs.append(run)
    return runs


@pytest.mark.slow
def test_measure_takes_the_reply_that_a_reverse_model_chooses(random_runs, generation_dataset):
    run, reverse_run = random_runs
    model = run.load_model()
    settings = {"reverse_run": str(reverse_run.path), "reverse_weight": 0.7}
    scoring = scoring_of(
        generation,
        model,
        generation_dataset,
        "dev",
        run,
        baselines=False,
        decode="beam=3,max_length=5",
        **settings,
    )
    record, _, answers = generation.measure(scoring)
    sources = generation_dataset.splits["dev"].source
    ids, scores = reply(model, sources, Decoding(beam=3, max_length=5))
    chosen = rerank(reverse_run.load_model(), sources, ids, scores, 0.7)
    assert (chosen[:, 0] != ids[:, 0]).any()

    expected = [" ".join(words_of(best, generation_dataset.vocabulary)) for best in chosen[:, 0]]
    assert [line.split("\t")[2] for line in answers] == expected
    assert "baselines" not in record
    assert generation.describe(record)[0].endswith("; beam=3, max_length=5, reranked by 0.7")


def test_options_set_the_search_and_other_runs_are_refused(
    random_runs, generation_predictor, tmp_path
):
    run, reverse_run = random_runs
    other = create_run(tmp_path / "run", reverse_run.record, Vocabulary.of(["other", "words"]))
    assert "the vocabulary of the model" in refusal(load_reverse, other.path, run.vocabulary)
    assert "reverse=true. Received: seq2seq" in refusal(load_reverse, run.path, run.vocabulary)

    predictor = copy.copy(generation_predictor)
    options = generation.Options(reverse_run=str(reverse_run.path), reverse_weight=1.0)
    assert "is for evaluate.py" in refusal(predictor.configure, options)
    predictor.configure(generation.Options(decode="beam=3,min_length=2,max_length=5"))
    assert predictor.decoding == Decoding(beam=3, min_length=2, max_length=5)


# === Chat ===


@pytest.fixture
def chat(generation_predictor):
    return GenerationChat(copy.copy(generation_predictor))


def test_a_text_without_a_known_word_gets_a_reply_that_is_called_not_good(chat):
    reason = "the model knows no word of the last turn"
    for text in ("zxcv qwer", "zxcv?!", "ZXCV"):
        [answer] = chat.predictor.predict([{"turns": ["hello", "hello", text]}])
        assert answer["response"] and answer["good"] is False and answer["reason"] == reason
        said, note = chat.reply(text)
        assert note == f"[{reason}]" and said == chat.said[-1]
    for text in ("zxcv hello", "?!"):
        [answer] = chat.predictor.predict([{"turns": [text]}])
        assert answer.keys() == {"response", "best"}
        assert len(list(chat.reply(text))) == 1
    assert list(chat.reply("\u200b")) == []  # no words


def test_commands_change_how_replies_are_found(chat):
    assert chat.commands["/beam"]("3") == "beam of 3"
    said, note = chat.reply("hello")
    title, *lines = note.split("\n")
    assert title == "log probability by the length penalty, and reply:" and len(lines) == 3
    assert lines[0][10:] == said and float(lines[0][:8]) <= 0
    assert chat.explain().startswith(chat.last["attention"][0]["title"])

    assert chat.commands["/beam"]("1") == "greedy search"
    assert len(list(chat.reply("hello"))) == 1
    assert chat.commands["/sample"]("0.7") == "sampling at temperature 0.7"
    assert chat.predictor.decoding == Decoding(sample=True, temperature=0.7)
    for command, argument in [("/beam", "x"), ("/beam", "0"), ("/sample", "0.001")]:
        assert f" to 100. Received: {argument}" in chat.commands[command](argument)


@pytest.fixture
def run_with_search(trained_generation, tmp_path_factory):
    """A run whose `config.json` names a search."""
    run = copy_of(trained_generation, tmp_path_factory)
    run.update({"decode": "beam=3,min_length=4,max_length=9"})
    return Run.open(run.path)


def test_a_run_has_a_search_of_its_own(run_with_search, generation_predictor):
    predictor = generation.predictor(run_with_search)
    greedy = generation_predictor
    assert greedy.decoding == Decoding()
    [own] = predictor.predict([{"turns": ["hello"]}])
    texts = [best["text"] for best in own["best"]]
    assert len(texts) == 3 and min(len(text.split()) for text in texts) >= 3

    # Greedy search is there for who asks.
    [asked] = predictor.predict([{"turns": ["hello"], "decode": "beam=1"}])
    assert [asked] == greedy.predict([{"turns": ["hello"]}])

    # The terminal searches in the same way, and lists all replies only after /beam.
    chat = GenerationChat(predictor)
    assert list(chat.reply("hello")) == [own["response"]]

    run_with_search.update({"decode": "beams=3"})
    message = refusal(generation.predictor, run_with_search)
    assert message.startswith(f"{run_with_search.path}/config.json: decode")
    assert "no field 'beams'" in message
