"""`tasks.generation.search` and `chat`: replies, how they are asked for, reranked by a reverse
model, and written.
"""

import json

import numpy as np
import pytest
from helpers import ran, random_seq2seq, refusal, to_numpy
from reference_recurrent import nll_in_loops

from colloquy.data.vocabulary import Vocabulary
from colloquy.engine.run import Run
from colloquy.layers.masking import LOWEST
from colloquy.models.decoding import Decoding
from colloquy.tasks import TASKS
from colloquy.tasks.generation.chat import GenerationChat
from colloquy.tasks.generation.search import parse_decoding, reply, rerank, words_of

generation = TASKS["generation"]


@pytest.mark.parametrize("settings", [{}, {"beam": 3, "sample": True, "temperature": 2.0}], ids=str)
def test_replies_are_the_same_in_any_batch(generation_dataset, generation_model, settings):
    sources = generation_dataset.splits["dev"].source.take(np.array([7, 0, 20, 11, 4]))
    decoding = Decoding(max_length=5, **settings)
    ids, scores = reply(generation_model, sources, decoding)
    assert ids.shape == (5, decoding.beam, 5) and scores.shape == (5, decoding.beam)
    assert (ids[:, :, 0] > 0).all()
    again, ranked = reply(generation_model, sources, decoding, batch_size=2)
    np.testing.assert_array_equal(again, ids)
    np.testing.assert_allclose(ranked, scores, atol=1e-4)
    other, _ = reply(generation_model, sources, decoding, seed=2)
    assert (other != ids).any() == decoding.sample
    words = generation_dataset.vocabulary.encode(["hello", "ann", "nobody"])
    assert words_of(np.array([*words, 1, 0, 0]), generation_dataset.vocabulary) == [
        "hello",
        "ann",
        "_UNK_",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("beam", "--decode expects field=value. Received: 'beam'"),
        ("beam=3,width=5", "no field 'width'; it has beam, sample, "),
        ("beam=3.5", "beam: input should be a valid integer. Received: 3.5"),
    ],
)
def test_parse_decoding(text, message):
    assert parse_decoding(None) == parse_decoding("") == Decoding() and parse_decoding(
        "beam=3"
    ) == Decoding(beam=3)
    assert parse_decoding("sample=true, beam=2,top_p=0.9, ") == Decoding(
        sample=True, beam=2, top_p=0.9
    )
    assert message in refusal(parse_decoding, text)


def test_rerank_matches_loops(generation_dataset, generation_model):
    reverse = random_seq2seq(generation_dataset, reverse=True)
    sources = generation_dataset.splits["dev"].source.take(np.array([7, 1]))
    ids, scores = reply(generation_model, sources, Decoding(beam=3, max_length=5))
    for weight in (0.0, 0.3, 1.0):
        found, ranked = rerank(reverse, sources, ids, scores, weight)
        for source, of_source, forward, after, values in zip(
            sources.lists(), ids, scores, found, ranked, strict=True
        ):
            totals = []
            for words, score in zip(of_source, forward, strict=True):
                read = [[word for word in words.tolist() if word > 1] + [1]]
                before = [[reverse.begin_id, *source[:-1]]]
                logits = to_numpy(
                    reverse(
                        {"source": np.array(read, "int32"), "target_in": np.array(before, "int32")}
                    )
                )
                nll = sum(
                    nll_in_loops(word, place) for word, place in zip(source, logits[0], strict=True)
                )
                totals.append((1 - weight) * score - weight * nll)
            order = np.argsort(totals)[::-1]
            np.testing.assert_array_equal(after, of_source[order])
            np.testing.assert_allclose(values, np.array(totals)[order], rtol=1e-4)
        assert (found != ids).any() == (weight > 0)


@pytest.fixture(scope="module")
def random_runs(trained_generation, generation_dataset, tmp_path_factory):
    """A run with random weights, and one whose model reads replies and writes sources."""
    runs = []
    for reverse in (False, True):
        model = random_seq2seq(generation_dataset, reverse=reverse)
        record = {**trained_generation.record, "config": model.config.to_json()}
        runs.append(
            Run.create(
                tmp_path_factory.mktemp("runs") / "run", record, generation_dataset.vocabulary
            )
        )
        runs[-1].save_best(model)
    return runs


def test_measure_takes_the_reply_that_a_reverse_model_chooses(random_runs, generation_dataset):
    run, reverse_run = random_runs
    model, split, vocabulary = (
        run.load_model(),
        generation_dataset.splits["dev"],
        generation_dataset.vocabulary,
    )
    given = {"baselines": False, "decode": "beam=3,max_length=5"}
    given |= {"reverse_run": reverse_run.path, "reverse_weight": 0.7}
    record = generation.measure(model, generation_dataset, "dev", run, **given)
    replies = [line.split("\t")[2] for line in record["answers"]]
    ids, scores = reply(model, split.source, Decoding(beam=3, max_length=5))
    chosen, _ = rerank(reverse_run.load_model(), split.source, ids, scores, 0.7)
    forward, expected = (
        [" ".join(words_of(row[0], vocabulary)) for row in found] for found in (ids, chosen)
    )
    assert replies == expected != forward and "baselines" not in record
    assert generation.describe(record)[0].endswith("; beam=3, max_length=5, reranked by 0.7")


def test_answers_to_a_file_are_searched_for_as_asked(random_runs, tmp_path):
    run, reverse_run = random_runs
    lines = [{"turns": ["i am dee ."]}, {"turns": ["hello", "i like tea ."]}]
    (tmp_path / "in.jsonl").write_text(
        "".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8"
    )
    flags = [
        f"--reverse_run={reverse_run.path}",
        "--reverse_weight=1",
        "--decode=beam=3,min_length=2,max_length=5",
    ]
    given = f"--run={run.path}", f"--predict={tmp_path}/in.jsonl", f"--out={tmp_path}/out.jsonl"
    ran("evaluate.py", *given, *flags)
    predictor, expected = generation.predictor(run), []
    for choose in (lambda: None, lambda: predictor.rerank_by(reverse_run.path, 1.0)):
        choose()
        predictor.decoding = Decoding(beam=3, min_length=2, max_length=5)
        expected.append([answer["response"] for answer in predictor.predict(lines)])
    found = [
        json.loads(line)["response"]
        for line in (tmp_path / "out.jsonl").read_text("utf-8").splitlines()
    ]
    assert found == expected[1] != expected[0]


def test_in_a_chat_a_reverse_model_chooses_among_the_replies(random_runs, generation_dataset):
    run, reverse_run = random_runs
    chat = GenerationChat(generation.predictor(run), reverse_run.path, reverse_weight=0.7)
    assert chat.predictor.decoding == Decoding(beam=10) and "/reverse W" in chat.HELP
    chat.predictor.decoding = decoding = Decoding(beam=3, min_length=2, max_length=5)
    split = generation_dataset.splits["dev"]
    rows = [i for i, text in enumerate(split.source_texts) if "\t" not in text]
    sources = split.source.take(rows)
    ids, scores = reply(run.load_model(), sources, decoding)
    for weight in (1.0, 0.0):
        assert chat.commands["/reverse"](str(weight)) == f"the reverse model counts {weight:g}"
        expected, _ = rerank(reverse_run.load_model(), sources, ids, scores, weight)
        for row, [best, *_] in zip(rows[:3], expected, strict=False):
            said, note = chat.reply(split.source_texts[row])
            assert said == generation_dataset.text.join(
                words_of(best, generation_dataset.vocabulary)
            )
            chat.reset()
        assert (
            f"log probability, times {1 - weight:g}, plus the reverse model's, times {weight:g}, and reply:"
            in note
        )
        assert (expected[:, 0] != ids[:, 0]).any() == (weight > 0)
    assert chat.sample("0.7") and chat.predictor.decoding == Decoding(
        sample=True, temperature=0.7, beam=10
    )
    for wrong in ("2", "-1", "x", "nan", ""):
        assert chat.reverse(wrong) == f"/reverse expects a number from 0 to 1. Received: {wrong}"


def test_a_run_that_is_no_reverse_model_of_the_same_words_is_refused(
    random_runs, trained_generation, tmp_path
):
    run, reverse_run = random_runs
    other = Run.create(tmp_path / "run", reverse_run.record, Vocabulary.of(["other", "words"]))
    predictor = generation.predictor(trained_generation)
    for path, message in (
        (other.path, "the vocabulary of the model"),
        (run.path, "reverse=true. Received: seq2seq"),
    ):
        assert message in refusal(predictor.rerank_by, path)


def test_where_the_search_finds_fewer_replies_than_its_beam_the_empty_ones_stay_last(
    generation_dataset, generation_model
):
    reverse, sources = (
        random_seq2seq(generation_dataset, reverse=True),
        generation_dataset.splits["dev"].source,
    )
    ids, scores = reply(generation_model, sources, Decoding(beam=80, max_length=1))
    found, ranked = rerank(reverse, sources, ids, scores, 1.0)
    there = ids.any(axis=2)
    assert (
        not there.all()
        and (np.sort(there)[:, ::-1] == there).all()
        and (found.any(axis=2) == there).all()
    )
    assert ((ranked > LOWEST) == there).all()


# === Chat ===

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
    assert GenerationChat(chat.predictor).HELP.startswith(
        "The model reads what you said last, and nothing before."
    )


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
    assert (
        chat.commands["/sample"]("0.7") == "sampling at temperature 0.7"
        and len(list(chat.reply("hello"))) == 1
    )
    assert chat.predictor.decoding == Decoding(sample=True, temperature=0.7)
    for command, argument in (
        ("/beam", "x"),
        ("/beam", "0"),
        ("/sample", "0.001"),
        ("/sample", "warm"),
    ):
        assert f" to 100. Received: {argument}" in chat.commands[command](argument)
    assert "/reverse" not in chat.commands


def test_attention_is_shown(chat):
    assert chat.explain() == "Say something first."
    for texts in chat.reply("hello you"):
        list(texts)
    lines = chat.explain().plain.splitlines()
    assert lines[0].split()[-1] == "_EOS_" and len(lines) == 1 + len(
        chat.last["attention"][0]["rows"]
    )
