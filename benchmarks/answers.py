"""Measures what is answered by retrieval, by several ways of choosing.

python -m benchmarks.answers --run=pretrained/dam-ubuntu-irc --source=../shared/data/ubuntu-irc

The index is of the training conversations, the contexts are of dev. `news`: how alike an answer is to those words of
the true response that nobody had said yet. `echo`: how alike it is to what had been said, which true responses are too
(row "people"). Both are cosines of TF-IDF vectors, means with standard errors. Of the weights of the question, the one
with the most news in every second context is `chosen`; `of_the_others` says what comes of it in the others.
"""

import os
import pathlib
import random
import statistics
import tempfile

from absl import flags
from rich.progress import track

from base import cli
from benchmarks.indexes import build, conversations, open_run
from benchmarks.turns import write_record
from data.vocabulary import UNK_ID

FLAGS = flags.FLAGS
flags.DEFINE_string("run", None, "Run directory of a response-selection model.", required=True)
flags.DEFINE_string(
    "source", None, "Directory of the files that the run was trained on, in the format smn.", required=True
)
flags.DEFINE_integer("contexts", 0, "Contexts of dev, evenly spaced; 0: all.", lower_bound=0)
flags.DEFINE_enum("precision", "float32", ["float32", "bfloat16"], "What the model computes in.")
flags.DEFINE_string("out", None, "Also writes what was measured, as JSON.")
WEIGHTS = (0, 8, 12, 16, 24, 32, 64)
"""Of the likeness of the questions, that are tried."""


def main():
    predictor, dev = open_run(FLAGS.run, FLAGS.precision), conversations("smn", FLAGS.source, "dev", FLAGS.contexts)
    with tempfile.TemporaryDirectory() as directory:
        index = build(pathlib.Path(directory) / "index", conversations("smn", FLAGS.source, "train"), predictor)
        chosen_by = [answers_to(index, predictor, *turns) for turns in track(dev, description="contexts")]
    rows = [answer_row(chosen_by, way) for way in chosen_by[0]]
    weighted = [way for way in chosen_by[0] if way.endswith("x question")]
    chosen = max(weighted, key=lambda way: answer_row(chosen_by[::2], way)["news"])
    others = [answer_row(chosen_by[1::2], way) for way in ("people", "model and 16 x words", chosen)]
    measured = {"contexts": len(dev), "responses": index.size, "rows": rows, "chosen": chosen, "of_the_others": others}
    for name, value in measured.items():
        print(f"{name}: {value}")
    load = [round(minutes, 1) for minutes in os.getloadavg()]
    write_record(FLAGS.out, "answers", **measured, precision=FLAGS.precision, load_average=load)


def answers_to(index, predictor, *turns):
    """`(news, echo)` of the answer of each way of choosing; `None` for news where the true response has none."""
    from tasks.selection.retrieval.answers import CANDIDATES, candidates_of, without_duplicates
    from tasks.selection.retrieval.build import PLACEHOLDERS

    *said, true = turns
    hits = index.search(said, 3 * CANDIDATES)
    lists = {"words": without_duplicates(hits, said, CANDIDATES), "questions": candidates_of(index, said)}
    texts = list({hit.text: hit for hits in lists.values() for hit in hits})
    [found] = predictor.predict([{"turns": said, "candidates": texts}])
    logit = dict(zip(texts, found["logits"], strict=True))
    ways = {
        "people": true,
        "any": random.Random(true).choice(texts or [""]),
        "words": best_of(lists["words"], lambda hit: hit.cosine),
        "model and 16 x words": best_of(lists["words"], lambda hit: logit[hit.text] + 16 * hit.cosine),
        "question": best_of(lists["questions"], lambda hit: hit.question),
    }
    for weight in WEIGHTS:
        way = f"model and {weight} x question"
        ways[way] = best_of(lists["questions"], lambda hit, w=weight: logit[hit.text] + w * hit.question)
    before, true, *cut = index.cut([" ".join(said), true, *ways.values()])
    new = [word for word in true if word not in before and word not in PLACEHOLDERS]
    news = index.cosines(new, cut).tolist() if max(index.words.encode(new), default=0) > UNK_ID else [None] * len(cut)
    return dict(zip(ways, zip(news, index.cosines(before, cut).tolist(), strict=True), strict=True))


def best_of(hits, score):
    """The text of the hit with the highest score; none where there is none."""
    return max(hits, key=score).text if hits else ""


def answer_row(chosen_by, way):
    """Means and standard errors of a way of choosing."""
    row = {"chosen_by": way}
    for name, values in zip(("news", "echo"), zip(*(ways[way] for ways in chosen_by), strict=True), strict=True):
        values = [value for value in values if value is not None]
        row[name] = round(statistics.mean(values), 4)
        row[f"{name}_error"] = round(statistics.stdev(values) / len(values) ** 0.5, 4)
    return row


if __name__ == "__main__":
    cli.run(main)
