"""`tools.publish`, which makes a run to give away, and `tools.reproduce`, which checks its card."""

import json

import h5py
import numpy as np
import pytest
from helpers import ROOT, copy_of, evaluate, ran, refusal, run_script

from colloquy.data.corpora import smn
from colloquy.engine.run import BEST, LAST, METRICS, Run
from colloquy.tasks import TASKS
from colloquy.tools import reproduce
from colloquy.tools.publish import halve
from colloquy.tools.reproduce import PUBLISHED, compare


def publish(run, directory, *flags):
    """Publishes a run into `directory/out`; returns what the script did."""
    (directory / "about.md").write_text("# A model\n\nLicence: none.\n")
    flags = f"--about={directory / 'about.md'}", f"--out={directory / 'out'}", *flags
    return run_script("tools/publish.py", f"--run={run.path}", *flags)


@pytest.fixture(scope="module")
def published(trained_reading_comprehension, tmp_path_factory):
    root = tmp_path_factory.mktemp("published")
    run = copy_of(trained_reading_comprehension, tmp_path_factory)
    (run.path / "notes.txt").write_text("of the user alone")
    done = publish(run, root)
    assert done.returncode == 0, done.stderr
    return root / "out"


def test_weights_are_those_of_the_run_in_half_precision(published, trained_reading_comprehension):
    found, trained = (
        Run.open(path).load_model() for path in (published, trained_reading_comprehension.path)
    )
    for weight, other in zip(found.get_weights(), trained.get_weights(), strict=True):
        assert weight.dtype == np.float32
        np.testing.assert_array_equal(weight, other.astype("float16").astype("float32"))
    with h5py.File(published / BEST) as file:
        assert "optimizer" not in file and "layers" in file
    assert not {LAST, "notes.txt"} & {file.name for file in published.iterdir()}
    record, trained = (
        json.loads((published / "config.json").read_text()),
        trained_reading_comprehension.record,
    )
    assert record == {**trained, "dataset": {**trained["dataset"], "path": None}}


@pytest.mark.slow
def test_a_published_chat_names_its_search(trained_generation, tmp_path):
    done = publish(trained_generation, tmp_path, "--decode=beams=3")
    assert done.returncode == 1 and "no field 'beams'" in done.stderr
    done = publish(trained_generation, tmp_path, "--decode=beam=3,max_length=9")
    assert done.returncode == 0, done.stderr
    published = Run.open(tmp_path / "out")
    assert published.record["decode"] == "beam=3,max_length=9"
    # It is scored by greedy search still.
    assert "search" not in published.metrics()["dev"]


@pytest.mark.slow
def test_the_card_says_what_was_measured_from_the_file(published, prepared_reading):
    task, before = TASKS["reading_comprehension"], (published / METRICS).read_bytes()
    record = evaluate(
        task, published, "dev", data=prepared_reading, precision="float32", baselines=False
    )
    assert (published / METRICS).read_bytes() == before
    card = (published / "README.md").read_text()
    assert card.startswith("# A model\n")
    assert f"| bidaf, half-precision weights | {record['metrics']['EM']:.4f} |" in card
    [training] = Run.open(published).trainings()
    assert f"## Trained by\n\n    {training['command']}\n" in card


def test_what_half_precision_cannot_hold_is_refused(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("layers/x", data=np.array([1.0, 7e4], "float32"))
    message = refusal(halve, tmp_path / "a.h5", tmp_path / "b.h5")
    assert "layers/x has values beyond half precision" in message


def test_a_model_of_selection_has_pairs_to_answer_from(trained_selection, tmp_path):
    lines = "1\thi there\thello\n0\thi there\tno\n1\thi\thow are you\tfine\n"
    (tmp_path / "train.txt").write_text(lines)
    done = publish(trained_selection, tmp_path, f"--pairs={tmp_path / 'train.txt'}")
    assert done.returncode == 0, done.stderr
    done = publish(trained_selection, tmp_path, "--about=absent")
    assert "error: absent: expected a readable" in done.stderr
    lines = smn.read(smn.find_split(tmp_path / "out" / "pairs", "train"))
    found = [(line.label, line.turns, line.response) for line in lines]
    assert found == [(1, ["hi there"], "hello"), (1, ["hi", "how are you"], "fine")]


# === Reproducing ===


def test_every_published_model_has_a_name():
    assert sorted(PUBLISHED.values()) == sorted(
        path.parent.name for path in ROOT.glob("pretrained/*/config.json")
    )


def test_differences_beyond_rounding_are_an_error(capsys):
    compare(
        {"dev": {"EM": 0.67058, "perplexity": 28.4536}},
        {"dev": {"EM": 0.67061, "perplexity": 28.4630}},
    )
    assert "| dev | perplexity | 28.4536 | 28.4630 |\n" in capsys.readouterr().out
    claimed, found = {"dev": {"EM": 0.6706, "F1": 0.7664}}, {"dev": {"EM": 0.6712, "F1": 0.7664}}
    assert "1 of 2 scores differ" in refusal(compare, claimed, found)
    assert "| dev | EM | 0.6706 | 0.6712 | differs |" in capsys.readouterr().out


def test_training_anew_repeats_each_stage_with_its_settings(monkeypatch):
    called = []
    monkeypatch.setattr(reproduce, "call", called.append)
    trained = reproduce.train_stages(Run.open(ROOT / "pretrained" / "chat-xdailydialog"), [])
    assert trained == "runs/reproduced/4-chat-xdailydialog"
    assert called[2] == (
        "train.py --workdir=runs/reproduced/3-chat-subtitles-long --seed=1 --precision=float32 "
        "--recipe=chat-subtitles-long --epochs=2 --data=build/subtitles "
        "--init_from=runs/reproduced/2-chat-xdailydialog"
    )
    assert "--precision=bfloat16" in called[0]


def test_ctrl_c_waits_until_a_training_is_saved(monkeypatch, tmp_path):
    monkeypatch.setattr(reproduce, "ROOT", tmp_path)
    ctrl_c = "import os, signal, time\nos.kill(os.getppid(), signal.SIGINT)\ntime.sleep(1)\n"
    (tmp_path / "train.py").write_text(f"{ctrl_c}open('saved', 'w')")
    with pytest.raises(KeyboardInterrupt):
        reproduce.call("train.py")
    assert (tmp_path / "saved").exists()


@pytest.mark.slow
@pytest.mark.skipif(
    not (ROOT.parent / "shared" / "data").exists(), reason="the corpora are not here"
)
def test_a_published_model_is_reproduced():
    done = ran("tools/reproduce.py", "--model=entity-memma-task6")
    assert "| dev | per_response | 0.6025 | 0.6025 |\n" in done.stdout
