"""`data.corpora.babi_dialog`: dialogs, files of a task, the other world."""

import pytest
from helpers import refusal, written

from data.corpora.babi_dialog import SILENCE, Fact, Turn, find_tasks, move, read_dialogs, unseen_entities


def test_facts_alone_are_no_dialog(tmp_path):
    path, facts = tmp_path / "trn.txt", "1 resto R_price cheap\n"
    assert refusal(read_dialogs, written(path, facts)) == f"{path}: expected dialogs. Received: no turn"
    assert read_dialogs(written(path, f"{facts}\n1 hi\thello\n")) == [[Turn(3, "hi", "hello")]]


SHARED = ("dialog-babi-candidates.txt", "dialog-babi-kb-all.txt")
OWN = ("dialog-babi-task6-dstc2-candidates.txt", "dialog-babi-task6-dstc2-kb.txt")


def touch(directory, *names):
    for name in names:
        (directory / name).touch()


def test_find_tasks(tmp_path):
    """Tasks with their own candidates or shared ones, endings in either case, and files of no task."""
    options = [f"dialog-babi-task3-options-{ending}.txt" for ending in ("trn", "dev", "tst", "tst-OOV")]
    calls = ["dialog-babi-task1-API-calls-trn.txt", "dialog-babi-task1-API-calls-tst-oov.txt"]
    own = ("dialog-babi-task1-x-candidates.txt", "dialog-babi-task1-x-kb.txt")
    dstc2 = ["dialog-babi-task6-dstc2-trn.txt", "dialog-babi-task6-dstc2-tst.txt"]
    touch(tmp_path, *SHARED, *OWN, *options, *calls, *own, *dstc2, "README.txt", "dialog-babi-task7-more-trn.txt")
    tasks = find_tasks(str(tmp_path))
    assert [(task.number, list(task.splits), [path.name for path in task.splits.values()]) for task in tasks] == [
        (1, ["train", "test-oov"], calls),
        (3, ["train", "dev", "test", "test-oov"], options),
        (6, ["train", "test"], dstc2),
    ]
    assert [(task.candidates.name, task.knowledge.name) for task in tasks] == [own, SHARED, OWN]


@pytest.mark.parametrize(
    ("number", "missing", "expected"),
    [
        (5, SHARED[1], "its knowledge base, dialog-babi-task5-*kb.txt or dialog-babi-kb-all.txt"),
        (6, OWN[0], "its candidates, dialog-babi-task6-*candidates.txt"),
    ],
)
def test_a_task_needs_its_files(tmp_path, number, missing, expected):
    touch(tmp_path, f"dialog-babi-task{number}-x-trn.txt", *{*SHARED, *OWN} - {missing})
    assert refusal(find_tasks, tmp_path) == f"{tmp_path}: task {number} needs {expected}"


def test_find_tasks_rejects_other_directories(tmp_path):
    absent = tmp_path / "absent"
    assert refusal(find_tasks, absent) == f"{absent}: expected the directory of dialog bAbI. Received: no directory"
    touch(tmp_path, *SHARED, "dialog-babi-task7-x-trn.txt")
    assert "expected files dialog-babi-taskN-*-trn.txt. Received: none" in refusal(find_tasks, tmp_path)
    touch(tmp_path, "dialog-babi-task4-x-dev.txt", "dialog-babi-task4-x-tst.txt")
    assert "expected a training file dialog-babi-task4-*-trn.txt" in refusal(find_tasks, tmp_path)


def knowledge(**values):
    return [Fact("resto", f"R_{relation}", value) for relation, found in values.items() for value in found.split()]


TRAIN = [[Turn(1, "thai food in rome", "ok"), Fact("resto_paris_thai", "R_location", "paris")]]


def test_unseen_entities_pairs_in_sorted_order():
    known = knowledge(cuisine="thai greek basque", location="tokyo rome oslo paris berlin", price="cheap dear")
    assert unseen_entities(TRAIN, known) == {"thai": "basque", "paris": "berlin", "rome": "oslo"}


@pytest.mark.parametrize(
    ("cuisine", "location"),
    [("thai greek", "tokyo rome paris"), ("thai", "tokyo rome oslo paris"), ("basque greek", "tokyo oslo rome paris")],
    ids=["one town for two", "no other cuisine", "no cuisine was named"],
)
def test_unseen_entities_needs_as_many_others(cuisine, location):
    assert unseen_entities(TRAIN, knowledge(cuisine=cuisine, location=location)) == {}


def test_move_changes_words_and_parts_of_names_at_once_and_takes_the_longest():
    pairs = {"rome": "oslo", "thai": "basque", "oslo": "rome", "thai_x": "dot"}
    dialogs = [
        [
            Turn(4, "thai in rome", "api_call thai rome two"),
            Fact("resto_rome_thai_2stars", "R_phone", "resto_rome_thai_2stars_phone"),
            Turn(6, "romeo and jerome chrome", "rome, not thailand, oslo thai_x"),
        ],
        [Turn(8, SILENCE, "ok")],
    ]
    assert move(dialogs, pairs) == [
        [
            Turn(4, "basque in oslo", "api_call basque oslo two"),
            Fact("resto_oslo_basque_2stars", "R_phone", "resto_oslo_basque_2stars_phone"),
            Turn(6, "romeo and jerome chrome", "oslo, not thailand, rome dot"),
        ],
        [Turn(8, SILENCE, "ok")],
    ]
