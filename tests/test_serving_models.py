"""serving/models.py and serve.py with real models: runs, exported models, an index; what is said of them."""

import json
import shutil

import pytest
from absl import flags
from absl.testing import flagsaver
from fastapi.testclient import TestClient
from helpers import run_script

import serve
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


@pytest.fixture
def parsed():
    if not flags.FLAGS.is_parsed():
        flags.FLAGS(["serve.py"])


def test_a_run_with_an_index_finds_candidates_itself(selection_run):
    model = load("dam", selection_run, TASKS)
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
        load("bot", trained_dialog.path, TASKS, index=selection_run / "index")


def test_what_is_said_of_a_run(trained_reading_comprehension, tmp_path):
    path = shutil.copytree(trained_reading_comprehension.path, tmp_path / "run")
    model = load("reader", path, TASKS)
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
    assert load("reader", path, TASKS).metadata()["note"] == TOY


@pytest.mark.parametrize(
    "task", [pytest.param(task, marks=[] if task == "selection" else pytest.mark.slow) for task in TASKS]
)
def test_every_run_is_warmed_up_and_served(task, request):
    model = load("m", request.getfixturevalue(f"trained_{task}").path, TASKS)
    model.warm_up()
    with TestClient(create_app({"m": model}, milliseconds=1.0)) as client:
        instances = [example["instance"] for example in model.metadata()["examples"]]
        answer = client.post("/v1/models/m:predict", json={"instances": instances})
        assert answer.status_code == 200 and len(answer.json()["predictions"]) == len(instances)
        wrong = client.post("/v1/models/m:predict", json={"instances": [{"nothing": 1}]})
        assert wrong.status_code == 400 and "is missing" in wrong.json()["error"]


def test_an_exported_model_is_served(trained_reading_comprehension, tmp_path):
    export(TASKS["reading_comprehension"], trained_reading_comprehension, tmp_path / "model")
    model = load("reader", tmp_path / "model", TASKS)
    model.warm_up()
    with TestClient(create_app({"reader": model}, milliseconds=1.0)) as client:
        body = {"instances": [{"passage": "Ann lives in Rome.", "question": "Where does Ann live?"}]}
        [found] = client.post("/v1/models/reader:predict", json=body).json()["predictions"]
        assert found["answers"][0] and len(found["answers"]) == len(found["scores"])
        assert client.post("/v1/models/reader:explain", json=body).status_code == 400


# === serve.py ===


def test_without_flags_what_lies_about_is_served(trained_selection, tmp_path, monkeypatch, parsed, capsys):
    monkeypatch.chdir(tmp_path)
    assert serve.found_models() == {}
    with pytest.raises(UserError, match=r"no trained model in pretrained/ or runs/: `python serve.py --samples`"):
        serve.load_models()
    for place in ("pretrained/dam", "runs/dam", "runs/broken", "build/demo/run"):
        shutil.copytree(trained_selection.path, tmp_path / place)
    (tmp_path / "runs" / "unfinished").mkdir()
    (tmp_path / "runs" / "broken" / "config.json").write_text("{")
    found = {name: str(path) for name, path in serve.found_models().items()}
    assert found == {"dam": "pretrained/dam", "broken": "runs/broken", "demo": "build/demo/run"}
    assert set(serve.load_models()) == {"dam", "demo"}
    assert "broken is left out: runs/broken/config.json: expected JSON" in capsys.readouterr().err
    with flagsaver.flagsaver(run=["a=runs/broken"]), pytest.raises(UserError, match="expected JSON"):
        serve.load_models()


def test_an_index_belongs_to_a_model_by_its_name():
    assert serve.given_indexes(["a/b"], {"dam": "x"}) == {"dam": "a/b"}
    assert serve.given_indexes(["two=a=b"], {"one": "x", "two": "y"}) == {"two": "a=b"}
    assert serve.given_indexes([], {"one": "x"}) == {}
    with pytest.raises(UserError, match=r"there is no model three; there are one, two"):
        serve.given_indexes(["three=a"], {"one": "x", "two": "y"})
    with pytest.raises(UserError, match=r"--index expects NAME=DIR. Received: a"):
        serve.given_indexes(["a"], {"one": "x", "two": "y"})


def test_samples_are_trained_and_scored_once(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    called = []

    def run(command, check):
        called.append(command[1:])
        return type("Done", (), {"returncode": 0})

    monkeypatch.setattr(serve.subprocess, "run", run)
    (tmp_path / "runs" / "sample-dam").mkdir(parents=True)
    (tmp_path / "runs" / "sample-dam" / "metrics.json").write_text("{}")
    (tmp_path / "runs" / "sample-talk").mkdir()
    (tmp_path / "runs" / "sample-talk" / "last.npz").write_text("interrupted")
    serve.train_samples()
    assert ["evaluate.py", "--run=runs/sample-reader"] in called
    assert ["train.py", "--resume", "--workdir=runs/sample-talk"] in called
    assert not any("sample-dam" in word for command in called for word in command)
    trained = [command for command in called if command[0] == "train.py"]
    assert len(trained) == len(serve.SAMPLES) - 1 and "--model=bidaf" in trained[0]
