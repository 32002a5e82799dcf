"""Real corpora have their known counts, scores, match types and responses.

A test is skipped where its corpus is missing.
"""

import json

import numpy as np
import pytest
from helpers import ROOT

from colloquy.data.corpora import babi_dialog, conversations, cornell, dailydialog, squad, subtitles
from colloquy.data.offsets import tokenize, tokens_of_span
from colloquy.data.report import Report
from colloquy.layers.dialog_state import INPUTS
from colloquy.metrics.reading_comprehension import squad_metrics
from colloquy.tasks import TASKS
from colloquy.tasks.dialog import prepare as dialog_preparation
from colloquy.tasks.dialog.action_mask import ActionMask
from colloquy.tasks.dialog.baselines import baselines_and_upper_bounds
from colloquy.tasks.dialog.rules import learn
from colloquy.tasks.selection import prepare as selection
from colloquy.tasks.selection.baselines import baseline_scores
from colloquy.tasks.selection.scoring import rank

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
    settings = dialog_preparation.Settings()
    dialog_preparation.prepare("babi-dialog", corpus("babi-dialog"), out, settings)
    return lambda number: TASKS["dialog"].load_dataset(out / f"task{number}")


def recorded(corpus):
    """`{name: metrics}` of the baselines and upper bounds on dev, from results/scores.jsonl."""
    lines = (ROOT / "results" / "scores.jsonl").read_text(encoding="utf-8").splitlines()
    metrics = {}
    for line in lines:
        row = json.loads(line)
        _, separator, name = row["recipe"].partition(": ")
        if separator and row["corpus"] == corpus and row["split"] == "dev":
            metrics[name] = row["metrics"]
    return metrics


@pytest.mark.parametrize(("task", "responses"), [(1, 6015), (6, 4159)])
def test_dialog_babi_has_the_known_scores(babi, task, responses):
    dataset = babi(task)
    assert len(dataset.splits["dev"].answers) == responses
    scores = {}
    for part in baselines_and_upper_bounds(dataset, "dev").values():
        scores.update(part)
    expected = recorded(f"babi-task{task}")
    assert len(expected) == 4
    assert {name: pytest.approx(metrics) for name, metrics in expected.items()} == scores


def test_tfidf_on_ubuntu_irc_has_the_known_scores(tmp_path):
    settings = selection.Settings(dimension=1, word2vec_epochs=1)
    selection.prepare("smn", corpus("ubuntu-irc"), tmp_path / "prepared", settings)
    dataset = TASKS["selection"].load_dataset(tmp_path / "prepared")
    scores = baseline_scores(dataset, "dev")["TF-IDF cosine"]
    ranked = rank("dev", scores, dataset.splits["dev"])
    assert ranked.counts == {"contexts": 1219, "without_positive": 0, "without_negative": 0}
    assert ranked.metrics == pytest.approx(recorded("ubuntu-irc")["TF-IDF cosine"])


@pytest.mark.parametrize(
    ("module", "directory", "counts", "pairs"),
    [
        (dailydialog, "dailydialog", (11118, 1000), (76053, 7069)),
        (dailydialog, "chinese/xdailydialog", (1000, 995), (6386, 7030)),
        (cornell, "cornell", (60965, 3380), (168083, 8171)),
        (subtitles, "chinese/subtitles", (48774, 2565), (206750, 9306)),
        (conversations, "chinese/lccc-toy", (10000, 2000), (10000, 2000)),
    ],
)
def test_conversations_have_the_known_counts(module, directory, counts, pairs):
    files = module.find_splits(corpus(directory))
    for split, count, num_pairs in zip(("train", "dev"), counts, pairs, strict=True):
        talks = module.read(files[split], split, Report())
        assert len(talks) == count
        assert sum(len(turns) - 1 for turns in talks) == num_pairs
        for turns in talks:
            assert all(turn.strip() and "\n" not in turn for turn in turns)


def test_squad_has_the_known_counts():
    path = corpus("squad")
    questions = squad.read(path / "train-v1.1.json.gz", "train", Report())
    assert len(questions) == 87599
    assert len({question.context for question in questions}) == 18891
    assert sum(len(question.answers) > 1 for question in questions) == 87599 - 78161
    for question in questions[:500]:
        assert tokens_of_span(tokenize(question.context), *question.answers[0]) is not None


@pytest.mark.parametrize(
    ("system", "em", "f1"), [("logistic-regression", 40.14, 50.98), ("bert-ensemble", 86.21, 92.20)]
)
def test_real_predictions_get_their_official_scores(system, em, f1):
    path = corpus("squad")
    answers = {}
    for question in squad.read(path / "dev-v1.1.json", "dev", Report()):
        spans = question.answers
        answers[question.id] = [question.context[span.start : span.end] for span in spans]
    predictions = json.loads((path / "predictions" / f"{system}.json").read_text(encoding="utf-8"))
    metrics = squad_metrics(predictions, answers)
    assert {name: round(100 * value, 2) for name, value in metrics.items()} == {"EM": em, "F1": f1}


UNSEEN = {
    "british": "cantonese",
    "french": "japanese",
    "indian": "korean",
    "italian": "thai",
    "spanish": "vietnamese",
    "bombay": "bangkok",
    "london": "beijing",
    "madrid": "hanoi",
    "paris": "seoul",
    "rome": "tokyo",
}


def test_real_dialogs_move_to_the_unseen_world():
    for task in babi_dialog.find_tasks(corpus("babi-dialog")):
        facts = babi_dialog.read_knowledge(task.knowledge)
        pairs = babi_dialog.unseen_entities(babi_dialog.read_dialogs(task.splits["train"]), facts)
        if task.name == "task6":
            assert pairs == {}
            continue
        assert pairs == UNSEEN

        responses = set()
        subjects = set()
        words = set()
        for dialog in babi_dialog.move(babi_dialog.read_dialogs(task.splits["dev"]), pairs):
            for speaker, text in dialog:
                words.update(text.split())
                if speaker == "bot":
                    responses.add(text)
                if speaker == "fact":
                    subjects.add(text.split()[0])
        assert responses <= set(babi_dialog.read_candidates(task.candidates))
        assert subjects <= {fact.subject for fact in facts}
        assert not words & pairs.keys()


def test_no_correct_response_of_dev_is_masked(babi):
    dataset = babi(5)  # which has the conversations of all others
    domain = dataset.domain
    mask = ActionMask(domain, learn(domain, dataset.splits["train"]))
    dev = dataset.splits["dev"]
    _, template_of_candidate = np.unique(
        [domain.template(text) for text in domain.candidates], return_inverse=True
    )
    num_templates = []
    for rows in np.array_split(np.arange(len(dev)), 40):
        inputs, answers = dev.collate(rows, INPUTS)
        is_real = answers >= 0
        is_allowed = mask.predict_on_batch(inputs)[0][is_real]
        answers = answers[is_real]
        assert is_allowed[np.arange(len(answers)), answers].all()
        for row in is_allowed:
            num_templates.append(len(set(template_of_candidate[row])))
    assert np.mean(num_templates) <= 3.5
