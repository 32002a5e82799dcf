"""Predictors of all tasks: runs keep examples that their predictors answer, what is said of a wrong
instance.
"""

import re

import numpy as np
import pytest
from helpers import copy_of, refusal

from colloquy.data.text_files import write_json
from colloquy.engine.predictor import Size
from colloquy.engine.run import EXAMPLES
from colloquy.tasks import TASKS
from colloquy.tasks.generation.predictor import LONGEST
from colloquy.tasks.reading_comprehension.predictor import windows_of


@pytest.fixture(scope="module")
def predictors(request):
    runs = {name: request.getfixturevalue(f"trained_{name}") for name in TASKS}
    return {name: (run, TASKS[name].predictor(run)) for name, run in runs.items()}


COMPILED = {
    "selection": lambda each: (each.model, each._matching._values),
    "dialog": lambda each: (each.with_attention,),
    "generation": lambda each: (each._decoder_of(1, LONGEST, False, False),),
    "reading_comprehension": lambda each: (each._reader, each._encoder),
}


@pytest.mark.parametrize("task", TASKS)
def test_a_run_keeps_examples_that_its_predictor_answers_by_one_graph_for_all_sizes(
    predictors, task
):
    run, predictor = predictors[task]
    examples = run.examples()
    assert 0 < len(examples) <= 3 and all(
        example["title"].startswith("dev, ") for example in examples
    )
    instances = [example["instance"] for example in examples]
    together = predictor.predict(instances)
    for instance, answer in zip(instances, together, strict=True):
        assert set(instance) <= set(predictor.Instance.model_fields)
        [alone] = predictor.predict([instance])
        assert alone.keys() == answer.keys() and _texts(alone) == _texts(answer)
        explained = predictor.explain(instance)
        assert _texts({name: explained[name] for name in answer}) == _texts(answer)
        for each in explained["attention"]:
            assert np.shape(each["weights"]) == (len(each["rows"]), len(each["columns"]))
    traced = [
        model.predict_function.experimental_get_tracing_count()
        for model in COMPILED[task](predictor)
    ]
    assert set(traced) == {1}


INSTANCES = {
    "selection": {"turns": ["a b", "c", "d e f", "g"], "candidates": ["h", "i j k"]},
    "dialog": {
        "history": [{"speaker": "user", "text": "a b c"}],
        "facts": ["d e"],
        "candidates": [],
    },
    "generation": {
        "turns": ["ann likes tea.", "rain"],
        "decode": "beam=5,max_length=7,against_empty=0.1",
    },
    "reading_comprehension": {"passage": "Ann lives in Rome. " * 100, "question": "Where!!!"},
}


def test_sizes_are_those_of_the_tokens_and_of_what_the_models_compute(predictors):
    """The limits of the small runs: 3 turns of 5 words; windows are as long as training's passages,
    400 words.
    """
    found = {
        task: predictor.size(predictor.valid(INSTANCES[task], ""))
        for task, (_, predictor) in predictors.items()
    }
    window = predictors["reading_comprehension"][1].window
    windows = len(windows_of(0, 500, window, window // 4))
    assert found == {
        "selection": Size({"turns": 7, "candidates": 4}, 2, (60 + 3 * 3, 16 + 3)),
        "dialog": Size({"history": 3, "facts": 2, "candidates": 0}, 1, (3, 256 + 4 * 3)),
        "generation": Size({"turns": 5}, 2 * 5, (7, 600 + 5)),
        "reading_comprehension": Size(
            {"passage": 500, "question": 4}, windows, (window + 4, 100 + 4)
        ),
    }
    assert windows > 1


@pytest.mark.parametrize("task", TASKS)
def test_details_follow_the_summary(predictors, task):
    run, predictor = predictors[task]
    dataset = TASKS[task].dataset_of(run)
    [example] = TASKS[task].examples(dataset, 1, "train")
    assert example["title"].startswith("train, ")
    summary = predictor.explain(example["instance"])["attention"]
    found = predictor.explain(example["instance"], details=True)["attention"]
    assert (
        summary
        and found[: len(summary)] == summary
        and not any("group" in each for each in summary)
    )
    details = found[len(summary) :]
    assert bool(details) == (task in ("selection", "dialog")) and all(
        each["group"] for each in details
    )
    for each in found:
        assert np.shape(each["weights"]) == (len(each["rows"]), len(each["columns"]))


def test_the_mean_over_heads_is_what_a_hop_attended_to(predictors):
    run, predictor = predictors["dialog"]
    [example] = TASKS["dialog"].examples(TASKS["dialog"].dataset_of(run), 1, "dev")
    history = example["instance"]["history"]
    assert history[-1]["speaker"] == "user" and {each["speaker"] for each in history} >= {
        "user",
        "bot",
    }
    mean, *hops = predictor.explain(example["instance"], details=True)["attention"]
    assert [hop["title"] for hop in hops] == mean["columns"] == ["hop 1", "hop 2"]
    assert hops[0]["rows"] == [f"{each['speaker']}: {each['text']}" for each in history[:-1]]
    assert hops[0]["columns"] == ["head 1", "head 2"]
    by_hop = np.array([hop["weights"] for hop in hops])  # (hops, memories, heads)
    np.testing.assert_allclose(by_hop.sum(axis=1), 1.0, atol=1e-5)
    np.testing.assert_allclose(by_hop.mean(axis=2).T, mean["weights"], atol=1e-6)
    assert np.ptp(by_hop, axis=2).max() > 1e-4  # heads differ


def _texts(value):
    """The value without numbers, which may differ in their last digits between batches."""
    if isinstance(value, dict):
        return {name: _texts(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_texts(each) for each in value]
    return value if isinstance(value, str) else type(value)


def test_each_instance_says_how_its_replies_are_found(predictors):
    _, predictor = predictors["generation"]
    instances = [
        {"turns": ["i like tea"], "decode": decode}
        for decode in ("beam=3,max_length=5", "", "beam=2")
    ]
    assert [len(answer["best"]) for answer in predictor.predict(instances)] == [3, 1, 2]
    for decode, message in (
        ("beam=6", "instance 0, decode: beam may be 1, 2, 3, 4, 5, 10, 20. Received: 6"),
        ("max_length=101", "decode: max_length may be 100 at most. Received: 101"),
        ("beam=" + "[" * 190, "decode: beam: input should be a valid integer"),
        ("temperature=nan", "decode: temperature: input should be a finite number"),
    ):
        assert message in refusal(predictor.predict, [{"turns": ["hi"], "decode": decode}])
    for turns in ([], [""], [" ", "\u200b"]):
        assert re.search("instance 0.* turns: ", refusal(predictor.predict, [{"turns": turns}]))


@pytest.mark.parametrize("silent", [True, False])
def test_a_bot_that_always_spoke_first_is_asked_as_if_it_had(
    trained_dialog, tmp_path_factory, silent
):
    run = copy_of(trained_dialog, tmp_path_factory)
    # the mask allows no greeting after silence, which the sample lacks
    (run.path / "action_mask.json").unlink()
    first = {"speaker": "user", "text": "<SILENCE>" if silent else "hello"}
    write_json(run.path / EXAMPLES, [{"title": "dev, dialog 1", "instance": {"history": [first]}}])
    predictor = TASKS["dialog"].predictor(run)
    silence, hello = {"speaker": "user", "text": ""}, {"speaker": "user", "text": "hello"}
    [greeting] = predictor.predict([{"history": [silence]}])
    said = [silence, {"speaker": "bot", "text": greeting["response"]}, hello]
    asked = predictor.explain({"history": [hello]})
    whole = predictor.explain({"history": said})
    if silent:
        assert asked == whole
    else:
        assert asked["attention"] == []
    begun = predictor.explain({"history": [{"speaker": "bot", "text": "hello"}, hello]})[
        "attention"
    ]
    assert [table["rows"] for table in begun] == [["bot: hello"]]  # the bot did speak first
    write_json(run.path / EXAMPLES, [{"title": "mine", "instance": {"history": []}}])
    assert "run, mine: history: list should have at least 1 item" in refusal(
        TASKS["dialog"].predictor, run
    )
