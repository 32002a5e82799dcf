"""`tasks.generation.scoring` and `task`: loss and likelihood against loops, measured replies."""

import collections
import json
from types import SimpleNamespace

import keras
import numpy as np
import pytest
from helpers import copy_of, evaluate, random_seq2seq, refusal, scoring_of, to_numpy
from reference_recurrent import nll_in_loops

from colloquy.data.vocabulary import Vocabulary
from colloquy.engine.evaluate import evaluate_all
from colloquy.engine.run import Run
from colloquy.engine.workdir import create_run
from colloquy.metrics.generation import baselines_of, generation_metrics
from colloquy.models.decoding import Decoding
from colloquy.models.seq2seq import Seq2Seq, Seq2SeqConfig
from colloquy.tasks import TASKS
from colloquy.tasks.generation.data import SourceConfig
from colloquy.tasks.generation.loss import word_nll
from colloquy.tasks.generation.scoring import negative_log_likelihood, nll_scorer
from colloquy.tasks.generation.search import reply, words_of
from colloquy.tasks.generation.training import Training

generation = TASKS["generation"]
B, T, V = 3, 5, 7  # pairs, words of a target, words


def test_loss_is_the_mean_over_words_whatever_the_padding():
    rng = np.random.default_rng(0)
    lengths = np.array([5, 2, 1])
    is_word = np.arange(T) < lengths[:, None]
    target = (rng.integers(1, V, (B, T)) * is_word).astype("int32")
    logits = rng.normal(size=(B, T, V)).astype("float32")
    nll_by_word = np.zeros((B, T))
    for place in zip(*target.nonzero(), strict=True):
        nll_by_word[place] = nll_in_loops(target[place], logits[place])

    half = to_numpy(word_nll(target, logits.astype("float16")))
    assert half.dtype == np.float32
    np.testing.assert_allclose(half, nll_by_word, atol=0.01)

    loss = generation.loss(Training())
    losses = to_numpy(loss(target, logits))
    # a pair counts by its words, 8 in all
    np.testing.assert_allclose(losses, nll_by_word.sum(axis=1) * B / 8, rtol=1e-5)
    padded_target = np.pad(target, ((0, 0), (0, 2)))
    padded_logits = np.pad(logits, ((0, 0), (0, 2), (0, 0)), constant_values=9.0)
    np.testing.assert_allclose(to_numpy(loss(padded_target, padded_logits)), losses, rtol=1e-5)
    assert to_numpy(loss(np.zeros((B, T), "int32"), logits)).tolist() == [0.0] * B
    assert generation.loss_counts(target).tolist() == lengths.tolist()


@pytest.mark.slow
def test_the_likelihood_of_a_pair_is_the_same_in_any_batch(
    generation_dataset, generation_model, monkeypatch
):
    split = generation_dataset.splits["dev"]
    nll = negative_log_likelihood(generation_model, split)
    np.testing.assert_allclose(
        negative_log_likelihood(generation_model, split, batch_size=5), nll, rtol=1e-4
    )
    for row in (0, 11, 20):
        inputs, target = split.collate([row])
        logits = to_numpy(generation_model(inputs))[0]
        by_word = [nll_in_loops(word, x) for word, x in zip(target[0], logits, strict=True)]
        assert nll[row] == pytest.approx(sum(by_word), rel=1e-4)
    monkeypatch.setattr("colloquy.tasks.generation.scoring.WORDS_AT_ONCE", 11)
    np.testing.assert_allclose(negative_log_likelihood(generation_model, split), nll, rtol=1e-5)
    # Training cuts pairs, the likelihood does not.
    monkeypatch.setattr("colloquy.tasks.generation.data.MAX_SOURCE", 3)
    monkeypatch.setattr("colloquy.tasks.generation.data.MAX_TARGET", 2)
    inputs, target = generation.collate(split, generation_model.config, [1], 1)
    assert inputs["source"].shape == (1, 3) and target.shape == (1, 2)
    np.testing.assert_allclose(negative_log_likelihood(generation_model, split), nll, rtol=1e-5)


def test_validation_is_by_perplexity_and_compiles_once(generation_dataset, generation_model):
    split = generation_dataset.splits["dev"]
    nll = negative_log_likelihood(generation_model, split)
    perplexity = np.exp(nll.sum() / split.target.lengths.sum())
    for _ in range(2):
        metrics, score = generation.validate(generation_model, split)
        assert metrics == {"perplexity": pytest.approx(perplexity, rel=1e-5)}
        assert score == pytest.approx(1 / metrics["perplexity"])
    assert nll_scorer(generation_model).predict_function.experimental_get_tracing_count() == 1


@pytest.mark.parametrize("rate", (1.0, 5.0))
def test_the_decoder_moves_at_its_own_rate(rate):
    """Adam's first step is the learning rate, whatever the gradient."""
    model = Seq2Seq(Seq2SeqConfig(vocabulary_size=11, embedding_dim=7, hidden=10, layers=2))
    adam = generation.optimizer(Training(decoder_rate=rate, gradient_clip=0.0), 10)
    before = [variable.numpy() for variable in model.trainable_variables]
    gradients = [np.full(variable.shape, 3.0, "float32") for variable in model.trainable_variables]
    adam.apply(
        [keras.ops.convert_to_tensor(gradient) for gradient in gradients], model.trainable_variables
    )
    moved = collections.defaultdict(set)
    for variable, start in zip(model.trainable_variables, before, strict=True):
        step = np.abs(variable.numpy() - start)
        np.testing.assert_allclose(step, step.mean(), atol=1e-6)
        moved[variable.path.split("/")[0]].add(round(float(step.mean()), 5))
    assert moved == {
        "word_embedding": {0.001},
        "encoder": {0.001},
        "decoder": {0.001 * rate},
        "logits": {0.001 * rate},
    }


# === From prepared pairs to scores ===

PAIRS = 21  # of dev
FOUND = {
    "I am Dee.": ["hello dee , what do you like ?", "Hello!", "i like tea ."],
    "x\tI am Ann.\tHello ann, what do you like?": ["I like rain.", "i like noise ."],
    "i like zebras .": ["tea is fine"],
}


@pytest.fixture(scope="module")
def run(trained_generation, tmp_path_factory):
    """A copy, into which evaluate.py may write."""
    return copy_of(trained_generation, tmp_path_factory)


def columns_of(answers):
    """Sources, targets and replies of answers."""
    rows = [line.split("\t") for line in answers]
    return [list(column) for column in zip(*rows, strict=True)]


def replies_to(model, sources, vocabulary, decoding):
    ids, _ = reply(model, sources, decoding)
    return [" ".join(words_of(best, vocabulary)) for best in ids[:, 0]]


@pytest.mark.slow
@pytest.mark.parametrize("reverse", (False, True))
def test_measure_compares_replies_with_targets(generation_dataset, reverse):
    model = random_seq2seq(generation_dataset, reverse=reverse)
    train = generation_dataset.splits["train"].in_direction_of(model.config)
    dev = generation_dataset.splits["dev"].in_direction_of(model.config)
    decode = "beam=2,max_length=5"
    scoring = scoring_of(generation, model, generation_dataset, "dev", decode=decode)
    record, _, answers = generation.measure(scoring)

    sources, targets, replies = columns_of(answers)
    assert sources == [text.replace("\t", " / ") for text in dev.source_texts]
    assert targets == [text.replace("\t", " / ") for text in dev.target_texts]
    decoding = Decoding(beam=2, max_length=5)
    assert replies == replies_to(model, dev.source, generation_dataset.vocabulary, decoding)
    assert len(set(replies)) > 2

    nll, words = negative_log_likelihood(model, dev), dev.target.lengths
    unseen = np.arange(2, PAIRS, 3)
    for metrics, rows in (
        (record["metrics"], np.arange(PAIRS)),
        (record["parts"]["without the pairs of train"], unseen),
    ):
        references = [[dev.target_texts[i]] for i in rows]
        expected = generation_metrics([replies[i] for i in rows], references)
        perplexity = np.exp(nll[rows].sum() / words[rows].sum())
        assert metrics == {"perplexity": pytest.approx(perplexity, rel=1e-4), **expected}
    distinct = len(set(dev.source_texts))
    counts = {"pairs": PAIRS, "unseen": 7, "sources": distinct, "words": int(words.sum())}
    assert record["counts"] == counts
    assert record["unit"] == "words" and record["search"] == "beam=2, max_length=5"
    baselines = baselines_of(train.target_texts, dev.source_texts, dev.target_texts)
    assert record["baselines"] == baselines
    assert ("human, 2 sources with several targets" in baselines) == (not reverse)


@pytest.fixture
def references(tmp_path):
    path = tmp_path / "references.json"
    path.write_text(json.dumps(FOUND), encoding="utf-8")
    return path


def test_replies_are_compared_with_all_references_of_their_source(
    run, references, tmp_path, capsys
):
    options = {"decode": "min_length=3,max_length=7", "out": tmp_path / "replies.txt"}
    record = evaluate(generation, run.path, "references", data=references, **options)
    dataset, model = generation.dataset_of(run, references), run.load_model()
    split = dataset.splits["references"]
    sources = split.source.take(np.array([0, 3, 5]))
    decoding = Decoding(min_length=3, max_length=7)
    replies = replies_to(model, sources, dataset.vocabulary, decoding)
    groups = [split.target_texts[:3], split.target_texts[3:5], split.target_texts[5:]]
    expected = generation_metrics(replies, groups)
    words = int(split.target.lengths.sum())
    perplexity = np.exp(negative_log_likelihood(model, split).sum() / words)
    assert record["metrics"] == {"perplexity": pytest.approx(perplexity, rel=1e-4), **expected}
    assert record["counts"] == {"pairs": 6, "sources": 3, "words": words}
    assert record["parts"] == {}
    train = generation.dataset_of(run).splits["train"].target_texts
    baselines = baselines_of(train, split.source_texts, split.target_texts, several=True)
    assert record["baselines"] == baselines

    lines = (tmp_path / "replies.txt").read_text(encoding="utf-8").splitlines()
    assert columns_of(lines)[2][3:] == [replies[1], replies[1], replies[2]]
    printed = " ".join(capsys.readouterr().out.split())
    assert "6 references of 3 sources; max_length=7, min_length=3" in printed
    assert "references" in json.loads((run.path / "metrics.json").read_text())


@pytest.mark.slow
def test_a_run_alone_is_enough(run, references, tmp_path):
    """Its dataset may be gone. Each run reads the references by its own words."""
    record = {**run.record, "dataset": {**run.dataset, "path": str(tmp_path / "gone")}}
    words = run.vocabulary.words
    datasets = []
    for name, order in (("a", words), ("b", (*words[:2], *words[:1:-1]))):
        other = create_run(tmp_path / name, record, Vocabulary(order))
        other.save_best(run.load_model())
        datasets.append(generation.dataset_of(other, references))
    assert datasets[0].splits.keys() == {"references"}
    targets = [dataset.splits["references"].target.lists() for dataset in datasets]
    assert targets[0] != targets[1]

    evaluate_all(TASKS, [str(tmp_path / "[ab]")], ["references"], data=str(references))
    scores = json.loads((tmp_path / "a" / "metrics.json").read_text())["references"]
    assert list(scores["baselines"]) == ["human, 2 sources with several targets"]


def test_a_run_that_does_not_say_how_texts_are_read_is_refused(run, references):
    other = Run(run.path, {**run.record, "dataset": {**run.dataset, "text": {"lower": True}}})
    message = f"{run.path}: tokenizer: "
    assert message in refusal(generation.predictor, other)
    assert message in refusal(generation.export_archive, other, None, None)
    assert message in refusal(generation.dataset_of, other, references)


def test_examples_read_as_people_write():
    source_texts = ["我 会 用 筷 子 。\tyes , a little ."]
    split = SimpleNamespace(source_texts=source_texts, target_texts=["oh !"])
    source_config = SourceConfig(tokenizer="mixed", lower=True, turns=2)
    example = generation.example(SimpleNamespace(source_config=source_config), split, 0)
    instance = {"turns": ["我会用筷子。", "yes, a little."]}
    assert example == {"instance": instance, "expected": ["oh!"]}
