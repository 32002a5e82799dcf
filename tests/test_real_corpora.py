"""The real corpora have their known counts, scores, match types and responses; skipped where a
corpus is missing.
"""

import json

import numpy as np
import pytest
from helpers import ROOT

from colloquy.data.corpora import babi_dialog, conversations, cornell, dailydialog, squad, subtitles
from colloquy.layers.dialog_state import READS
from colloquy.metrics.reading_comprehension import squad_metrics
from colloquy.tasks import TASKS
from colloquy.tasks.dialog import prepare as dialog
from colloquy.tasks.dialog.action_mask import ActionMask, learn
from colloquy.tasks.dialog.scoring import baselines_and_upper_bounds
from colloquy.tasks.selection import prepare as selection
from colloquy.tasks.selection.scoring import baseline_scores, rank

CORPORA = ROOT.parent / "shared" / "data"
pytestmark = pytest.mark.slow


def corpus(name):
    if not (CORPORA / name).is_dir():
        pytest.skip(f"{CORPORA / name} is not there: real corpora are no part of the repository")
    return CORPORA / name


@pytest.fixture(scope="module")
def babi(tmp_path_factory):
    """`babi(number)`: the dataset of a task of dialog bAbI."""
    out = tmp_path_factory.mktemp("babi") / "prepared"
    dialog.prepare("babi-dialog", corpus("babi-dialog"), out, dialog.Settings())
    return lambda number: TASKS["dialog"].load_dataset(out / f"task{number}")


def recorded(corpus):
    """`{name: metrics}` of the baselines and upper bounds on dev, from results/scores.jsonl."""
    rows = map(
        json.loads, (ROOT / "results" / "scores.jsonl").read_text(encoding="utf-8").splitlines()
    )
    of_dev = (
        row
        for row in rows
        if (row["corpus"], row["split"]) == (corpus, "dev") and ": " in row["recipe"]
    )
    return {row["recipe"].split(": ", 1)[1]: row["metrics"] for row in of_dev}


@pytest.mark.parametrize(("task", "responses"), [(1, 6015), (6, 4159)])
def test_dialog_babi_has_the_known_scores(babi, task, responses):
    dataset = babi(task)
    assert len(dataset.splits["dev"].answers) == responses
    found, expected = {}, recorded(f"babi-task{task}")
    for part in baselines_and_upper_bounds(dataset, "dev").values():
        found |= part
    assert (
        len(expected) == 4
        and {name: pytest.approx(metrics) for name, metrics in expected.items()} == found
    )


def test_match_types_of_the_first_dialog_of_task_5(babi):
    """The types that candidates match after some lines of the file, by `match_groups` of the whole
    corpus.
    """
    dataset = babi(5)
    domain, split = dataset.domain, dataset.splits["train"]
    dialog, (members, types, groups) = split.dialogs[0], domain.match_groups
    # 1 a fact or a turn
    lines = {turn - number + 1: number for number, turn in enumerate(dialog["turns"])}
    rows = [
        (7, "api_call italian paris six cheap", {"cuisine", "location", "price", "number"}, 354, 1),
        (
            12,
            "api_call spanish madrid two cheap",
            {"cuisine", "location", "price", "number"},
            464,
            8,
        ),
        (40, "here it is resto_madrid_cheap_spanish_1stars_phone", {"phone"}, 470, 3),
    ]
    for line, gold, matched, some, same in rows:
        turn, answer = (dialog[name][lines[line]] for name in ("turns", "answers"))
        context = set().union(*split.sentences.entities.lists(dialog["sentences"][: turn + 1]))
        here = [bool(context & set(group)) for group in members]
        found = [{domain.types[types[g - 1]] for g in row if g and here[g - 1]} for row in groups]
        assert (domain.candidates[answer], found[answer]) == (gold, matched)
        assert (sum(map(bool, found)), found.count(matched)) == (some, same)


def test_tfidf_on_ubuntu_irc_has_the_known_scores(tmp_path):
    settings = selection.Settings(dimension=1, word2vec_epochs=1)
    selection.prepare("smn", corpus("ubuntu-irc"), tmp_path / "prepared", settings)
    dataset = TASKS["selection"].load_dataset(tmp_path / "prepared")
    found = rank("dev", baseline_scores(dataset, "dev")["TF-IDF cosine"], dataset.splits["dev"])
    assert found.counts == {"contexts": 1219, "without_positive": 0, "without_negative": 0}
    assert found.metrics == pytest.approx(recorded("ubuntu-irc")["TF-IDF cosine"])


@pytest.mark.parametrize(
    ("module", "directory", "count", "pairs"),
    [
        (dailydialog, "dailydialog", (11118, 1000), (76053, 7069)),
        (dailydialog, "chinese/xdailydialog", (1000, 995), (6386, 7030)),
        (cornell, "cornell", (60965, 3380), (168083, 8171)),
        (subtitles, "chinese/subtitles", (48774, 2565), (206750, 9306)),
        (conversations, "chinese/lccc-toy", (10000, 2000), (10000, 2000)),
    ],
)
def test_the_real_corpora(module, directory, count, pairs):
    files = module.find_splits(corpus(directory))
    found = [module.read(files[split], split) for split in ("train", "dev")]
    assert tuple(map(len, found)) == count
    assert tuple(sum(len(turns) - 1 for turns in split) for split in found) == pairs
    assert all(
        turn.strip() and "\n" not in turn for split in found for turns in split for turn in turns
    )


def test_the_real_training_set():
    path = corpus("squad")
    questions = squad.read(path / "train-v1.1.json.gz", path / "train-v1.1.ambiguous_starts.json")
    assert len(questions) == 87599
    assert len({question.context for question in questions}) == 18891
    assert sum(len(question.answers) > 1 for question in questions) == 87599 - 78161
    offsets = {}
    for question in questions[:5000]:
        tokens = offsets.setdefault(question.context, squad.tokenize(question.context))
        assert squad.align(tokens, question.answers[0]) is not None


@pytest.mark.parametrize(
    ("system", "em", "f1"), [("logistic-regression", 40.14, 50.98), ("bert-ensemble", 86.21, 92.20)]
)
def test_real_predictions_get_their_official_scores(system, em, f1):
    path = corpus("squad")
    answers = {
        q.id: [q.context[a.start : a.end] for a in q.answers]
        for q in squad.read(path / "dev-v1.1.json")
    }
    predictions = json.loads((path / "predictions" / f"{system}.json").read_text(encoding="utf-8"))
    found = squad_metrics(predictions, answers)
    assert {name: round(100 * value, 2) for name, value in found.items()} == {"EM": em, "F1": f1}


def test_real_dialogs_move_to_the_unseen_world():
    towns = {
        "bombay": "bangkok",
        "london": "beijing",
        "madrid": "hanoi",
        "paris": "seoul",
        "rome": "tokyo",
    }
    cuisines = {"british": "cantonese", "french": "japanese", "indian": "korean"}
    cuisines |= {"italian": "thai", "spanish": "vietnamese"}
    for task in babi_dialog.find_tasks(corpus("babi-dialog")):
        facts = babi_dialog.read_knowledge(task.knowledge)
        pairs = babi_dialog.unseen_entities(babi_dialog.read_dialogs(task.splits["train"]), facts)
        if task.number == 6:
            assert pairs == {}
            continue
        assert pairs == cuisines | towns
        moved = babi_dialog.move(babi_dialog.read_dialogs(task.splits["dev"]), pairs)
        lines = [line for said in moved for line in said]
        candidates = set(babi_dialog.read_candidates(task.candidates))
        assert {text for speaker, text in lines if speaker == "bot"} <= candidates
        subjects = {text.split()[0] for speaker, text in lines if speaker == "fact"}
        assert subjects <= {fact.subject for fact in facts}
        words = {word for _, text in lines for word in text.split()}
        assert not words & pairs.keys()


@pytest.mark.parametrize(
    ("number", "templates"), [(1, 2.0), (2, 2.0), (3, 2.0), (4, 4.0), (5, 3.5)]
)
def test_no_correct_response_of_dev_is_masked(babi, number, templates):
    dataset = babi(number)
    mask, dev = (
        ActionMask(dataset.domain, learn(dataset.domain, dataset.splits["train"])),
        dataset.splits["dev"],
    )
    forms = np.unique(
        [dataset.domain.template(text) for text in dataset.domain.candidates], return_inverse=True
    )[1]
    left = []
    for rows in np.array_split(np.arange(len(dev)), 40):
        inputs, answers = dev.collate(rows, READS)
        real = answers >= 0
        found, answers = mask.predict_on_batch(inputs)[real], answers[real]
        assert found[np.arange(len(answers)), answers].all()
        left += [len(set(forms[each])) for each in found]
    assert np.mean(left) <= templates
