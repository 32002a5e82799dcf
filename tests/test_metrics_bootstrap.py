"""Differences of two models: metrics by example add up to the metrics, intervals by a bootstrap."""

import itertools
import json
import random

import numpy as np
import pytest
import sacrebleu
from helpers import TASKS_ONE_FAST, copy_of, refusal

from colloquy.engine.compare import compare
from colloquy.engine.evaluation import Evaluation
from colloquy.metrics import dialog, generation, ranking, reading_comprehension
from colloquy.metrics.bootstrap import Additive, differences
from colloquy.metrics.generation import bleu_by_reply
from colloquy.tasks import TASKS


def metric_of(additive):
    return float(additive.of_sums(additive.terms.sum(axis=0)))


def test_seeds_are_averaged_and_whole_examples_drawn():
    sizes = np.array([3.0, 1.0])  # responses of two dialogs
    models = []
    for correct in ([3, 1], [2, 1], [1, 0], [0, 1]):
        models.append({"per_response": Additive(np.stack([correct, sizes], axis=1))})
    found = differences(models[:2], models[2:])["per_response"]
    assert (found["one"], found["other"]) == (7 / 8, 1 / 4)
    assert found["difference"] == pytest.approx(5 / 8)
    # All draws are the one dialog or the other.
    assert [found["low"], found["high"]] == pytest.approx([1 / 2, 2 / 3])


def test_the_interval_is_that_of_a_mean_of_many_examples():
    gains = np.random.default_rng(0).normal(0.1, 1.0, 400)
    found = differences([{"x": Additive.mean(gains)}], [{"x": Additive.mean(0 * gains)}])["x"]
    assert found["difference"] == pytest.approx(gains.mean())
    half = (found["high"] - found["low"]) / 2
    assert half == pytest.approx(1.96 * gains.std() / 20, rel=0.05)
    assert found["low"] < gains.mean() < found["high"]


@pytest.mark.parametrize("seed", range(5))
def test_bleu_of_sums_is_that_of_sacrebleu(seed):
    rng = random.Random(seed)

    def draw(longest):
        return " ".join(rng.choice("abc") for _ in range(rng.randint(0, longest)))

    replies = [draw(6) for _ in range(4 if seed else 1)]
    references = [[draw(7) or "a" for _ in range(rng.randint(1, 3))] for _ in replies]
    found = {name: metric_of(value) for name, value in bleu_by_reply(replies, references).items()}
    columns = list(itertools.zip_longest(*references))  # the first references, then the second ones
    for n in range(1, 5):
        scorer = sacrebleu.metrics.BLEU(tokenize="none", max_ngram_order=n, force=True)
        expected = scorer.corpus_score(replies, columns).score / 100
        assert found[f"BLEU-{n}"] == pytest.approx(expected)


def positives_above_zero(scores, labels, contexts):
    return np.sum(labels * (scores > 0)) / len(set(contexts))


OWN = {
    "selection": (ranking, positives_above_zero),
    "dialog": (dialog, lambda predicted, gold, dialogs: np.mean(predicted == gold)),
    "generation": (generation, lambda replies, _: np.mean([len(reply) for reply in replies])),
    "reading_comprehension": (
        reading_comprehension,
        lambda predictions, answers: len(predictions.keys() & answers) / len(answers),
    ),
}
"""For each task the module of its metrics, and a metric of one's own that is a mean."""


@pytest.mark.parametrize("task", TASKS_ONE_FAST)
def test_metrics_by_example_add_up_and_a_model_is_compared(
    task, request, tmp_path_factory, capsys, monkeypatch
):
    module, own = OWN[task]
    monkeypatch.setitem(module.ADDED, "own", own)
    monkeypatch.setitem(module.ADDED, "total", lambda first, *_: len(first))
    run = request.getfixturevalue(f"trained_{task}")
    dataset = TASKS[task].dataset_of(run)
    evaluation = Evaluation(TASKS[task], [copy_of(run, tmp_path_factory)], dataset)
    record = evaluation.score(baselines=False)
    metrics = TASKS[task].measure(evaluation.scoring("dev")).by_example()
    for name, additive in metrics.items():
        assert metric_of(additive) == pytest.approx(record["metrics"][name], rel=1e-6), name

    compared = compare(TASKS, [run], [run], "dev")
    assert compared["metrics"].keys() == metrics.keys()
    assert "own" in metrics and "total" not in metrics
    for row in compared["metrics"].values():
        assert row["difference"] == row["low"] == row["high"] == 0.0
    shown = capsys.readouterr().out
    assert "95 % interval" in shown
    assert "note: total is no mean over examples, so it has no interval" in shown
    json.dumps(compared, allow_nan=False)


@pytest.mark.slow
def test_models_of_other_examples_are_not_compared(trained_selection, trained_dialog):
    message = refusal(compare, TASKS, [trained_selection], [trained_dialog], "dev")
    assert "expected runs with the same examples of dev" in message
