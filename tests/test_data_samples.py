"""The embedded samples: the command, wording, conversations, negative responses, questions with one
answer.
"""

import collections
import functools
import random
import re
from itertools import pairwise
from unittest.mock import Mock

import pytest
from helpers import ROOT, contents_of, run_process

from colloquy.data.samples import wording
from colloquy.data.samples.__main__ import SAMPLES
from colloquy.data.samples.selection import draw_negatives, examples, smn_lines, split
from colloquy.data.samples.talk import simulate
from colloquy.data.samples.world import tokenize, write_entries
from colloquy.tasks import TASKS
from colloquy.tasks.selection.prepare import Settings

SEED = 3
SIZES = {task: {"count": 53, "held_out": 7} for task in SAMPLES} | {
    "selection": {"count": 130, "held_out": 17}
}


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """`written(task)`: the directory of a sample, and the number of entries in each file."""

    @functools.cache
    def write(task):
        directory = tmp_path_factory.mktemp(task) / "raw"
        return directory, SAMPLES[task](directory, seed=SEED, **SIZES[task])

    return write


@pytest.fixture(scope="module")
def talks():
    return simulate(130, SEED)


# === The command ===


@pytest.mark.parametrize("task", SAMPLES)
def test_command_writes_the_same_in_another_process(task, written, tmp_path):
    directory, counts = written(task)
    code = (
        "from colloquy.data.samples.__main__ import SAMPLES; "
        f"SAMPLES['{task}']('{tmp_path}/a', seed={SEED}, **{SIZES[task]})"
    )
    done = run_process("-c", code, PYTHONHASHSEED="1")
    assert (done.returncode, done.stderr) == (0, "")
    assert (
        contents_of(tmp_path / "a") == contents_of(directory)
        and counts.keys() == contents_of(directory).keys()
    )
    SAMPLES[task](tmp_path / "b", **SIZES[task], seed=SEED + 1)
    assert all(
        text != contents_of(tmp_path / "b")[name]
        for name, text in contents_of(tmp_path / "a").items()
    )


def test_a_failure_leaves_nothing_half_written(tmp_path):
    with pytest.raises(TypeError):
        write_entries(tmp_path, {"a.txt": ["whole\n"], "b.txt": [5]})
    assert contents_of(tmp_path) == {}


def test_the_demo_prepares_the_sample_as_train_does_without_data(tmp_path, monkeypatch):
    prepare = Mock()
    monkeypatch.setattr("colloquy.tasks.selection.task.write_smn", Mock())
    monkeypatch.setattr("colloquy.tasks.selection.task.prepare", prepare)
    TASKS["selection"].make_sample(tmp_path)
    made, defaults = prepare.call_args.args[3].to_json(), Settings().to_json()
    changed = {name: str(value) for name, value in made.items() if value != defaults[name]}
    [command] = re.findall(r"prepare\.py ((?:.*\\\n)*.*)", (ROOT / "Makefile").read_text())
    paths = {"source": "$(DEMO)/raw", "out": "$(DEMO)/prepared"}
    assert dict(re.findall(r"--(\w+)=(\S+)", command)) == {"corpus": "smn", **paths, **changed}


# === Conversations ===

USER, BOT = {"give", "point", "chat"}, {"say", "tell", "scene", "self", "offer", "book", "part"}
"""Kinds of acts."""


@pytest.fixture(scope="module")
def determined(talks):
    """The turns that the context determines, by the kind of their act."""
    found = collections.defaultdict(list)
    for turn in (turn for turns in talks for turn in turns if turn.act):
        found[turn.act[0]].append(turn)
    return found


def test_simulate_begins_alike_and_repeats_with_the_seed_alone(talks):
    state = random.getstate()
    assert simulate(7, SEED) == talks[:7]
    assert not set(simulate(130, SEED + 1)) & set(talks)
    assert random.getstate() == state


def test_conversations_alternate_between_user_and_bot(talks, determined):
    for turns in talks:
        assert 4 <= len(turns) <= 14
        assert {turn.act[0] for turn in turns[::-2] if turn.act} <= BOT
        assert {turn.act[0] for turn in turns[-2::-2] if turn.act} <= USER
    assert {len(turns) for turns in talks} >= {4, 7, 10, 13, 14}
    assert set(determined) == USER | BOT and min(map(len, determined.values())) >= 5


def test_answers_follow_the_question(talks):
    asked = {
        text: ("give", slot) for slot, texts in wording.SLOTS["asks"].items() for text in texts
    }
    asked |= {
        text: ("chat", topic)
        for topic, found in wording.TOPICS.items()
        for text in found["questions"]
    }
    answers = collections.Counter()
    for turns in talks:
        for question, answer in pairwise(turns):
            for text in (text for text in asked if question.text.endswith(text)):
                assert answer.act == asked[text]
                answers[answer.act[0]] += 1
    assert min(answers["give"], answers["chat"]) > 50


def test_a_misreading_is_other_words_for_a_determined_turn(talks, determined):
    for turn in (turn for turns in talks for turn in turns):
        assert turn.act in turn.fits and turn.text not in turn.misreadings
        assert turn.act or not turn.misreadings
    found = [turn for turns in determined.values() for turn in turns]
    assert sum(len(turn.misreadings) >= 2 for turn in found) > 0.7 * len(found)
    assert {
        kind for kind, turns in determined.items() if not any(turn.misreadings for turn in turns)
    } == {"point"}


# === Response selection ===


def groups(lines, size):
    """Candidates by context: (context turns, labels, responses), `size` lines each."""
    rows = [line.rstrip("\n").split("\t") for line in lines]
    for start in range(0, len(rows), size):
        candidates = rows[start : start + size]
        [context] = {tuple(row[1:-1]) for row in candidates}
        yield context, "".join(row[0] for row in candidates), [row[-1] for row in candidates]


def test_negative_responses_are_misreadings_first_and_then_responses_of_other_conversations(talks):
    pool = examples(talks)
    for number, example in enumerate(pool[:150]):
        conversation, _, response = example
        wrong = draw_negatives(random.Random(number), example, pool, "dev")
        assert len({tokenize(response.text), *wrong}) == 10
        misreadings = {tokenize(text) for text in response.misreadings}
        assert misreadings.issuperset(wrong[: min(4, len(misreadings))])
        for text in wrong[min(4, len(misreadings)) :]:
            sources = [(other, turn.act) for other, _, turn in pool if tokenize(turn.text) == text]
            assert any(other != conversation for other, _ in sources)
            assert not {act for _, act in sources} <= response.fits


def test_the_right_response_comes_first_among_distinct_ones_of_the_split(written, talks):
    # tokens separated by single spaces
    line = re.compile(r"[01](\t[^\sA-Z]+( [^\sA-Z]+)*){2,14}\n")
    parts, contexts = split(talks), {}
    assert [len(part) for part in parts.values()] == [92, 19, 19] and sum(
        parts.values(), ()
    ) == talks
    for name, part in parts.items():
        lines = (written("selection")[0] / f"{name}.txt").read_bytes().decode().splitlines(True)
        assert all(map(line.fullmatch, lines))
        texts = [tuple(tokenize(turn.text) for turn in turns) for turns in part]
        said = {text for turns in texts for text in turns}
        said |= {tokenize(text) for turns in part for turn in turns for text in turn.misreadings}
        expected = {(turns[:n], turns[n]) for turns in texts for n in range(1, len(turns))}
        size = 4 if name == "train" else 10
        found = list(groups(lines, size))
        for context, labels, responses in found:
            assert labels == "1" + "0" * (size - 1) and len(set(responses)) == size
            assert (context, responses[0]) in expected and set(responses) <= said
        determined = sum(turn.act is not None for turns in part for turn in turns[1:])
        assert len(found) == (determined if name == "train" else 17)
        contexts[name] = {context for context, *_ in found}
    assert {len(context) for context in contexts["train"]} == set(range(1, 14))
    assert all(len(context) < 3 for context in contexts["train"] & contexts["dev"])


def test_shared_words_find_some_responses_and_not_most(talks):
    hits = []
    for context, _, responses in groups(smn_lines("train", talks, SEED), 4):
        words = set(" ".join(context).split())
        shared = [len(words & set(r.split())) / len(set(r.split())) for r in responses]
        hits.append(shared[0] > max(shared[1:]))
    assert 0.25 < sum(hits) / len(hits) < 0.5  # by chance a quarter
