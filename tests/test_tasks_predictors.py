"""Predictors of all tasks: runs keep examples that their predictors answer."""

import math
import tracemalloc

import numpy as np
import pytest
from helpers import TASKS_ONE_FAST, instance_of, refusal

from colloquy.engine.examples import take_examples
from colloquy.models.decoding import Decoding
from colloquy.tasks import TASKS
from colloquy.tasks.generation.decoding_settings import parse_decoding
from colloquy.tasks.generation.request_search import LONGEST
from colloquy.tasks.generation.search import search_shape
from colloquy.tasks.reading_comprehension.windows import make_windows


@pytest.fixture(scope="module")
def runs(request):
    return {name: request.getfixturevalue(f"trained_{name}") for name in TASKS}


@pytest.fixture(scope="module")
def predictors(request):
    return {name: request.getfixturevalue(f"{name}_predictor") for name in TASKS}


def compiled_models(task, predictor):
    if task == "selection":
        return [predictor.model, predictor._matching._values]
    if task == "dialog":
        return [predictor.with_attention, predictor.responder.mask]
    if task == "generation":
        return [predictor.search.decoder_of_shape(search_shape(Decoding(), LONGEST))]
    return [predictor.span_finder.best_spans, predictor._flow_maps.encoder]


def without_numbers(value):
    """The value with types in place of numbers, whose last digits may differ between batches."""
    if isinstance(value, dict):
        return {name: without_numbers(part) for name, part in value.items()}
    if isinstance(value, list):
        return [without_numbers(part) for part in value]
    return value if isinstance(value, str) else type(value)


def assert_shapes_fit(maps):
    for attention in maps:
        shape = len(attention["rows"]), len(attention["columns"])
        assert np.shape(attention["weights"]) == shape


@pytest.mark.parametrize("task", TASKS_ONE_FAST)
def test_a_run_keeps_examples_that_its_predictor_answers_by_one_graph_for_all_sizes(
    runs, predictors, task
):
    predictor = predictors[task]
    examples = runs[task].examples()
    assert 0 < len(examples) <= 3
    instances = [example["instance"] for example in examples]
    for example, answer in zip(examples, predictor.predict(instances), strict=True):
        assert example["title"].startswith("dev, ")
        instance = example["instance"]
        assert set(instance) <= set(predictor.Instance.model_fields)
        [alone] = predictor.predict([instance])
        assert without_numbers(alone) == without_numbers(answer)
        explained = predictor.explain(instance)
        assert_shapes_fit(explained.pop("attention"))
        assert without_numbers(explained) == without_numbers(answer)
    for model in compiled_models(task, predictor):
        assert model.predict_function.experimental_get_tracing_count() == 1


def test_rows_are_what_the_models_compute(predictors):
    window = predictors["reading_comprehension"].span_finder.window_words
    num_windows = len(make_windows(0, 500, window))
    assert num_windows > 1
    instances = {
        "selection": {"turns": ["a b", "c", "d e f", "g"], "candidates": ["h", "i j k"]},
        "dialog": {"history": [{"speaker": "user", "text": "a b c"}]},
        "generation": {"turns": ["rain"], "decode": "beam=5,max_length=7,anti_lm_weight=0.1"},
        "reading_comprehension": {"passage": "Ann lives in Rome. " * 100, "question": "Where!!!"},
    }
    rows = {}
    for task, predictor in predictors.items():
        rows[task] = predictor.padded_rows(predictor.make_instance(instances[task], ""))
    assert rows == {
        "selection": 2,  # candidates
        "dialog": 1,  # ten sentences
        "generation": 2 * 5,  # hypotheses, twice against an empty source
        "reading_comprehension": num_windows * math.ceil(window / 100),
    }


@pytest.mark.parametrize("task", TASKS)
def test_details_follow_the_summary(runs, predictors, task):
    dataset = TASKS[task].dataset_of(runs[task])
    [example] = take_examples(TASKS[task], dataset, 1, "train", as_scored=True)
    assert example["title"].startswith("train, ")
    summary = predictors[task].explain(example["instance"])["attention"]
    maps = predictors[task].explain(example["instance"], details=True)["attention"]
    assert summary and maps[: len(summary)] == summary
    assert not any("group" in attention for attention in summary)
    details = maps[len(summary) :]
    assert bool(details) == (task in ("selection", "dialog"))
    assert all(attention["group"] for attention in details)
    assert_shapes_fit(maps)


def test_the_mean_over_heads_is_what_a_hop_attended_to(runs, predictors):
    dataset = TASKS["dialog"].dataset_of(runs["dialog"])
    [example] = take_examples(TASKS["dialog"], dataset, 1, "dev", as_scored=True)
    history = example["instance"]["history"]
    explained = predictors["dialog"].explain(example["instance"], details=True)
    mean, *hops = explained["attention"]
    assert [hop["title"] for hop in hops] == mean["columns"] == ["hop 1", "hop 2"]
    memories = [f"{sentence['speaker']}: {sentence['text']}" for sentence in history[:-1]]
    assert hops[0]["rows"] == memories
    assert hops[0]["columns"] == ["head 1", "head 2"]
    weights = np.array([hop["weights"] for hop in hops])  # (hops, memories, heads)
    np.testing.assert_allclose(weights.sum(axis=1), 1.0, atol=1e-5)
    np.testing.assert_allclose(weights.mean(axis=2).T, mean["weights"], atol=1e-6)
    assert np.ptp(weights, axis=2).max() > 1e-4  # heads differ


def test_each_instance_says_how_its_replies_are_found(predictors):
    predictor = predictors["generation"]
    instances = []
    for decode in ("beam=5,max_length=5", ""):
        instances.append({"turns": ["i like tea"], "decode": decode})
    assert [len(answer["best"]) for answer in predictor.predict(instances)] == [5, 1]


@pytest.mark.parametrize("task", TASKS)
def test_texts_are_not_kept(predictors, task):
    """A server reads texts for months; each of these takes up to a megabyte as tokens."""
    predictor = predictors[task]

    def read(numbers):
        for number in numbers:
            text = f"word{number} " * 4_000
            instance = predictor.make_instance(instance_of(task, text), "the instance")
            predictor.padded_rows(instance)
            predictor.count_tokens(text)

    read(range(2))
    tracemalloc.start()
    try:
        read(range(2, 22))
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 10**6


def test_searches_of_other_lengths_share_a_compiled_one():
    """Each compiled search takes a second, and memory that is kept."""
    shapes = set()
    for decode in ("max_length=5", "max_length=7", "max_length=100,min_length=2,block_ngrams=2"):
        shapes.add(search_shape(parse_decoding(decode), LONGEST))
    assert len(shapes) == 1


@pytest.mark.parametrize(
    ("decode", "message"),
    [
        ("beam=6", "instance 0, decode: beam may be 1, 5, 10. Received: 6"),
        ("max_length=101", "decode: max_length may be 100 at most. Received: 101"),
        ("beam=" + "[" * 190, "decode: beam: input should be a valid integer"),
        ("temperature=nan", "decode: temperature: input should be a finite number"),
    ],
)
def test_wrong_settings_of_a_search_and_no_turn_are_refused(predictors, decode, message):
    instance = {"turns": ["hi"], "decode": decode}
    assert message in refusal(predictors["generation"].predict, [instance])
    for turns in ([], [""], [" ", "\u200b"]):
        found = refusal(predictors["generation"].predict, [{"turns": turns}])
        assert "instance 0" in found and " turns: " in found
