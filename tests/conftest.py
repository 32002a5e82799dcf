"""What several test files share: a small prepared dataset of simulated conversations."""

import keras
import pytest

from data.prepare_selection import Settings, prepare
from data.simulator import write_smn


@pytest.fixture(scope="session")
def prepared(tmp_path_factory):
    """A prepared directory: some hundred training lines, vectors of 7 numbers."""
    root = tmp_path_factory.mktemp("sample")
    write_smn(root / "raw", conversations=60, seed=3, held_out=11)
    prepare("smn", root / "raw", root / "prepared", Settings(name="sample", dimension=7, word2vec_epochs=1))
    return root / "prepared"


@pytest.fixture(autouse=True)
def float32_policy():
    """Each test starts in float32, whatever the one before chose."""
    keras.config.set_dtype_policy("float32")
