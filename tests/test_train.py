"""train.py: the published corpora of DAM by name, in the release's format and in that of the text
files.
"""

import pickle

import numpy as np
import pytest
from helpers import evaluate, ran, splits_of_release

from colloquy.engine.run import Run
from colloquy.tasks import TASKS

SMALL = [
    "--epochs=1",
    "--batch_size=16",
    "--set=levels=1",
    "--set=max_turns=2",
    "--set=max_words=3",
]
SMALL += ["--set=validations_per_epoch=1"]


def write_release(directory, eos_id, positives=1):
    """A directory as the release has it: a Python 2 pickle of three splits, vectors, and `word2id`
    in any order.
    """
    rng, rows = np.random.default_rng(1), eos_id + 13
    words = [id for id in range(1, rows) if id != eos_id]
    directory.mkdir()
    splits = splits_of_release(rng, words, eos_id, [(16, 2), (5, 2), (7, 10)], positives)
    (directory / "data.pkl").write_bytes(pickle.dumps(splits, protocol=2))
    (directory / "word_embedding.pkl").write_bytes(
        pickle.dumps(rng.normal(size=(rows, 3)).tolist(), protocol=2)
    )
    ids = rng.permutation([*words, eos_id]).tolist()
    lines = [f"{'_EOS_' if id == eos_id else f'w{id}'}\t{id}\n" for id in ids]
    (directory / "word2id").write_text("".join(lines), encoding="utf-8")
    return directory


@pytest.mark.slow
def test_the_releases_files_train_by_name(tmp_path, capsys):
    name = "douban"
    eos_id = 1
    data = write_release(tmp_path / "any directory", eos_id, positives=3)
    prepared = tmp_path / "prepared"
    settings = [f"--source={data}", f"--out={prepared}", f"--name={name}"]
    ran("prepare.py", "--corpus=dam-release", *settings)
    recipe = f"--recipe=dam-{name}"
    ran("train.py", recipe, f"--data={prepared}", f"--workdir={tmp_path / 'run'}", *SMALL)
    run = Run.open(tmp_path / "run")
    facts = run.dataset
    assert (facts["name"], facts["eos_id"], run.record["model"]) == (name, eos_id, "dam")
    assert run.config.conv_filters == (16, 16) and run.training.batch_size == 16
    assert (run.path / "vocabulary.txt").read_text(encoding="utf-8").split("\n")[
        eos_id - 1
    ] == "_EOS_"
    capsys.readouterr()
    # evaluate.py would change TensorFlow's threads
    evaluate(TASKS["selection"], run.path, "test", baselines=False)
    printed = capsys.readouterr().out
    assert f"{name}, test: 7 contexts, 70 lines" in printed
    assert "published: DAM" in printed and "published: SMN_dynamic" in printed
    assert ".5500" in printed  # MAP of DAM
