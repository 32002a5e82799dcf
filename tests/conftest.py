"""What several test files share: a small prepared dataset of simulated conversations for each task."""

import keras
import pytest

from data import prepare_dialog
from data.prepare_selection import Settings, prepare
from data.simulator import write_smn
from data.simulator_babi import write_babi


@pytest.fixture(scope="session")
def prepared(tmp_path_factory):
    """A prepared directory: some hundred training lines, vectors of 7 numbers."""
    root = tmp_path_factory.mktemp("sample")
    write_smn(root / "raw", conversations=60, seed=3, held_out=11)
    prepare("smn", root / "raw", root / "prepared", Settings(name="sample", dimension=7, word2vec_epochs=1))
    return root / "prepared"


@pytest.fixture(scope="session")
def prepared_dialog(tmp_path_factory):
    """A prepared directory of task 1: 26 training dialogs with 194 responses, 7 dialogs each in dev and test."""
    root = tmp_path_factory.mktemp("sample-dialog")
    write_babi(root / "raw", conversations=40, seed=3, held_out=7)
    prepare_dialog.prepare("babi-dialog", root / "raw", root / "prepared", prepare_dialog.Settings(name="sample"))
    return root / "prepared" / "task1"


@pytest.fixture(autouse=True)
def float32_policy():
    """Each test starts in float32, whatever the one before chose."""
    keras.config.set_dtype_policy("float32")
