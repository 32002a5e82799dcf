"""`metrics.dialog` on dialog bAbI itself, where it is at hand."""

import itertools
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

from metrics.dialog import dialog_metrics, nearest_neighbour, reachable_by_seen, reachable_by_types, tfidf_match

BABI = Path(__file__).resolve().parents[2] / "shared" / "data" / "babi-dialog"


# === A real corpus ===


def read_babi(name, knowledge_base, candidates_file):
    """Candidates, types and, for train and dev, (context, user turn, gold, dialog) of each response."""
    ids = defaultdict(itertools.count(1).__next__)

    def encode(text):
        return [ids[word] for word in text.split()]

    def lines_of(file):
        return (BABI / f"dialog-babi-{file}.txt").read_text("utf-8").split("\n")

    texts = [line.split(" ", 1)[1].strip() for line in lines_of(candidates_file) if line]
    number = {text: i for i, text in enumerate(texts)}
    facts = [line.split() for line in lines_of(knowledge_base) if line]
    type_of = {ids[value]: kind for _, _, kind, value in facts}

    def examples(split):
        history, dialogs = [], 0
        for line in lines_of(f"{name}-{split}"):
            if not line:
                history, dialogs = [], dialogs + 1
                continue
            user, *bot = line.split(" ", 1)[1].split("\t")
            user = encode(user or "<SILENCE>")
            if bot:
                yield history + user, user, number[bot[0].strip()], dialogs
                user = user + encode(bot[0])
            history = history + user

    return [encode(text) for text in texts], type_of, [tuple(zip(*examples(s), strict=True)) for s in ("trn", "dev")]


@pytest.mark.skipif(not BABI.is_dir(), reason=f"needs the dialog bAbI corpus at {BABI}")
@pytest.mark.parametrize(
    ("name", "dev_size", "expected"),
    [  # per response (per dialog): seen in training; with types; TF-IDF match; nearest neighbour
        ("task1-API-calls", 6015, ["83.37 (0.0)", "100.00 (100.0)", "5.95 (0.0)", "66.73 (0.0)"]),
        ("task2-API-refine", 9513, ["99.29 (93.2)", "100.00 (100.0)", "6.13 (0.0)", "78.98 (0.0)"]),
        ("task4-phone-address", 3529, ["56.67 (0.0)", "100.00 (100.0)", "0.00 (0.0)", "56.67 (0.0)"]),
        ("task6-dstc2", 4159, ["88.70 (53.6)", "90.74 (59.8)", "1.85 (0.0)", "29.02 (0.0)"]),
    ],
)
def test_dialog_babi_has_the_known_scores(name, dev_size, expected):
    files = ("task6-dstc2-kb", "task6-dstc2-candidates") if "task6" in name else ("kb-all", "candidates")
    candidates, type_of, (train, dev) = read_babi(name, *files)
    _, train_turns, train_gold, _ = train
    contexts, turns, gold, dialogs = dev
    assert len(gold) == dev_size
    by_types = reachable_by_types(train_gold, gold, candidates, type_of, [set(words) for words in contexts])
    utterances = [*train_turns, *(candidates[g] for g in train_gold)]
    predictions = [
        np.where(reachable_by_seen(train_gold, gold), gold, -1),
        np.where(by_types, gold, -1),
        tfidf_match(utterances, contexts, candidates),
        nearest_neighbour(train_turns, train_gold, turns),
    ]
    found = [dialog_metrics(predicted, gold, dialogs) for predicted in predictions]
    assert [f"{100 * f['per_response']:.2f} ({100 * f['per_dialog']:.1f})" for f in found] == expected
