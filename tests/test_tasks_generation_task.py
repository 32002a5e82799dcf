"""Response generation from prepared pairs to scores, on small conversations."""

import collections
import dataclasses
import json
import shutil

import keras
import numpy as np
import pytest
from helpers import check_same_training, randomised, resume_small, to_numpy, train_small

from base.files import UserError
from engine.evaluation import evaluate
from engine.runs import Run
from metrics.generation import baselines_of, bleu, generation_metrics
from models.decoding import Decoding
from models.seq2seq import Seq2Seq, Seq2SeqConfig
from tasks import TASKS
from tasks.generation.dataset import load_dataset
from tasks.generation.likelihood import likelihood, word_nll
from tasks.generation.search import parse_decoding, reply, rerank, search_of, words_of
from tasks.generation.task import Training

generation = TASKS["generation"]
B, T, V = 3, 5, 7  # pairs, words of a target, words


@pytest.fixture(scope="module")
def dataset(prepared_generation):
    return load_dataset(prepared_generation)


@pytest.fixture(scope="module")
def model(dataset):
    """A model with random weights, shared by the tests: do not change it."""
    config = Seq2SeqConfig(len(dataset.vocabulary), embedding_dim=7, hidden=10)
    return randomised(Seq2Seq(config), 1, 0.7)


@pytest.fixture(scope="module")
def run(trained_generation, tmp_path_factory):
    """A copy, into which evaluate.py may write."""
    return Run.open(shutil.copytree(trained_generation.path, tmp_path_factory.mktemp("runs") / "run"))


def nll_in_loops(target, logits, smoothing=0.0):
    """Of one word."""
    logits = logits.astype("float64")
    p = np.exp(logits) / np.exp(logits).sum()
    return -(1 - smoothing) * np.log(p[target]) - smoothing * sum(np.log(q) / len(p) for q in p)


def targets_and_logits():
    """Three targets of 5, 2 and 1 words."""
    rng = np.random.default_rng(0)
    target = rng.integers(1, V, (B, T)) * (np.arange(T) < np.array([5, 2, 1])[:, None])
    return target.astype("int32"), rng.normal(size=(B, T, V)).astype("float32")


# === Data ===


def test_the_small_conversations_have_pairs_that_train_has_and_others(dataset):
    split = dataset.splits["dev"]
    assert (len(dataset.splits["train"]), len(split), int(split.seen.sum())) == (69, 21, 14)
    # 23 is 3 of 5, 2 of 3, 1 of 2
    assert split.source_texts[:2] == ["i am dee .", "i am dee .\thello dee , what do you like ?"]
    assert split.target_texts[1:3] == ["i like noise .", "noise ? noise is too loud"]


def test_a_reverse_model_reads_targets_and_writes_sources(dataset, model):
    split, rows = dataset.splits["dev"], np.array([2, 0, 5])
    reverse = dataclasses.replace(model.config, reverse=True)
    inputs, target = generation.collate(split, reverse, rows, 1)
    expected, other = generation.collate(split, model.config, rows, 1)
    np.testing.assert_array_equal(inputs["source"], other)
    np.testing.assert_array_equal(target, expected["source"])
    assert (inputs["target_in"][:, 0] == split.bos).all()
    np.testing.assert_array_equal(inputs["target_in"][0, 1:], target[0, :-1])
    nll, words = likelihood(model, split, reverse)
    assert words.tolist() == split.source.lengths.tolist()
    logits = to_numpy(model(generation.collate(split, reverse, [2], 1)[0]))[0]
    by_hand = sum(nll_in_loops(word, row) for word, row in zip(target[0], logits, strict=True))
    assert nll[2] == pytest.approx(by_hand, rel=1e-4)


def test_training_batches_hold_each_pair_once_beside_its_like(dataset, model):
    split = dataset.splits["train"]
    for reverse in (False, True):
        config = dataclasses.replace(model.config, reverse=reverse)
        batches = generation.training_batches(split, config, Training(), 8, np.random.default_rng(0))
        assert sorted(np.concatenate(batches)) == list(range(69)) and len(batches) == 9
        written = split.source.lengths if reverse else split.target.lengths
        spread = [np.ptp(written[batch]) for batch in batches]
        assert np.mean(spread) < np.ptp(written) / 3


# === Loss ===


@pytest.mark.parametrize("smoothing", (0.0, 0.3))
def test_loss_is_the_mean_over_words_whatever_the_padding(smoothing):
    target, logits = targets_and_logits()
    compute = generation.loss(Training(label_smoothing=smoothing))
    losses = to_numpy(compute(target, logits))
    assert losses.shape == (B,)
    real = [(b, t) for b, t in np.ndindex(B, T) if target[b, t]]
    expected = [nll_in_loops(target[place], logits[place], smoothing) for place in real]
    assert len(expected) == 8
    assert losses.mean() == pytest.approx(np.mean(expected), rel=1e-5)
    # That of a pair counts by its words.
    for b in range(B):
        of_pair = [e for e, (row, _) in zip(expected, real, strict=True) if row == b]
        assert losses[b] == pytest.approx(sum(of_pair) * B / 8, rel=1e-5)
    padded = np.pad(target, ((0, 0), (0, 2))), np.pad(logits, ((0, 0), (0, 2), (0, 0)), constant_values=9.0)
    np.testing.assert_allclose(to_numpy(compute(*padded)), losses, rtol=1e-5)
    assert to_numpy(compute(np.zeros((B, T), "int32"), logits)).tolist() == [0.0] * B


def test_label_smoothing_matches_loops_word_by_word():
    target, logits = targets_and_logits()
    for smoothing in (0.0, 0.1, 1.0):
        found = to_numpy(word_nll(target, logits.astype("float16"), smoothing))
        assert found.dtype == np.float32
        for b, t in np.ndindex(B, T):
            expected = nll_in_loops(target[b, t], logits[b, t], smoothing) if target[b, t] else 0.0
            assert found[b, t] == pytest.approx(expected, abs=0.01)


# === Optimizer ===


@pytest.mark.parametrize("rate", (1.0, 5.0))
def test_the_decoder_moves_at_its_own_rate(dataset, rate):
    """Adam's first step is the learning rate, whatever the gradient."""
    model = Seq2Seq(Seq2SeqConfig(11, embedding_dim=7, hidden=10, layers=2))
    training = Training(decoder_rate=rate, gradient_clip=0.0)
    adam = generation.optimizer(training, 1e-3, 10)
    before = [variable.numpy() for variable in model.trainable_variables]
    gradients = [np.full(variable.shape, 3.0, "float32") for variable in model.trainable_variables]
    adam.apply([keras.ops.convert_to_tensor(gradient) for gradient in gradients], model.trainable_variables)
    moved = collections.defaultdict(set)
    for variable, start in zip(model.trainable_variables, before, strict=True):
        step = np.abs(variable.numpy() - start)
        np.testing.assert_allclose(step, step.mean(), atol=1e-6)
        moved[variable.path.split("/")[0]].add(round(float(step.mean()), 5))
    assert moved == {"word_embedding": {0.001}, "encoder": {0.001}, "decoder": {0.001 * rate}, "logits": {0.001 * rate}}


def test_the_learning_rate_falls_evenly():
    adam = generation.optimizer(Training(decay=0.2), 0.1, 7)
    rates = []
    weight = keras.Variable(np.zeros(3, "float32"))
    for _ in range(9):
        rates.append(float(adam.learning_rate))
        adam.apply([keras.ops.ones(3)], [weight])
    np.testing.assert_allclose(rates, [0.1 - 0.08 * min(step, 7) / 7 for step in range(9)], rtol=1e-5)
    assert adam.global_clipnorm == 5.0
    assert generation.optimizer(Training(gradient_clip=0.0), 0.1, 7).global_clipnorm is None


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"label_smoothing": -0.1}, r"label_smoothing must be in \[0, 1\]\. Received: label_smoothing=-0\.1$"),
        ({"decay": 1.1}, r"decay must be in \[0, 1\]\. Received: decay=1\.1$"),
        ({"decoder_rate": 0.0}, r"decoder_rate must be above 0\. Received: decoder_rate=0\.0$"),
        ({"validations_per_epoch": 0.0}, r"validations_per_epoch must be above 0\. Received: validations_per_epoch=0"),
    ],
)
def test_training_rejects(settings, message):
    with pytest.raises(ValueError, match=message):
        Training(**settings)


# === A model's start ===


def test_word_vectors_of_the_dataset_are_put_into_a_model(dataset):
    words = len(dataset.vocabulary)
    vectors = np.random.default_rng(0).normal(size=(words + 1, 3)).astype("float32")
    given = dataclasses.replace(dataset, vectors=vectors)
    assert generation.model_settings(given, {}) == {"vocabulary_size": words, "embedding_dim": 3}
    assert generation.model_settings(dataset, {"hidden": 5}) == {"vocabulary_size": words, "hidden": 5}
    for settings in ({}, {"shared_embedding": False}):
        model = Seq2Seq(Seq2SeqConfig(words, embedding_dim=3, hidden=10, **settings))
        tables = [layer for layer in model.layers if layer.name.endswith("_embedding")]
        begins = [layer.get_weights()[0][-1] for layer in tables]
        generation.initialise(model, given, Training())
        for layer, begin in zip(tables, begins, strict=True):
            np.testing.assert_array_equal(layer.get_weights()[0], [*vectors, begin])
        generation.initialise(model, dataset, Training())
        np.testing.assert_array_equal(tables[0].get_weights()[0][:-1], vectors)


def test_settings_that_the_dataset_decides_are_refused(dataset, model):
    given = dataclasses.replace(dataset, vectors=np.zeros((len(dataset.vocabulary) + 1, 3), "float32"))
    for name, of in (("vocabulary_size", dataset), ("embedding_dim", given)):
        with pytest.raises(UserError, match=rf"--set {name}=5: .* decides {name}, it is \d+$"):
            generation.model_settings(of, {name: 5})
    generation.check_fits(model.config, dataset)
    other = dataclasses.replace(model.config, vocabulary_size=5)
    with pytest.raises(UserError, match=rf"the run has vocabulary_size 5, here it is {len(dataset.vocabulary)}: they"):
        generation.check_fits(other, dataset)


# === Scoring ===


def test_the_likelihood_of_a_pair_is_the_same_in_any_batch(dataset, model):
    split = dataset.splits["dev"]
    nll, words = likelihood(model, split, model.config)
    assert words.tolist() == split.target.lengths.tolist()
    other, _ = likelihood(model, split, model.config, batch_size=5)
    np.testing.assert_allclose(other, nll, rtol=1e-4)
    for row in (0, 11, 20):
        inputs, target = split.collate([row])
        logits = to_numpy(model(inputs))[0]
        by_hand = sum(nll_in_loops(word, scores) for word, scores in zip(target[0], logits, strict=True))
        assert nll[row] == pytest.approx(by_hand, rel=1e-4)
    metrics, score = generation.validate(model, split)
    assert metrics == {"perplexity": pytest.approx(np.exp(nll.sum() / words.sum()), rel=1e-5)}
    assert score == pytest.approx(1 / metrics["perplexity"])


def test_a_second_validation_compiles_nothing_anew(dataset, model):
    from tasks.generation.likelihood import scorer_of

    for _ in range(2):
        generation.validate(model, dataset.splits["dev"])
    assert scorer_of(model).predict_function.experimental_get_tracing_count() == 1


def test_the_likelihood_cuts_nothing(dataset, model, monkeypatch):
    """Though training does."""
    split = dataset.splits["dev"]
    nll, _ = likelihood(model, split, model.config)
    monkeypatch.setattr("tasks.generation.task.LENGTHS", {"max_source": 3, "max_target": 2})
    inputs, target = generation.collate(split, model.config, [1], 1)
    assert inputs["source"].shape == (1, 3) and target.shape == (1, 2)
    np.testing.assert_array_equal(likelihood(model, split, model.config)[0], nll)


@pytest.mark.parametrize("settings", [{}, {"beam": 3, "sample": True, "temperature": 2.0}], ids=str)
def test_replies_are_the_same_in_any_batch(dataset, model, settings):
    split, decoding = dataset.splits["dev"], Decoding(max_length=5, **settings)
    rows = np.array([7, 0, 20, 11, 4])
    ids, scores = reply(model, split, rows, decoding)
    assert ids.shape == (5, decoding.beam, 5) and scores.shape == (5, decoding.beam)
    assert (ids[:, :, 0] > 0).all()
    again, ranked = reply(model, split, rows, decoding, batch_size=2)
    np.testing.assert_array_equal(again, ids)
    np.testing.assert_allclose(ranked, scores, atol=1e-4)
    other, _ = reply(model, split, rows, decoding, seed=2)
    assert (other != ids).any() == decoding.sample


def test_words_of_leaves_out_what_is_no_word(dataset):
    ids = dataset.vocabulary.encode(["hello", "ann", "nobody"])
    assert words_of(np.array([*ids, 1, 0, 0]), dataset.vocabulary) == ["hello", "ann", "_UNK_"]


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
        ("beam=3.5", r"^--decode beam= expects a value of type int\. Received: '3\.5'$"),
        ("beam=", r"beam= expects a value of type int\. Received: ''$"),
        ("sample=1", r"sample= expects a value of type bool\. Received: '1'$"),
        ("top_p=2", r"^top_p must be in \(0, 1\]\. Received: top_p=2\.0$"),
    ],
)
def test_parse_decoding_rejects(text, message):
    with pytest.raises(UserError, match=message):
        parse_decoding(text)


# === Metrics ===


def test_measure_compares_replies_with_targets(dataset, model, tmp_path):
    split, file = dataset.splits["dev"], tmp_path / "replies.txt"
    record = generation.measure(model, dataset, "dev", None, scores_out=file, decode="beam=2,max_length=5")
    lines = [line.split("\t") for line in file.read_text(encoding="utf-8").splitlines()]
    assert [source for source, _, _ in lines] == [text.replace("\t", " / ") for text in split.source_texts]
    assert [target for _, target, _ in lines] == split.target_texts
    replies = [text for _, _, text in lines]
    ids, _ = reply(model, split, range(21), Decoding(beam=2, max_length=5))
    assert replies == [" ".join(words_of(row[0], dataset.vocabulary)) for row in ids]
    assert len(set(replies)) > 2 and "_EOS_" not in " ".join(replies)

    nll, words = likelihood(model, split, model.config)
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
    assert record["decoding"] == dataclasses.asdict(Decoding(beam=2, max_length=5))
    assert record["unit"] == "words" and record["search"] == "beam of 2"
    shown = [0, 1, 3, 5, 7, 9, 10, 12, 14, 16, 18, 20]
    assert record["samples"] == [
        {"source": split.source_texts[i], "target": split.target_texts[i], "reply": replies[i]} for i in shown
    ]
    train_targets = dataset.splits["train"].target_texts
    assert record["baselines"] == baselines_of(train_targets, split.source_texts, split.target_texts)
    assert "human, 2 sources with several targets" in record["baselines"]
    assert "baselines" not in generation.measure(model, dataset, "dev", None, baselines=False, decode="max_length=1")


def test_a_reverse_model_is_measured_in_its_direction(dataset):
    config = Seq2SeqConfig(len(dataset.vocabulary), embedding_dim=7, hidden=10, reverse=True)
    reverse, split = randomised(Seq2Seq(config), 1, 0.7), dataset.splits["dev"]
    record = generation.measure(reverse, dataset, "dev", None, decode="max_length=3")
    swapped = dataclasses.replace(split, source=split.target, target=split.source)
    ids, _ = reply(reverse, swapped, range(21), Decoding(max_length=3))
    replies = [" ".join(words_of(row[0], dataset.vocabulary)) for row in ids]
    expected = generation_metrics(replies, [[text] for text in split.source_texts])
    assert {name: record["metrics"][name] for name in expected} == expected
    train_sources = dataset.splits["train"].source_texts
    assert record["baselines"] == baselines_of(train_sources, split.target_texts, split.source_texts)
    assert record["counts"]["words"] == split.source.lengths.sum()


# === Reranking ===


@pytest.fixture(scope="module")
def reverse_run(dataset, model, run, tmp_path_factory):
    """The directory of a run whose model reads replies and writes sources, with random weights."""
    path = tmp_path_factory.mktemp("reverse") / "run"
    settings = dataclasses.asdict(dataclasses.replace(model.config, reverse=True))
    made = Run.create(path, {**run.config, "settings": settings}, dataset.vocabulary)
    made.save_best(randomised(made.build_model(), 2, 0.7))
    return path


@pytest.mark.parametrize("weight", (0.0, 0.3, 1.0))
def test_rerank_matches_loops(dataset, model, reverse_run, weight):
    split, rows = dataset.splits["dev"], np.array([7, 1])
    reverse = Run.open(reverse_run).load_model()
    ids, scores = reply(model, split, rows, Decoding(beam=3, max_length=5))
    found, ranked = rerank(reverse, split, rows, ids, scores, weight)
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


def test_measure_takes_the_reply_that_a_reverse_model_chooses(dataset, model, reverse_run, run, tmp_path):
    split, decode = dataset.splits["dev"], "beam=3,max_length=5"
    given = {"baselines": False, "decode": decode, "scores_out": tmp_path / "replies", "reverse_run": reverse_run}
    record = generation.measure(model, dataset, "dev", None, **given, reverse_weight=0.7)
    replies = [line.split("\t")[2] for line in (tmp_path / "replies").read_text(encoding="utf-8").splitlines()]
    ids, scores = reply(model, split, range(21), Decoding(beam=3, max_length=5))
    reverse = Run.open(reverse_run).load_model()
    chosen, _ = rerank(reverse, split, np.arange(21), ids, scores, 0.7)
    assert replies == [" ".join(words_of(row[0], dataset.vocabulary)) for row in chosen]
    assert replies != [" ".join(words_of(row[0], dataset.vocabulary)) for row in ids]
    assert record["decoding"]["reverse_weight"] == 0.7
    assert generation.describe(record)[0].endswith("; beam of 3, reranked")
    with pytest.raises(UserError, match=r"expected a run trained with --set reverse=true\. Received: seq2seq$"):
        generation.measure(model, dataset, "dev", None, reverse_run=run.path)


def test_measure_has_no_parts_where_all_pairs_are_of_one_kind(dataset, model):
    """All pairs of train stand in train."""
    split = dataset.splits["dev"]
    for seen in (True, False):
        splits = {**dataset.splits, "dev": dataclasses.replace(split, seen=np.full(21, seen))}
        given = dataclasses.replace(dataset, splits=splits)
        record = generation.measure(model, given, "dev", None, baselines=False, decode="max_length=1")
        assert record["parts"] == {} and record["counts"]["unseen"] == 21 * (not seen)


def test_describe_says_how_replies_were_found():
    counts = {"pairs": 1234, "unseen": 7}
    for settings, how in (({}, "greedy"), ({"beam": 5}, "beam of 5"), ({"beam": 5, "sample": True}, "sampling")):
        record = {"counts": counts, "search": search_of(Decoding(**settings)), "unit": "mixed"}
        title, caption = generation.describe(record)
        assert title == f"1,234 pairs, 7 of them not in train; {how}"
        assert "tokenizer mixed" in caption


# === Training ===


def test_a_run_holds_all_that_is_needed(run, dataset):
    names = {"config.json", "vocabulary.txt", "best.weights.h5", "last.npz", "history.jsonl"}
    assert names <= {file.name for file in run.path.iterdir()}
    rows = run.history()
    assert [(row["step"], row["epoch"]) for row in rows] == [(5, 0.556), (9, 1.0)]  # 69 pairs, 8 a step
    assert rows[1]["loss"] < rows[0]["loss"] < np.log(len(dataset.vocabulary) + 1) + 0.1
    assert rows[1]["perplexity"] < rows[0]["perplexity"]
    assert run.config["settings"]["vocabulary_size"] == len(dataset.vocabulary)
    assert run.config["dataset"]["name"] == "small"
    model = run.load_model()
    metrics, _ = generation.validate(model, dataset.splits["dev"])
    assert metrics["perplexity"] == pytest.approx(min(row["perplexity"] for row in rows), rel=1e-4)


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


def test_evaluate_measures_writes_and_prints(run, dataset, tmp_path, capsys):
    replies_file, measured_file = tmp_path / "replies.txt", tmp_path / "measured.json"
    decode = "beam=2,max_length=5"
    record = evaluate(generation, run.path, "dev", measured_out=measured_file, scores_out=replies_file, decode=decode)
    rows = [line.split("\t") for line in replies_file.read_text(encoding="utf-8").splitlines()]
    expected = bleu([row[2] for row in rows], [[row[1]] for row in rows])
    assert {name: record["metrics"][name] for name in expected} == expected
    assert record["metrics"]["perplexity"] == pytest.approx(min(row["perplexity"] for row in run.history()), rel=1e-4)
    assert json.loads(measured_file.read_text())["metrics"] == record["metrics"]
    assert json.loads((run.path / "metrics.json").read_text())["dev"]["metrics"] == record["metrics"]
    assert (record["name"], record["task"], record["corpus"]) == ("Seq2seq, additive attention", "generation", "small")
    printed = " ".join(capsys.readouterr().out.split())
    assert "21 pairs, 7 of them not in train; beam of 2" in printed
    assert f"{record['metrics']['BLEU-2']:.4f}" in printed and "without the pairs of train" in printed
    with pytest.raises(
        UserError, match="--ties is not for generation, which has scores_out, decode, reverse_run, reverse_weight"
    ):
        evaluate(generation, run.path, "dev", ties="release")


def test_wrong_settings_are_refused_and_leave_nothing(prepared_generation, tmp_path):
    for settings, message in (
        ({"vocabulary_size": "5"}, r"--set vocabulary_size=5: .* decides vocabulary_size, it is \d+"),
        ({"hidden": "7", "bidirectional": "true"}, "hidden must be even"),
        ({"decoder_rate": "0"}, "decoder_rate must be above 0"),
        ({"hops": "3"}, r"no field 'hops'\. The model seq2seq has .*attention.*; its training has .*label_smoothing"),
    ):
        with pytest.raises(UserError, match=message):
            train_small("generation", prepared_generation, tmp_path / "run", settings)
        assert not (tmp_path / "run").exists()
