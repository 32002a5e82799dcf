"""Response generation from prepared pairs to scores, on small conversations."""

import dataclasses
import json
from types import SimpleNamespace

import numpy as np
import pytest
from helpers import check_same_training, copy_of, random_seq2seq, resume_small, to_numpy, train_small
from reference_recurrent import nll_in_loops

from base.files import UserError
from engine.evaluate import evaluate
from engine.run import Run
from metrics.generation import baselines_of, bleu, generation_metrics
from models import MODELS
from models.decoding import Decoding
from models.seq2seq import Seq2Seq, Seq2SeqConfig
from tasks import TASKS
from tasks.generation.data import TextSettings
from tasks.generation.scoring import likelihood
from tasks.generation.search import reply, words_of
from tasks.generation.task import Training

generation = TASKS["generation"]


@pytest.fixture(scope="module")
def run(trained_generation, tmp_path_factory):
    """A copy, into which evaluate.py may write."""
    return copy_of(trained_generation, tmp_path_factory)


# === Data ===


def test_the_small_conversations_have_pairs_that_train_has_and_others(generation_dataset):
    split = generation_dataset.splits["dev"]
    assert (len(generation_dataset.splits["train"]), len(split), int(split.seen.sum())) == (69, 21, 14)
    # 23 is 3 of 5, 2 of 3, 1 of 2
    assert split.source_texts[:2] == ["i am dee .", "i am dee .\thello dee , what do you like ?"]
    assert split.target_texts[1:3] == ["i like noise .", "noise ? noise is too loud"]


def test_a_reverse_model_reads_targets_and_writes_sources(generation_dataset, generation_model):
    split, rows = generation_dataset.splits["dev"], np.array([2, 0, 5])
    reverse = generation_model.config.replace(reverse=True)
    inputs, target = generation.collate(split, reverse, rows, 1)
    expected, other = generation.collate(split, generation_model.config, rows, 1)
    np.testing.assert_array_equal(inputs["source"], other)
    np.testing.assert_array_equal(target, expected["source"])
    assert (inputs["target_in"][:, 0] == split.bos).all()
    np.testing.assert_array_equal(inputs["target_in"][0, 1:], target[0, :-1])
    nll, words = likelihood(generation_model, split, reverse)
    assert words.tolist() == split.source.lengths.tolist()
    logits = to_numpy(generation_model(generation.collate(split, reverse, [2], 1)[0]))[0]
    by_hand = sum(nll_in_loops(word, row) for word, row in zip(target[0], logits, strict=True))
    assert nll[2] == pytest.approx(by_hand, rel=1e-4)


def test_training_batches_hold_each_pair_once_beside_its_like(generation_dataset, generation_model):
    split = generation_dataset.splits["train"]
    for reverse in (False, True):
        config = generation_model.config.replace(reverse=reverse)
        batches = generation.training_batches(split, config, Training(batch_size=8), np.random.default_rng(0))
        assert sorted(np.concatenate(batches)) == list(range(69)) and len(batches) == 9
        written = split.source.lengths if reverse else split.target.lengths
        spread = [np.ptp(written[batch]) for batch in batches]
        assert np.mean(spread) < np.ptp(written) / 3


# === A model's start ===


def test_word_vectors_of_the_dataset_are_put_into_a_model(generation_dataset):
    words = len(generation_dataset.vocabulary)
    vectors = np.random.default_rng(0).normal(size=(words + 1, 3)).astype("float32")
    given = dataclasses.replace(generation_dataset, vectors=vectors)
    config, _ = generation.configure(MODELS["seq2seq"], given, {})
    assert (config.vocabulary_size, config.embedding_dim) == (words, 3)
    config, _ = generation.configure(MODELS["seq2seq"], generation_dataset, {"hidden": 6})
    assert (config.vocabulary_size, config.embedding_dim, config.hidden) == (words, 256, 6)
    for settings in ({}, {"shared_embedding": False}):
        generation_model = Seq2Seq(Seq2SeqConfig(vocabulary_size=words, embedding_dim=3, hidden=10, **settings))
        tables = [layer for layer in generation_model.layers if layer.name.endswith("_embedding")]
        begins = [layer.get_weights()[0][-1] for layer in tables]
        generation.initialise(generation_model, given, Training())
        for layer, begin in zip(tables, begins, strict=True):
            np.testing.assert_array_equal(layer.get_weights()[0], [*vectors, begin])
        generation.initialise(generation_model, generation_dataset, Training())
        np.testing.assert_array_equal(tables[0].get_weights()[0][:-1], vectors)


def test_settings_that_the_dataset_decides_are_refused(generation_dataset, generation_model):
    given = dataclasses.replace(
        generation_dataset, vectors=np.zeros((len(generation_dataset.vocabulary) + 1, 3), "float32")
    )
    for name, of in (("vocabulary_size", generation_dataset), ("embedding_dim", given)):
        with pytest.raises(UserError, match=rf"--set {name}=5: .* decides {name}, it is \d+$"):
            generation.configure(MODELS["seq2seq"], of, {name: 5})
    generation.check_fits(generation_model.config, generation_dataset)
    other = generation_model.config.replace(vocabulary_size=5)
    with pytest.raises(
        UserError, match=rf"the run has vocabulary_size 5, here it is {len(generation_dataset.vocabulary)}: they"
    ):
        generation.check_fits(other, generation_dataset)


# === Scoring ===


def test_the_likelihood_of_a_pair_is_the_same_in_any_batch(generation_dataset, generation_model):
    split = generation_dataset.splits["dev"]
    nll, words = likelihood(generation_model, split, generation_model.config)
    assert words.tolist() == split.target.lengths.tolist()
    other, _ = likelihood(generation_model, split, generation_model.config, batch_size=5)
    np.testing.assert_allclose(other, nll, rtol=1e-4)
    for row in (0, 11, 20):
        inputs, target = split.collate([row])
        logits = to_numpy(generation_model(inputs))[0]
        by_hand = sum(nll_in_loops(word, scores) for word, scores in zip(target[0], logits, strict=True))
        assert nll[row] == pytest.approx(by_hand, rel=1e-4)
    metrics, score = generation.validate(generation_model, split)
    assert metrics == {"perplexity": pytest.approx(np.exp(nll.sum() / words.sum()), rel=1e-5)}
    assert score == pytest.approx(1 / metrics["perplexity"])


def test_a_second_validation_compiles_nothing_anew(generation_dataset, generation_model):
    from tasks.generation.scoring import scorer_of

    for _ in range(2):
        generation.validate(generation_model, generation_dataset.splits["dev"])
    assert scorer_of(generation_model).predict_function.experimental_get_tracing_count() == 1


def test_the_likelihood_cuts_nothing(generation_dataset, generation_model, monkeypatch):
    """Though training does."""
    split = generation_dataset.splits["dev"]
    nll, _ = likelihood(generation_model, split, generation_model.config)
    monkeypatch.setattr("tasks.generation.task.MAX_SOURCE", 3)
    monkeypatch.setattr("tasks.generation.task.MAX_TARGET", 2)
    inputs, target = generation.collate(split, generation_model.config, [1], 1)
    assert inputs["source"].shape == (1, 3) and target.shape == (1, 2)
    np.testing.assert_array_equal(likelihood(generation_model, split, generation_model.config)[0], nll)


# === Metrics ===


def test_measure_compares_replies_with_targets(generation_dataset, generation_model, tmp_path):
    split, file = generation_dataset.splits["dev"], tmp_path / "replies.txt"
    record = generation.measure(
        generation_model, generation_dataset, "dev", None, scores_out=file, decode="beam=2,max_length=5"
    )
    lines = [line.split("\t") for line in file.read_text(encoding="utf-8").splitlines()]
    assert [source for source, _, _ in lines] == [text.replace("\t", " / ") for text in split.source_texts]
    assert [target for _, target, _ in lines] == split.target_texts
    replies = [text for _, _, text in lines]
    ids, _ = reply(generation_model, split, range(21), Decoding(beam=2, max_length=5))
    assert replies == [" ".join(words_of(row[0], generation_dataset.vocabulary)) for row in ids]
    assert len(set(replies)) > 2 and "_EOS_" not in " ".join(replies)

    nll, words = likelihood(generation_model, split, generation_model.config)
    unseen = [row for row in range(21) if not split.seen[row]]
    assert unseen == list(range(2, 21, 3))
    for found, rows in (
        (record["metrics"], range(21)),
        (record["parts"]["without the pairs of train"], unseen),
    ):
        expected = generation_metrics([replies[i] for i in rows], [[split.target_texts[i]] for i in rows])
        perplexity = np.exp(sum(nll[i] for i in rows) / sum(words[i] for i in rows))
        assert found == {"perplexity": pytest.approx(perplexity, rel=1e-4), **expected}
    assert record["counts"] == {"pairs": 21, "unseen": 7, "sources": 17, "words": int(words.sum())}
    assert record["decoding"] == Decoding(beam=2, max_length=5).to_json()
    assert record["unit"] == "words" and record["search"] == "beam of 2"
    shown = [0, 1, 3, 5, 7, 9, 10, 12, 14, 16, 18, 20]
    assert record["samples"] == [
        {"source": split.source_texts[i], "target": split.target_texts[i], "reply": replies[i]} for i in shown
    ]
    train_targets = generation_dataset.splits["train"].target_texts
    assert record["baselines"] == baselines_of(train_targets, split.source_texts, split.target_texts)
    assert "human, 2 sources with several targets" in record["baselines"]
    assert "baselines" not in generation.measure(
        generation_model, generation_dataset, "dev", None, baselines=False, decode="max_length=1"
    )


def test_a_reverse_model_is_measured_in_its_direction(generation_dataset):
    reverse, split = random_seq2seq(generation_dataset, reverse=True), generation_dataset.splits["dev"]
    record = generation.measure(reverse, generation_dataset, "dev", None, decode="max_length=3")
    swapped = dataclasses.replace(split, source=split.target, target=split.source)
    ids, _ = reply(reverse, swapped, range(21), Decoding(max_length=3))
    replies = [" ".join(words_of(row[0], generation_dataset.vocabulary)) for row in ids]
    expected = generation_metrics(replies, [[text] for text in split.source_texts])
    assert {name: record["metrics"][name] for name in expected} == expected
    train_sources = generation_dataset.splits["train"].source_texts
    assert record["baselines"] == baselines_of(train_sources, split.target_texts, split.source_texts)
    assert record["counts"]["words"] == split.source.lengths.sum()


# === Training ===


def test_a_run_holds_all_that_is_needed(run, generation_dataset):
    names = {"config.json", "vocabulary.txt", "best.weights.h5", "last.npz", "history.jsonl"}
    assert names <= {file.name for file in run.path.iterdir()}
    rows = run.history()
    assert [(row["step"], row["epoch"]) for row in rows] == [(5, 0.556), (9, 1.0)]  # 69 pairs, 8 per step
    assert rows[1]["loss"] < rows[0]["loss"] < np.log(len(generation_dataset.vocabulary) + 1) + 0.1
    assert rows[1]["perplexity"] < rows[0]["perplexity"]
    assert run.config.vocabulary_size == len(generation_dataset.vocabulary)
    assert run.dataset["name"] == "small"


def test_an_interrupted_training_goes_on_exactly(run, prepared_generation, tmp_path, monkeypatch):
    original, calls = generation.validate, []

    def validate(*args):
        calls.append(args)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return original(*args)

    with monkeypatch.context() as patch:
        patch.setattr(generation, "validate", validate)
        with pytest.raises(UserError, match=r"interrupted; train\.py --resume --workdir=.* goes on from step"):
            train_small("generation", prepared_generation, tmp_path / "run")
    resumed = Run.open(tmp_path / "run")
    assert [row["step"] for row in resumed.history()] == [5]
    resumed = resume_small("generation", tmp_path / "run")
    check_same_training(resumed, run)


def test_evaluate_measures_writes_and_prints(run, generation_dataset, tmp_path, capsys):
    replies_file = tmp_path / "replies.txt"
    decode = "beam=2,max_length=5"
    record = evaluate(generation, run.path, "dev", scores_out=replies_file, decode=decode)
    rows = [line.split("\t") for line in replies_file.read_text(encoding="utf-8").splitlines()]
    expected = bleu([row[2] for row in rows], [[row[1]] for row in rows])
    assert {name: record["metrics"][name] for name in expected} == expected
    assert record["metrics"]["perplexity"] == pytest.approx(min(row["perplexity"] for row in run.history()), rel=1e-4)
    assert json.loads((run.path / "metrics.json").read_text())["dev"]["metrics"] == record["metrics"]
    assert (record["recipe"], record["task"], record["corpus"]) == ("seq2seq", "generation", "small")
    printed = " ".join(capsys.readouterr().out.split())
    assert "21 pairs, 7 of them not in train; beam of 2" in printed
    assert f"{record['metrics']['BLEU-2']:.4f}" in printed and "without the pairs of train" in printed
    with pytest.raises(
        UserError, match="--ties is not for generation, which has scores_out, decode, reverse_run, reverse_weight"
    ):
        evaluate(generation, run.path, "dev", ties="release")


def test_examples_read_as_people_write():
    split = SimpleNamespace(source_texts=["我 会 用 筷 子 。\tyes , a little ."])
    dataset = SimpleNamespace(text=TextSettings(tokenizer="mixed", lower=True, turns=2), splits={"dev": split})
    [example] = generation.examples(dataset)
    assert example == {"title": "dev, pair 1", "instance": {"turns": ["我会用筷子。", "yes, a little."]}}
