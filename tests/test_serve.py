"""serve.py itself: the models that its flags name or that it finds, the samples that it trains."""

import importlib.util
import pathlib
import shutil
import socket
import sys
from unittest.mock import Mock

import pytest
from absl import flags
from absl.testing import flagsaver
from helpers import refusal, script_refusal

from colloquy.commands import serve
from colloquy.engine import run_files
from colloquy.engine.run import Run
from colloquy.serving.limits import Limits


@pytest.fixture(autouse=True)
def parsed(tmp_path, monkeypatch):
    if not flags.FLAGS.is_parsed():
        flags.FLAGS(["serve.py"])
    monkeypatch.chdir(tmp_path)


def test_without_flags_all_trained_models_are_served(
    trained_selection, tmp_path, capsys, monkeypatch
):
    monkeypatch.setattr(run_files, "PRETRAINED", pathlib.Path("pretrained"))
    assert serve.find_models() == {}
    message = refusal(serve.load_models)
    assert "no trained model in pretrained/ or runs/: train.py trains one" in message
    for place in ("pretrained/dam", "runs/dam", "runs/broken", "build/demo/run"):
        shutil.copytree(trained_selection.path, tmp_path / place)
    (tmp_path / "runs" / "unfinished").mkdir()
    shutil.copytree(trained_selection.path, tmp_path / "runs" / "rate=1")
    (tmp_path / "runs" / "broken" / "config.json").write_text("{")
    found = {name: str(path) for name, path in serve.find_models().items()}
    assert found == {"dam": "pretrained/dam", "broken": "runs/broken", "demo": "build/demo/run"}
    assert "runs/rate=1 is left out: a model's name has letters" in capsys.readouterr().err
    assert set(serve.load_models()) == {"dam", "demo"}
    # chat.py --run and colloquy.load take the same names.
    assert {name: str(Run.open(name).path) for name in ("dam", "demo")} == {
        "dam": "pretrained/dam",
        "demo": "build/demo/run",
    }
    assert "broken is left out: runs/broken/config.json: expected JSON" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("run", "index", "expected"),
    [
        (["one=x"], ["a/b"], {"one": ("x", "a/b")}),
        (["one=x", "two=y"], ["two=a=b"], {"one": ("x", None), "two": ("y", "a=b")}),
        (["one=x", "two=y"], ["three=a"], "--index: there is no model three; there are one, two"),
        (["a/x/", "two=y"], ["x=i"], {"x": ("a/x/", "i"), "two": ("y", None)}),
        (["/"], [], "--run expects NAME=DIR. Received: /"),
        (["a b=x"], [], "--run: a model's name has letters, digits, . _ and -. Received: a b"),
        (["x", "a/x"], [], "--run: the name x is given twice"),
    ],
)
def test_an_index_belongs_to_a_model_by_its_name(run, index, expected):
    with flagsaver.flagsaver(run=run, index=index):
        if isinstance(expected, dict):
            assert serve.choose_models() == expected
        else:
            assert expected in refusal(serve.choose_models)


def test_replicas_are_a_number_or_the_fewest_and_the_most():
    for text, expected in (("2", (2, 2)), ("1:4", (1, 4))):
        with flagsaver.flagsaver(replicas=text):
            assert serve.read_replicas() == expected
    for text in ("x", "2:", "3:2", "0"):
        with flagsaver.flagsaver(replicas=text):
            message = refusal(serve.read_replicas)
        assert f"FEWEST:MOST with 1 <= FEWEST <= MOST. Received: {text}" in message


def test_ray_gets_the_models_of_the_flags_and_without_it_one_reads_what_to_install(
    monkeypatch, tmp_path
):
    cluster = Mock()
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "config.json").touch()
    with flagsaver.flagsaver(run=["m=x"], replicas="1:4"), monkeypatch.context() as patch:
        patch.setattr(importlib.util, "find_spec", lambda name: None)
        assert "pip install -e '.[ray]'" in refusal(serve.serve_on_ray, None, None)
        patch.setattr(importlib.util, "find_spec", lambda name: True)
        patch.setitem(sys.modules, "colloquy.serving.cluster", cluster)
        serve.serve_on_ray(None, None)
    cluster.application.assert_called_once_with(
        {"m": [str(tmp_path / "x"), None]}, (1, 4), None, None
    )


@pytest.mark.parametrize("host", ["127.0.0.1", "nowhere.invalid"])
def test_an_address_in_use_is_noticed_before_models_are_loaded(host):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        message = script_refusal(
            "serve.py", "--run=m=nowhere", f"--host={host}", f"--port={port}", "--api_key=k"
        )
    assert message.startswith(f"error: --host={host} --port={port}: ")


def read_access(monkeypatch, **flags_given):
    monkeypatch.delenv("COLLOQUY_API_KEY", raising=False)
    with flagsaver.flagsaver(**flags_given):
        return serve.read_access()


def test_flags_say_who_may_ask(monkeypatch, capsys):
    local = read_access(monkeypatch, allowed_hosts=["X"])
    assert local.hosts == {"localhost", "127.0.0.1", "::1", "x"}
    assert capsys.readouterr().err == ""
    everywhere = read_access(monkeypatch, host="0.0.0.0", cors_origins=["https://A.example/"])
    assert {"localhost", socket.gethostname().lower()} <= everywhere.hosts
    assert "*" not in everywhere.hosts
    assert everywhere.origins == {"https://a.example"}
    assert "give --api_key" in capsys.readouterr().err
    assert read_access(monkeypatch, host="0.0.0.0", api_key="k").api_key == "k"
    assert capsys.readouterr().err == ""
    for origin in ("a.example", "*", "https://*.example", "https://a.example/app", ""):
        message = refusal(read_access, monkeypatch, cors_origins=[origin])
        assert message.endswith(f"as https://example.org. Received: {origin or 'nothing'}")
    message = refusal(read_access, monkeypatch, api_key=" ")
    assert message.endswith("expect a key. Received: white space")
    monkeypatch.setenv("COLLOQUY_API_KEY", "secret\n")  # the file of the key ends with a line break
    assert serve.read_access().api_key == "secret"


def test_open_requests_have_a_little_more_than_their_time_after_sigterm():
    assert Limits().grace_seconds == 35
    assert Limits(timeout_seconds=5.0).grace_seconds == 10
