"""One contract over all tasks: a model gives the same answers wherever it is asked.

Predictor = JSON lines = REST = chat completions = exported SavedModel.
"""

import json

import pytest
import tensorflow as tf
from echo import served
from fastapi.testclient import TestClient
from helpers import copy_of

from colloquy.engine.examples import take_examples
from colloquy.engine.export import export
from colloquy.engine.json_lines import predict_lines
from colloquy.serving.app import create_app
from colloquy.tasks import TASKS

pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
ENDPOINTS = {
    "selection": "rank",
    "reading_comprehension": "answer",
    "generation": "reply",
    "dialog": "respond",
}
ROLES = {"user": "user", "bot": "assistant"}


def assert_close(value, expected):
    """Texts are equal, numbers close."""
    if isinstance(expected, dict):
        assert value.keys() == expected.keys()
        for name in expected:
            assert_close(value[name], expected[name])
    elif isinstance(expected, list):
        assert len(value) == len(expected)
        for item, expected_item in zip(value, expected, strict=True):
            assert_close(item, expected_item)
    elif isinstance(expected, float):
        assert value == pytest.approx(expected, rel=1e-3, abs=1e-4)
    else:
        assert value == expected


@pytest.mark.slow
@pytest.mark.parametrize("name", TASKS)
def test_answers_agree(name, request, tmp_path):
    assert_agreement(TASKS[name], request.getfixturevalue(f"trained_{name}"), tmp_path)


@pytest.mark.slow
def test_answers_agree_by_the_search_of_a_run(trained_generation, tmp_path, tmp_path_factory):
    run = copy_of(trained_generation, tmp_path_factory)
    run.update({"decode": "beam=3,length_penalty=1,min_length=4,max_length=9,anti_lm_weight=0.2"})
    assert_agreement(TASKS["generation"], run, tmp_path)


def assert_agreement(task, run, tmp_path):
    predictor = task.predictor(run)
    dataset = task.dataset_of(run)
    examples = take_examples(task, dataset, 10, "train", as_scored=task.name == "dialog")
    instances = [example["instance"] for example in examples]
    if task.name == "selection":
        instances.append(with_empty_turns(instances))
    expected = predictor.predict(instances)
    if task.name == "selection":
        whole = instances[-1]
        read = {**whole, "turns": [turn for turn in whole["turns"] if turn.strip()]}
        assert_close(expected[-1], predictor.predict([read])[0])

    # JSON lines.
    lines = "".join(f"{json.dumps(instance)}\n" for instance in instances)
    (tmp_path / "instances.jsonl").write_text(lines, encoding="utf-8")
    predict_lines(predictor, tmp_path / "instances.jsonl", tmp_path / "answers.jsonl")
    answers = (tmp_path / "answers.jsonl").read_text(encoding="utf-8").splitlines()
    assert_close([json.loads(answer) for answer in answers], expected)

    # REST and chat completions.
    with TestClient(create_app({"m": served(predictor, "m")})) as client:
        body = {"instances": instances, "signature_name": "serving_default"}
        response = client.post("/v1/models/m:predict", json=body)
        assert_close(response.json()["predictions"], expected)
        for instance, answer in zip(instances, expected, strict=True):
            messages = messages_of(instance)
            if messages:
                body = {"model": "m", "messages": messages}
                completion = client.post("/v1/chat/completions", json=body).json()
                text = completion["choices"][0]["message"]["content"]
                assert text == predictor.reply(answer)

    # SavedModel.
    model = tf.saved_model.load(str(export(task, run, tmp_path / "model")))
    for instance, answer in zip(instances, expected, strict=True):
        texts = task.export_inputs(instance)
        inputs = {field: tf.constant(values, tf.string) for field, values in texts.items()}
        outputs = model.signatures[ENDPOINTS[task.name]](**inputs)
        assert_exported(task.name, outputs, answer)


def with_empty_turns(instances):
    """A copy of the first context of several turns, with empty ones between the first two."""
    instance = next(instance for instance in instances if len(instance["turns"]) > 1)
    first, *others = instance["turns"]
    return {**instance, "turns": [first, "", " ", *others]}


def messages_of(instance):
    """The messages of an instance that is a conversation without facts; else none."""
    if "candidates" in instance or "passage" in instance:
        return []
    conversation = []
    if "turns" in instance:
        for place_from_end, text in enumerate(reversed(instance["turns"]), 1):
            conversation.insert(0, ("user" if place_from_end % 2 else "bot", text))
    else:
        for sentence in instance["history"]:
            conversation.append((sentence["speaker"], sentence["text"]))
    if any(speaker not in ROLES for speaker, _ in conversation):
        return []
    return [{"role": ROLES[speaker], "content": text} for speaker, text in conversation]


def assert_exported(name, outputs, answer):
    if name == "selection":
        logits = outputs["logits"].numpy()[0].tolist()
        assert_close(logits, answer["logits"])
    elif name == "reading_comprehension":
        assert outputs["answer"].numpy()[0].decode() == answer["answer"]
        assert ("confidence" in outputs) == (answer["confidence"] is not None)
    elif name == "generation":
        texts = [text.decode() for text in outputs["replies"].numpy()[0]]
        assert texts == [best["text"] for best in answer["best"]]
        assert texts[0] == answer["response"]
        scores = outputs["scores"].numpy()[0].tolist()
        assert_close(scores, [best["score"] for best in answer["best"]])
    else:
        assert outputs["response"].numpy()[0].decode() == answer["response"]
