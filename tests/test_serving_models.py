"""serving/models.py with real models: runs, exported models, an index, their metadata."""

import json
import pathlib
import shutil
import threading

import pytest
from fastapi.testclient import TestClient
from helpers import ROOT, run_script

from base.files import UserError
from engine.export import export
from serving.app import create_app
from serving.models import TOY, load
from tasks import TASKS


@pytest.fixture(scope="module")
def selection_run(trained_selection, prepared, tmp_path_factory):
    """A run with an index in its directory."""
    run = shutil.copytree(trained_selection.path, tmp_path_factory.mktemp("served") / "run")
    done = run_script("tools/build_index.py", f"--run={run}", f"--data={prepared}", f"--out={run / 'index'}")
    assert done.returncode == 0, done.stderr
    return run


def test_a_run_with_an_index_finds_candidates_itself(selection_run):
    model = load("dam", selection_run)
    assert model.metadata()["responses"] > 5
    instance = model.metadata()["examples"][0]["instance"]
    turns = instance["turns"]
    with TestClient(create_app({"dam": model}, milliseconds=1.0)) as client:

        def ask(verb, *instances):
            answer = client.post(f"/v1/models/dam:{verb}", json={"instances": list(instances)})
            assert answer.status_code == 200, answer.text
            return answer.json()["predictions" if verb == "predict" else "explanations"]

        found, given = ask("predict", {"turns": turns}, instance)
        assert found["order"] == list(range(len(found["scores"])))
        assert len(found["candidates"]) == len(found["said_to"]) == len(found["scores"]) <= 20
        [again] = ask("predict", {"turns": turns, "candidates": found["candidates"]})
        assert again["scores"] == pytest.approx(found["scores"], abs=1e-4) and "candidates" not in again
        assert len(given["scores"]) == len(instance["candidates"])
        [shown] = ask("explain", {"turns": turns})
        assert shown["candidates"][0] == found["candidates"][0] and shown["attention"]
        assert ask("explain", instance)[0]["attention"][0]["title"].startswith("turn ")


def test_an_index_is_for_a_run_of_selection(trained_dialog, selection_run):
    with pytest.raises(UserError, match=r"an index is for a model of selection. Received: dialog"):
        load("bot", trained_dialog.path, index=selection_run / "index")


def test_what_is_said_of_a_run(trained_reading_comprehension, tmp_path):
    path = shutil.copytree(trained_reading_comprehension.path, tmp_path / "run")
    model = load("reader", path)
    said = model.metadata()
    rows = trained_reading_comprehension.history()
    assert said["scores"]["dev"]["F1"] == max(row["F1"] for row in rows) and "loss" not in said["scores"]["dev"]
    assert (said["corpus"], said["note"]) == ("small", "")
    (path / "metrics.json").write_text(json.dumps({"test": {"metrics": {"F1": 0.75}}}))
    assert set(model.metadata()["scores"]) == {"dev", "test"}
    (path / "metrics.json").write_text(json.dumps({"dev": {"metrics": {"F1": 0.125}}}))
    assert model.metadata()["scores"] == {"dev": {"F1": 0.125}}
    config = json.loads((path / "config.json").read_text())
    config["dataset"]["name"] = "sample-reading"
    (path / "config.json").write_text(json.dumps(config))
    assert load("reader", path).metadata()["note"] == TOY


@pytest.mark.parametrize(
    "task", [pytest.param(task, marks=[] if task == "selection" else pytest.mark.slow) for task in TASKS]
)
def test_every_run_is_warmed_up_and_served_and_a_request_passes_at_most_ten_files(task, request):
    """The files of the project that run Python between the socket and the scores."""
    model, files = load("m", request.getfixturevalue(f"trained_{task}").path), set()
    model.warm_up()
    instances = [example["instance"] for example in model.metadata()["examples"]]

    def note(frame, event, argument):
        path = pathlib.Path(frame.f_code.co_filename)
        if path.is_relative_to(ROOT) and not path.is_relative_to(ROOT / ".venv") and path.parent.name != "tests":
            files.add(str(path.relative_to(ROOT)))

    threading.setprofile(note)  # for the threads that begin from now on
    try:
        with TestClient(create_app({"m": model}, milliseconds=1.0)) as client:
            assert client.post("/v1/models/m:predict", json={"instances": instances[:1]}).status_code == 200
    finally:
        threading.setprofile(None)
    assert {"serving/app.py", f"tasks/{task}/predictor.py"} < files and len(files) <= 10, sorted(files)
    with TestClient(create_app({"m": model}, milliseconds=1.0)) as client:
        answer = client.post("/v1/models/m:predict", json={"instances": instances})
        wrong = client.post("/v1/models/m:predict", json={"instances": [{"nothing": 1}]})
    assert answer.status_code == 200 and len(answer.json()["predictions"]) == len(instances)
    assert wrong.status_code == 400 and "is missing" in wrong.json()["error"]


def test_an_exported_model_is_served(trained_reading_comprehension, tmp_path):
    export(TASKS["reading_comprehension"], trained_reading_comprehension, tmp_path / "model")
    model = load("reader", tmp_path / "model")
    model.warm_up()
    with TestClient(create_app({"reader": model}, milliseconds=1.0)) as client:
        body = {"instances": [{"passage": "Ann lives in Rome.", "question": "Where does Ann live?"}]}
        [found] = client.post("/v1/models/reader:predict", json=body).json()["predictions"]
        assert found["answers"][0] and len(found["answers"]) == len(found["scores"])
        assert client.post("/v1/models/reader:explain", json=body).status_code == 400
