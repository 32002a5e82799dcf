"""Predictors of all tasks: runs keep examples that their predictors answer, what is said of a wrong instance."""

import numpy as np
import pytest

from base.files import UserError
from tasks import TASKS


@pytest.fixture(scope="module")
def predictors(request):
    runs = {name: request.getfixturevalue(f"trained_{name}") for name in TASKS}
    return {name: (run, TASKS[name].predictor(run)) for name, run in runs.items()}


@pytest.mark.parametrize("task", TASKS)
def test_a_run_keeps_examples_that_its_predictor_answers(predictors, task):
    run, predictor = predictors[task]
    examples = run.examples()
    assert 0 < len(examples) <= 3 and all(example["title"].startswith("dev, ") for example in examples)
    instances = [example["instance"] for example in examples]
    together = predictor.predict(instances)
    for instance, answer in zip(instances, together, strict=True):
        assert set(instance) <= set(predictor.fields)
        [alone] = predictor.predict([instance])
        assert alone.keys() == answer.keys() and _texts(alone) == _texts(answer)
        explained = predictor.explain(instance)
        assert _texts({name: explained[name] for name in answer}) == _texts(answer)
        for each in explained["attention"]:
            assert np.shape(each["weights"]) == (len(each["rows"]), len(each["columns"]))


def _texts(value):
    """The value without numbers, which may differ in their last digits between batches."""
    if isinstance(value, dict):
        return {name: _texts(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_texts(each) for each in value]
    return value if isinstance(value, str) else type(value)


def test_examples_are_those_of_dev(predictors, request):
    run, _ = predictors["reading_comprehension"]
    dev = TASKS["reading_comprehension"].load_dataset(request.getfixturevalue("prepared_reading")).splits["dev"]
    last = run.examples()[-1]
    assert last["title"] == f"dev, question {len(dev)}"
    assert last["instance"]["passage"] == dev.texts[dev.context[-1]]
    assert last["instance"]["question"] == dev.question_texts[-1] != ""


def test_each_instance_says_how_its_replies_are_found(predictors):
    _, predictor = predictors["generation"]
    instances = [{"turns": ["i like tea"], "decode": decode} for decode in ("beam=3,max_length=5", "", "beam=2")]
    assert [len(answer["best"]) for answer in predictor.predict(instances)] == [3, 1, 2]


@pytest.mark.parametrize(
    ("decode", "message"),
    [
        ("beam=21", "instance 0, decode: beam may be 20 at most. Received: 21"),
        ("max_length=101", "max_length may be 100 at most. Received: 101"),
        ("beams=2", "no field 'beams'"),
    ],
)
def test_decoding_beyond_the_limits_is_refused(predictors, decode, message):
    _, predictor = predictors["generation"]
    with pytest.raises(UserError, match=message):
        predictor.predict([{"turns": ["hi"], "decode": decode}])


def test_a_call_brings_what_it_finds(predictors, monkeypatch):
    _, predictor = predictors["dialog"]
    call = next(text for text in predictor.world.candidates if text.startswith("api_call"))
    history = [{"speaker": "user", "text": "hello"}]
    [answer] = predictor.predict([{"history": history, "candidates": [call]}])
    assert answer["response"] == call and answer["facts"]
    other = next(text for text in predictor.world.candidates if not text.startswith("api_call"))
    assert predictor.predict([{"history": history, "candidates": [other]}])[0]["facts"] == []
    assert " ".join(predictor.world.knowledge[0]) == predictor.knowledge[0]
