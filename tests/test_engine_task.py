"""What holds for the training of every task: the small runs of helpers.py."""

import keras
import pytest
from helpers import SMALL_RUNS, check_same_training, resume_small, train_small

from base.files import UserError
from tasks import TASKS

DATA = {
    "selection": "prepared",
    "dialog": "prepared_dialog",
    "generation": "prepared_generation",
    "reading_comprehension": "prepared_reading",
}
SCORES = {
    "selection": lambda row: row["R10@1"] + row["R10@2"],
    "dialog": lambda row: row["per_response"],
    "generation": lambda row: 1 / row["perplexity"],
    "reading_comprehension": lambda row: row["F1"],  # of the averages of the weights
}


@pytest.fixture(params=SMALL_RUNS)
def name(request):
    return request.param


@pytest.fixture
def run(name, request):
    return request.getfixturevalue(f"trained_{name}")


def test_the_best_weights_are_those_of_the_best_validation(name, run):
    best = max(run.history(), key=SCORES[name])
    metrics, score = TASKS[name].validate(run.load_model(), TASKS[name].dataset_of(run).splits["dev"])
    assert score == pytest.approx(SCORES[name](best), rel=1e-4)
    assert metrics == pytest.approx({metric: best[metric] for metric in metrics}, rel=1e-4, abs=1e-5)


@pytest.mark.parametrize(("name", "epochs"), [("selection", 0.5), ("reading_comprehension", 5.0)], indirect=["name"])
def test_resume_goes_on_exactly(name, run, epochs, request, tmp_path):
    """Also from a state that was saved where all the epochs were done; the averages of the weights, too."""
    train_small(name, request.getfixturevalue(DATA[name]), tmp_path / "run", epochs=epochs)
    keras.utils.clear_session()
    resumed = resume_small(name, tmp_path / "run")
    check_same_training(resumed, run)
    assert len(resumed.open(resumed.path).config["resumed"]) == 1


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        (
            "dialog",
            {"candidates": "[3, 5]"},
            r"--set candidates=\[3, 5\]: .*task1 decides candidates, it is \(477, \d+",
        ),
        ("dialog", {"loss": "hinge"}, "loss must be one of"),
        ("dialog", {"heads": "3"}, "heads must divide embedding_dim"),
        (
            "dialog",
            {"levels": "3"},
            r"no field 'levels'\. The model memma has .*heads.*; its training has .*loss, ",
        ),
        ("generation", {"vocabulary_size": "5"}, r"--set vocabulary_size=5: .* decides vocabulary_size, it is \d+"),
        ("generation", {"hidden": "7", "bidirectional": "true"}, "hidden must be even"),
        ("generation", {"decoder_rate": "0"}, "decoder_rate must be above 0"),
        (
            "generation",
            {"hops": "3"},
            r"no field 'hops'\. The model seq2seq has .*attention.*; its training has .*label",
        ),
        ("reading_comprehension", {"characters": "3"}, r"--set characters=3: .* decides characters"),
    ],
    indirect=["name"],
)
def test_wrong_settings_are_refused_and_leave_nothing(name, settings, message, request, tmp_path):
    with pytest.raises(UserError, match=message):
        train_small(name, request.getfixturevalue(DATA[name]), tmp_path / "run", settings)
    assert not (tmp_path / "run").exists()
