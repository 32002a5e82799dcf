"""serving/models.py with real models: runs, an index, their metadata."""

import json
import shutil

import numpy as np
import openapi_spec_validator
import pytest
from echo import FACTS, try_out
from fastapi.testclient import TestClient
from helpers import TASKS_ONE_FAST, enlarge_weights, flip_bit, refusal

from colloquy.base.files import UserError
from colloquy.engine.run import Run
from colloquy.serving.app import create_app
from colloquy.serving.limits import Limits
from colloquy.serving.models import Served, open_model
from colloquy.serving.warm_up import warm_up
from colloquy.tasks import TASKS
from colloquy.tasks.dialog import reader as dialog_reader


@pytest.fixture(scope="module")
def selection_run(trained_selection, selection_index, tmp_path_factory):
    """A run with an index in its directory."""
    run = shutil.copytree(trained_selection.path, tmp_path_factory.mktemp("served") / "run")
    shutil.copytree(selection_index, run / "index")
    return run


def test_a_run_with_an_index_finds_candidates_itself(selection_run):
    model = open_model("dam", selection_run)
    assert model.describe()["responses"] > 5
    instance = model.describe()["examples"][0]["instance"]
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


def test_a_card_is_known_before_its_model_is_loaded():
    def load():
        raise AssertionError("the model is loaded")

    facts = {**FACTS, "card": "# A card\n\n<b>no markup</b>"}
    model = Served("dam", load, facts)
    with TestClient(create_app({"dam": model})) as client:
        card = client.get("/v1/models/dam/card").json()
    assert card["card_html"] == "<h1>A card</h1>\n<p>&lt;b&gt;no markup&lt;/b&gt;</p>\n"
    assert card["text_characters"] == Limits().text_characters
    assert not card["ready"]


def test_what_is_said_of_a_run(trained_reading_comprehension, tmp_path):
    path = shutil.copytree(trained_reading_comprehension.path, tmp_path / "run")
    (path / "README.md").write_bytes(b"caf\xe9")  # a note of the user's, in another encoding
    (path / "metrics.json").write_text(json.dumps({"test": {"metrics": {"F1": 0.75}}}))
    facts = open_model("reader", path).summary()
    assert facts["scores"] == {"test": {"F1": 0.75}}
    assert (facts["corpus"], facts["card"]) == ("small", "caf\ufffd")
    (path / "page.json").write_text("[]")
    assert "page.json" in refusal(open_model, "reader", path)


@pytest.mark.parametrize("task", TASKS_ONE_FAST)
def test_every_run_is_warmed_up_and_served(task, request):
    model = open_model("m", request.getfixturevalue(f"trained_{task}").path)
    warm_up(model.predictor)
    instances = [example["instance"] for example in model.summary()["examples"]]
    with TestClient(create_app({"m": model})) as client:
        answer = client.post("/v1/models/m:predict", json={"instances": instances})
        document = client.get("/openapi.json").json()
        openapi_spec_validator.validate(document)
        statuses = try_out(client, document)
    chats = task in ("dialog", "generation")
    assert (("post", "/v1/chat/completions") in statuses) == chats
    assert set(statuses.values()) == {200}
    assert answer.status_code == 200 and len(answer.json()["predictions"]) == len(instances)


def test_a_damaged_model_is_not_loaded_again(trained_selection, tmp_path, monkeypatch):
    run, loads = Run.open(shutil.copytree(trained_selection.path, tmp_path / "run")), []
    load = TASKS["selection"].predictor
    monkeypatch.setattr(TASKS["selection"], "predictor", lambda run: loads.append(run) or load(run))
    served = open_model("dam", run.path)
    flip_bit(run.path / "best.weights.h5")
    for _ in range(3):
        with pytest.raises(UserError, match=r"best\.weights\.h5 is damaged"):
            _ = served.predictor
    assert len(loads) == 1


@pytest.mark.parametrize(
    "task",
    [
        "dialog",
        pytest.param("reading_comprehension", marks=pytest.mark.slow),
        pytest.param("selection", marks=pytest.mark.slow),
    ],
)
def test_a_run_with_the_largest_weights_is_left_out(task, request, tmp_path):
    """Its logits are infinite or NaN: some answers have them, others cannot be chosen at all. A
    model of generation replies with nothing.
    """
    path = shutil.copytree(request.getfixturevalue(f"trained_{task}").path, tmp_path / "run")
    enlarge_weights(path)
    assert len(refusal(lambda: open_model("m", path).predictor)) < 300


def test_an_index_of_objects_is_refused_and_runs_nothing(selection_run, tmp_path):
    path = shutil.copytree(selection_run, tmp_path / "run")

    class Attack:
        def __reduce__(self):
            return open, (str(tmp_path / "attacked"), "w")

    [file, *_] = sorted((path / "index").rglob("data.csc.index.npy"))
    np.save(file, np.array([Attack()], dtype=object), allow_pickle=True)
    (path / "checksums.json").unlink(missing_ok=True)
    message = refusal(lambda: open_model("dam", path).predictor)
    assert "is a damaged index: remove it. ValueError" in message
    assert not (tmp_path / "attacked").exists()


@pytest.mark.slow
def test_no_client_waits_until_a_search_is_compiled(trained_generation):
    """Chat completions ask for these searches, and the page for its beams."""
    predictor = open_model("chat", trained_generation.path).predictor
    warm_up(predictor)
    compiled = predictor.search.decoder_of_shape.cache_info().currsize
    for decode in ("beam=1", "beam=5,max_length=9", "beam=10", "sample=true,temperature=0.5"):
        predictor.predict([{"turns": ["hello"], "decode": decode}])
    assert predictor.search.decoder_of_shape.cache_info().currsize == compiled


def test_a_history_without_its_metric_and_a_dangling_link_are_no_fault(trained_dialog, tmp_path):
    path = shutil.copytree(trained_dialog.path, tmp_path / "run")
    (path / "metrics.json").unlink(missing_ok=True)
    (path / "history.jsonl").write_text('{"step": 1, "epoch": 0.5, "loss": 1.0}\n')
    (path / "notes").symlink_to(tmp_path / "nowhere")
    model = open_model("bot", path)
    assert model.summary()["scores"] == {}
    assert model.predictor


def test_whatever_is_wrong_with_a_run_is_one_sentence(trained_selection, tmp_path, monkeypatch):
    assert "is not a run directory" in refusal(open_model, "m", tmp_path)
    path = shutil.copytree(trained_selection.path, tmp_path / "run")

    def fail(run):
        raise StopIteration("a fault\nof two lines")

    monkeypatch.setattr(Run, "metrics", fail)
    assert "the run or its index cannot be used: StopIteration" in refusal(open_model, "m", path)


def test_a_conversation_finds_only_what_the_bots_own_calls_name(trained_dialog, monkeypatch):
    """An attack: a message of the bot with many calls, each of which would find all facts."""
    model = open_model("bot", trained_dialog.path)
    domain = model.predictor.domain
    [call, *_] = [text for text in domain.candidates if text.startswith("api_call")]

    def conversation(text):
        return [("user", "hello"), ("bot", text), ("user", "hello")]

    history = model.predictor.conversation(conversation(f"{call}\napi_call R_\nhello"))["history"]
    facts = [sentence["text"] for sentence in history if sentence["speaker"] == "fact"]
    assert facts == domain.search(call)

    monkeypatch.setattr(dialog_reader, "MAX_FACTS", 10)
    roles = {"user": "user", "bot": "assistant"}
    with TestClient(create_app({"bot": model})) as client:
        for text, status in (("api_call R_\n" * 500, 200), (f"{call}\n" * 500, 400)):
            messages = []
            for speaker, content in conversation(text):
                messages.append({"role": roles[speaker], "content": content})
            body = {"model": "bot", "messages": messages}
            answer = client.post("/v1/chat/completions", json=body)
            assert answer.status_code == status, answer.text
