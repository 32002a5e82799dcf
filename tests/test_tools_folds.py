"""tools/folds.py: the dialogs of a task of dialog bAbI, split anew."""

import numpy as np
import pytest
from helpers import run_script

from base.files import UserError
from data.corpora.babi_dialog import Turn, find_tasks, read_dialogs
from tasks.dialog.dataset import load_dataset
from tasks.dialog.prepare import Settings, prepare
from tools.folds import part_with_share, seen_share


@pytest.fixture
def raw(prepared_dialog):
    """What `prepared_dialog` was prepared from: 26 dialogs in train and 7 in dev."""
    return prepared_dialog.parent.parent / "raw"


def dialogs_of(path):
    """Dialogs without the numbers of their lines, which depend on the file."""
    return [tuple((e.user, e.bot) if isinstance(e, Turn) else e for e in dialog) for dialog in read_dialogs(path)]


def test_each_dialog_is_in_dev_once_and_else_in_train(raw, tmp_path):
    done = run_script("tools/folds.py", f"--source={raw}", "--task=1", "--folds=3", f"--out={tmp_path / 'folds'}")
    assert done.returncode == 0, done.stderr
    [task] = find_tasks(raw)
    whole = sorted(dialogs_of(task.splits["train"]) + dialogs_of(task.splits["dev"]), key=str)
    assert sorted(path.name for path in (tmp_path / "folds").iterdir()) == ["fold1", "fold2", "fold3"]
    devs = []
    for i in (1, 2, 3):
        [fold] = find_tasks(tmp_path / "folds" / f"fold{i}")
        assert set(fold.splits) == {"train", "dev"}
        dev = dialogs_of(fold.splits["dev"])
        assert len(dev) == 11 and f"fold{i}: 11 dialogs in dev" in done.stdout
        assert sorted(dialogs_of(fold.splits["train"]) + dev, key=str) == whole
        devs += dev
    assert sorted(devs, key=str) == whole


def test_a_fold_is_prepared_like_the_corpus(raw, prepared_dialog, tmp_path):
    done = run_script(
        "tools/folds.py", f"--source={raw}", "--task=1", "--folds=3", "--seen=0.9", f"--out={tmp_path / 'folds'}"
    )
    assert done.returncode == 0, done.stderr
    prepare("babi-dialog", tmp_path / "folds" / "seen", tmp_path / "prepared", Settings())
    for file in ("candidates.txt", "knowledge.txt"):
        assert (tmp_path / "prepared" / "task1" / file).read_bytes() == (prepared_dialog / file).read_bytes()
    fold = load_dataset(tmp_path / "prepared" / "task1")
    assert (len(fold.splits["train"]), len(fold.splits["dev"])) == (22, 11)


def test_the_same_seed_draws_the_same_folds(raw, tmp_path):
    texts = []
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        done = run_script("tools/folds.py", f"--source={raw}", "--task=1", f"--seed={seed}", f"--out={tmp_path / name}")
        assert done.returncode == 0, done.stderr
        texts.append((tmp_path / name / "fold1" / "dialog-babi-task1-fold-dev.txt").read_text(encoding="utf-8"))
    assert texts[0] == texts[1] != texts[2]


def test_dialogs_of_rare_responses_make_a_harder_part():
    """Dialogs 0 to 5 say what all say; 6 and 7 something of their own in half of their turns, 8 and 9 in all."""
    responses = [["hi", "bye"]] * 6 + [["hi", "six"], ["bye", "seven"], ["a", "b"], ["c", "d"]]
    order = np.arange(10)
    assert [seen_share(responses, part) for part in ({0, 1}, {6, 7}, {8, 9}, {6, 9})] == [1.0, 0.5, 0.0, 0.25]
    assert part_with_share(responses, order, 3, 1.0) == {0, 1, 2}
    assert part_with_share(responses, order, 3, 0.7) == {8, 0, 1}
    assert part_with_share(responses, order, 3, 0.4) == {8, 9, 0}
    assert part_with_share(responses, order, 3, 0.2) == {8, 9, 6}
    with pytest.raises(UserError, match=r"at least 0\.167 for parts of 3 dialogs\. Received: 0\.1"):
        part_with_share(responses, order, 3, 0.1)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("--task=6", "--task expects one of 1. Received: 6"),
        ("--folds=34", "--folds expects at most 33, the number of dialogs. Received: 34"),
        ("--seen=-1", "--seen expects at least"),
    ],
)
def test_what_is_wrong_is_said_and_nothing_written(raw, tmp_path, wrong, message):
    done = run_script("tools/folds.py", f"--source={raw}", "--task=1", wrong, f"--out={tmp_path / 'folds'}")
    assert done.returncode == 1 and message in done.stderr and "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []
