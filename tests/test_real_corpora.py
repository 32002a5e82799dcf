"""Known scores of baselines and known match types on the real corpora, where they are beside the project."""

import json

import pytest
from helpers import ROOT

from tasks import TASKS
from tasks.dialog import prepare as dialog
from tasks.dialog.scoring import baselines_and_upper_bounds
from tasks.selection import prepare as selection
from tasks.selection.scoring import baseline_scores, rank

CORPORA = ROOT.parent / "shared" / "data"
pytestmark = pytest.mark.slow


def corpus(name):
    if not (CORPORA / name).is_dir():
        pytest.skip(f"{CORPORA / name} is not there: real corpora are no part of the repository")
    return CORPORA / name


@pytest.fixture(scope="module")
def babi(tmp_path_factory):
    """`babi(number)`: the dataset of a task of dialog bAbI."""
    raw, root = corpus("babi-dialog"), tmp_path_factory.mktemp("babi")
    (root / "raw").mkdir()
    for file in raw.glob("*.txt"):
        if "task" not in file.name or any(f"task{number}" in file.name for number in (1, 5, 6)):
            (root / "raw" / file.name).symlink_to(file)
    dialog.prepare("babi-dialog", root / "raw", root / "prepared", dialog.Settings())
    return lambda number: TASKS["dialog"].load_dataset(root / "prepared" / f"task{number}")


def recorded(corpus):
    """`{name: metrics}` of the baselines and upper bounds on dev, from results/scores.jsonl."""
    rows = map(json.loads, (ROOT / "results" / "scores.jsonl").read_text(encoding="utf-8").splitlines())
    of_dev = (row for row in rows if (row["corpus"], row["split"]) == (corpus, "dev") and ": " in row["recipe"])
    return {row["recipe"].split(": ", 1)[1]: row["metrics"] for row in of_dev}


@pytest.mark.parametrize(("task", "responses"), [(1, 6015), (6, 4159)])
def test_dialog_babi_has_the_known_scores(babi, task, responses):
    dataset = babi(task)
    assert len(dataset.splits["dev"].answers) == responses
    found = {
        name: metrics for part in baselines_and_upper_bounds(dataset, "dev").values() for name, metrics in part.items()
    }
    expected = recorded(f"babi-task{task}")
    assert len(expected) == 4 and {name: pytest.approx(metrics) for name, metrics in expected.items()} == found


def test_match_types_of_the_first_dialog_of_task_5(babi):
    """Which types candidates match after some lines of the file, by `match_groups` of the whole corpus."""
    dataset = babi(5)
    world, split = dataset.world, dataset.splits["train"]
    dialog, (members, types, groups) = split.dialogs[0], world.match_groups
    lines = {turn - number + 1: number for number, turn in enumerate(dialog["turns"])}  # 1 a fact or a turn
    rows = [
        (7, "api_call italian paris six cheap", {"cuisine", "location", "price", "number"}, 354, 1),
        (12, "api_call spanish madrid two cheap", {"cuisine", "location", "price", "number"}, 464, 8),
        (40, "here it is resto_madrid_cheap_spanish_1stars_phone", {"phone"}, 470, 3),
    ]
    for line, gold, matched, some, same in rows:
        turn, answer = (dialog[name][lines[line]] for name in ("turns", "answers"))
        context = set().union(*split.sentences.entities.lists(dialog["sentences"][: turn + 1]))
        here = [bool(context & set(group)) for group in members]
        found = [{world.types[types[g - 1]] for g in row if g and here[g - 1]} for row in groups]
        assert (world.candidates[answer], found[answer]) == (gold, matched)
        assert (sum(map(bool, found)), found.count(matched)) == (some, same)


def test_tfidf_on_ubuntu_irc_has_the_known_scores(tmp_path):
    settings = selection.Settings(dimension=1, word2vec_epochs=1)
    selection.prepare("smn", corpus("ubuntu-irc"), tmp_path / "prepared", settings)
    dataset = TASKS["selection"].load_dataset(tmp_path / "prepared")
    found = rank("dev", baseline_scores(dataset, "dev")["TF-IDF cosine"], dataset.splits["dev"])
    assert found.counts == {"contexts": 1219, "without_positive": 0, "without_negative": 0}
    assert found.metrics == pytest.approx(recorded("ubuntu-irc")["TF-IDF cosine"])
