"""serving/models.py with real models: runs, exported models, an index, their metadata."""

import json
import os
import shutil
import threading
import time

import pytest
import tensorflow as tf
from fastapi.testclient import TestClient
from helpers import TASKS_ONE_FAST, flip_bit, ran, refusal
from tensorflow.python.eager import context
from walks import request_walk

from colloquy.base.files import UserError, seal
from colloquy.engine import parallel
from colloquy.engine.export import export
from colloquy.engine.run import Run
from colloquy.serving.app import create_app
from colloquy.serving.limits import Limits
from colloquy.serving.models import RETRY, Served, open_model, start_tensorflow
from colloquy.tasks import TASKS


@pytest.fixture(scope="module")
def selection_run(trained_selection, prepared, tmp_path_factory):
    """A run with an index in its directory."""
    run = shutil.copytree(trained_selection.path, tmp_path_factory.mktemp("served") / "run")
    flags = "--corpus=smn", f"--source={prepared.parent / 'raw'}", f"--out={run / 'index'}"
    ran("tools/build_index.py", f"--run={run}", *flags)
    return run


def test_a_run_with_an_index_finds_candidates_itself(selection_run):
    model = open_model("dam", selection_run)
    assert model.metadata["responses"] > 5
    instance = model.metadata["examples"][0]["instance"]
    turns = instance["turns"]
    with TestClient(create_app({"dam": model})) as client:

        def ask(verb, *instances):
            answer = client.post(f"/v1/models/dam:{verb}", json={"instances": list(instances)})
            assert answer.status_code == 200, answer.text
            return answer.json()["predictions" if verb == "predict" else "explanations"]

        found, given = ask("predict", {"turns": turns}, instance)
        assert found["order"] == list(range(len(found["scores"])))
        assert len(found["candidates"]) == len(found["said_to"]) == len(found["scores"]) <= 20
        [again] = ask("predict", {"turns": turns, "candidates": found["candidates"]})
        assert (
            again["scores"] == pytest.approx(found["scores"], abs=1e-4)
            and "candidates" not in again
        )
        assert len(given["scores"]) == len(instance["candidates"])
        # without a word in the last turn
        assert ask("predict", {"turns": [*turns, ""]})[0]["candidates"]
        [shown] = ask("explain", {"turns": turns})
        assert shown["candidates"][0] == found["candidates"][0] and shown["attention"]
        assert ask("explain", instance)[0]["attention"][0]["title"].startswith("turn ")


def test_an_index_is_for_a_run_of_selection(trained_dialog, selection_run):
    with pytest.raises(UserError, match=r"an index is for a model of selection. Received: dialog"):
        _ = open_model("bot", trained_dialog.path, index=selection_run / "index").metadata


def test_what_is_said_of_a_run(trained_reading_comprehension, tmp_path):
    path = shutil.copytree(trained_reading_comprehension.path, tmp_path / "run")
    (path / "README.md").write_bytes(b"caf\xe9")  # a note of the user's, in another encoding
    said = open_model("reader", path).metadata
    rows = trained_reading_comprehension.history()
    assert (
        said["scores"]["dev"]["F1"] == max(row["F1"] for row in rows)
        and "loss" not in said["scores"]["dev"]
    )
    assert (said["corpus"], said["note"]) == ("small", "")
    (path / "metrics.json").write_text(json.dumps({"test": {"metrics": {"F1": 0.75}}}))
    assert set(open_model("reader", path).metadata["scores"]) == {"dev", "test"}
    (path / "metrics.json").write_text(json.dumps({"dev": {"metrics": {"F1": 0.125}}}))
    assert open_model("reader", path).metadata["scores"] == {"dev": {"F1": 0.125}}
    (path / "page.json").write_text("[]")
    assert "page.json" in refusal(open_model, "reader", path)
    (path / "page.json").unlink()
    config = json.loads((path / "config.json").read_text())
    config["dataset"]["name"] = "sample-reading"
    (path / "config.json").write_text(json.dumps(config))
    assert open_model("reader", path).metadata["note"].startswith("A toy")


@pytest.mark.parametrize("task", TASKS_ONE_FAST)
def test_every_run_is_warmed_up_and_served_and_a_request_passes_at_most_ten_files(task, request):
    model = open_model("m", request.getfixturevalue(f"trained_{task}").path)
    model.warm_up()
    instances = [example["instance"] for example in model.metadata["examples"]]
    assert ("knowledge" in model.metadata) == (task == "dialog")
    files = request_walk(request.getfixturevalue(f"trained_{task}").path)
    assert {"serving/app.py", f"tasks/{task}/predictor.py"} < set(files) and len(files) <= 10, (
        sorted(files)
    )
    with TestClient(create_app({"m": model})) as client:
        answer = client.post("/v1/models/m:predict", json={"instances": instances})
    assert answer.status_code == 200 and len(answer.json()["predictions"]) == len(instances)


@pytest.mark.parametrize(
    ("task", "name"), [("selection", "_split"), ("reading_comprehension", "_read")]
)
def test_one_thread_of_tensorflow_computes_a_large_request_with_equal_results(
    task, name, request, monkeypatch
):
    found, run = [], request.getfixturevalue(f"trained_{task}")
    model, instances = (
        open_model("m", run.path),
        [example["instance"] for example in run.examples()],
    )
    assert model.predictor.predict(instances) == TASKS[task].predictor(run).predict(instances)
    before = getattr(model.predictor, name)

    def note(*inputs):
        found.append(context.context().function_call_options.executor_type)
        return before(*inputs)

    monkeypatch.setattr(model.predictor, name, note)
    answers = []
    for limits in (Limits(), Limits(large=1)):
        with TestClient(create_app({"m": model}, limits)) as client:
            answers.append(
                client.post("/v1/models/m:predict", json={"instances": instances[:1]}).json()
            )
    assert set(found) == {None, "SINGLE_THREADED_EXECUTOR"} and answers[0] == answers[1]


def test_threads_of_tensorflow_have_a_lower_priority_than_their_server(monkeypatch):
    found = []

    def note(shape):
        found.append(os.getpriority(os.PRIO_PROCESS, threading.get_native_id()))

    def start():
        os.nice(7)  # of this thread alone
        start_tensorflow()

    monkeypatch.setattr(parallel, "MOST", 4)
    monkeypatch.setattr("keras.ops.zeros", note)
    thread = threading.Thread(target=start)
    thread.start()
    thread.join()
    assert found == [os.getpriority(os.PRIO_PROCESS, threading.get_native_id()) + 12]


def test_a_damaged_model_is_loaded_again_after_its_files_change_or_a_minute(
    trained_selection, tmp_path, monkeypatch
):
    run, loads = Run.open(shutil.copytree(trained_selection.path, tmp_path / "run")), []
    load = TASKS["selection"].predictor
    monkeypatch.setattr(TASKS["selection"], "predictor", lambda run: loads.append(run) or load(run))
    served = open_model("dam", run.path)
    flip_bit(run.path / "best.weights.h5")
    for _ in range(3):
        with pytest.raises(UserError, match=r"best\.weights\.h5 is damaged"):
            _ = served.predictor
    assert len(loads) == 1
    later = time.monotonic() + RETRY
    monkeypatch.setattr(time, "monotonic", lambda: later)
    with pytest.raises(UserError, match="is damaged"):
        _ = served.predictor
    assert len(loads) == 2
    flip_bit(run.path / "best.weights.h5")
    assert served.predictor is served.predictor and len(loads) == 3


def test_a_model_is_loaded_again_after_an_error_that_its_files_did_not_cause():
    errors = iter([MemoryError, UserError])

    def load():
        raise next(errors)("once")

    served = Served("m", "1", load, {})
    for expected in (MemoryError, UserError, UserError):
        with pytest.raises(expected, match="once"):
            _ = served.predictor


def unsigned(path):
    (path / "checksums.json").unlink()


def foreign(path):
    """A SavedModel of somebody else, whose checksums are right."""
    shutil.rmtree(path)
    module = tf.Module()
    module.call = tf.function(
        lambda name: {"read": tf.io.read_file(name)}, [tf.TensorSpec((), tf.string, "name")]
    )
    tf.saved_model.save(module, str(path), signatures={"call": module.call})
    seal(path)


SPOILT = [
    (lambda path: flip_bit(path / "saved_model.pb"), False, "was not written by export.py"),
    (lambda path: (path / "saved_model.pb").write_bytes(b""), True, "TensorFlow cannot load"),
    (lambda path: (path / "assets" / "more.txt").touch(), False, "was not written by export.py"),
    (unsigned, False, "was not written by export.py.*--trust_saved_models"),
    (foreign, False, "expected a signature of export.py, answer, rank, reply, respond"),
]


def test_an_exported_model_is_served_and_only_as_it_was_written(
    trained_reading_comprehension, tmp_path
):
    path = export(TASKS["reading_comprehension"], trained_reading_comprehension, tmp_path / "model")
    model = open_model("reader", tmp_path / "model")
    model.warm_up()
    with TestClient(create_app({"reader": model})) as client:
        body = {
            "instances": [{"passage": "Ann lives in Rome.", "question": "Where does Ann live?"}]
        }
        [found] = client.post("/v1/models/reader:predict", json=body).json()["predictions"]
        assert found["answer"] == found["n_best_answer"][0] and len(found["n_best_score"]) == 5
        assert client.post("/v1/models/reader:explain", json=body).status_code == 400
        body["instances"] = [{"passage": "a " * 2_000, "question": "!" * 15_000}]
        assert client.post("/v1/models/reader:predict", json=body).status_code == 413
    for number, (spoil, trusted, message) in enumerate(SPOILT):
        spoilt = shutil.copytree(path, tmp_path / f"spoilt-{number}" / "1")
        spoil(spoilt)
        with pytest.raises(UserError, match=message):
            _ = open_model("reader", spoilt.parent, trusted=trusted).metadata
    unsigned(path)
    assert open_model("reader", path.parent, trusted=True).predictor.signature == "answer"
