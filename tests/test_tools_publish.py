"""`tools.publish`: a run to give away."""

import json
import re

import h5py
import numpy as np
import pytest
from helpers import run_script

from base.files import UserError
from data.corpora import smn
from engine.evaluate import evaluate
from engine.run import BEST, LAST, METRICS, Run
from tasks import TASKS
from tools.publish import halve


@pytest.fixture(scope="module")
def published(trained_reading_comprehension, tmp_path_factory):
    root = tmp_path_factory.mktemp("published")
    (root / "about.md").write_text("# A reader\n\nLicence: none.\n")
    flags = f"--run={trained_reading_comprehension.path}", f"--about={root / 'about.md'}", f"--out={root / 'reader'}"
    done = run_script("tools/publish.py", *flags)
    assert done.returncode == 0, done.stderr
    return root / "reader"


def test_weights_are_those_of_the_run_in_half_precision(published, trained_reading_comprehension):
    found, trained = (Run.open(path).load_model() for path in (published, trained_reading_comprehension.path))
    for weight, other in zip(found.get_weights(), trained.get_weights(), strict=True):
        np.testing.assert_array_equal(weight, other.astype("float16").astype("float32"))
    assert found.get_weights()[0].dtype == np.float32
    with h5py.File(published / BEST) as file:
        assert "optimizer" not in file and "layers" in file


def test_nothing_of_the_machine_is_left_and_all_that_use_takes_is_there(published, trained_reading_comprehension):
    names = {file.name for file in published.iterdir()}
    assert {"vocabulary.txt", "characters.txt", "examples.json", "history.jsonl", "README.md"} <= names
    assert not {LAST, "tensorboard"} & names
    config = json.loads((published / "config.json").read_text())
    assert config["dataset"]["path"] is None
    assert config["config"] == trained_reading_comprehension.record["config"]


def test_settings_on_which_no_weight_depends_are_given_anew(trained_reading_comprehension, tmp_path):
    (tmp_path / "about.md").write_text("# A reader\n")
    run, out = trained_reading_comprehension, tmp_path / "reader"
    flags = f"--run={run.path}", f"--about={tmp_path / 'about.md'}", f"--out={out}"
    done = run_script("tools/publish.py", *flags, "--set=hidden=3")
    assert done.returncode == 1 and "the weights do not fit" in done.stderr and not out.exists()
    done = run_script("tools/publish.py", *flags, "--set=length_penalty=-1")
    assert done.returncode == 1
    assert re.search(r"^error: length_penalty: .* greater than or equal to 0\. Received: -1\n$", done.stderr)
    done = run_script("tools/publish.py", *flags, "--set=length_penalty=0.25")
    assert done.returncode == 0, done.stderr
    assert Run.open(out).record["config"] == {**run.record["config"], "length_penalty": 0.25}


def test_the_card_says_what_was_measured_from_the_file(published, prepared_reading):
    task, before = TASKS["reading_comprehension"], (published / METRICS).read_bytes()
    record = evaluate(task, published, "dev", data=prepared_reading, precision="float32", baselines=False)
    assert (published / METRICS).read_bytes() == before
    card = (published / "README.md").read_text()
    assert card.startswith("# A reader\n")
    assert f"| bidaf, half-precision weights | {record['metrics']['EM']:.4f} |" in card
    assert len(Run.open(published).history()) == card.split("Dev at each validation:")[1].count("\n| ") - 1


def test_a_damaged_file_is_refused(published, tmp_path):
    copy = tmp_path / "copy"
    copy.mkdir()
    for file in published.iterdir():
        (copy / file.name).write_bytes(file.read_bytes())
    weights = bytearray((copy / BEST).read_bytes())
    weights[len(weights) // 2] ^= 1
    (copy / BEST).write_bytes(weights)
    with pytest.raises(UserError, match=r"is damaged: its SHA-256"):
        Run.open(copy).load_model()


def test_what_half_precision_cannot_hold_is_refused(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("layers/x", data=np.array([1.0, 7e4], "float32"))
    with pytest.raises(UserError, match=r"layers/x has values beyond half precision"):
        halve(tmp_path / "a.h5", tmp_path / "b.h5")


def test_a_model_of_selection_is_given_away_with_pairs_to_answer_from(trained_selection, tmp_path):
    (tmp_path / "about.md").write_text("# A ranker\n")
    (tmp_path / "train.txt").write_text("1\thi there\thello\n0\thi there\tno\n1\thi\thow are you\tfine\n")
    flags = f"--run={trained_selection.path}", f"--about={tmp_path / 'about.md'}", f"--out={tmp_path / 'ranker'}"
    done = run_script("tools/publish.py", *flags, f"--pairs={tmp_path / 'train.txt'}")
    assert done.returncode == 0, done.stderr
    lines = smn.read(smn.find_split(tmp_path / "ranker" / "pairs", "train"))
    assert [(line.label, line.turns, line.response) for line in lines] == [
        (1, ["hi there"], "hello"),
        (1, ["hi", "how are you"], "fine"),
    ]
