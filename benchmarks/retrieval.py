"""Measures answers by retrieval: the recall of true responses, and the cost of a million responses.

python -m colloquy.benchmarks.retrieval --what=found --run=runs/dam
--source=../shared/data/ubuntu-irc python -m colloquy.benchmarks.retrieval --what=cost
--run=runs/dam --source=../shared/data/ubuntu-irc \\
    --other=cornell:../shared/data/cornell --other=dailydialog:../shared/data/dailydialog

found: an index of the training conversations and of the true responses of dev, which are in it
without their contexts, so that these cannot give them away. Recall and reciprocal rank of the true
response, by BM25 over responses alone, by each search, by all together, and after the model has
ranked the first of these. Repetitions of earlier turns are left out of all lists.
cost: an index of every turn of all corpora, and if these are too few, of seeded recombinations: the
first half of a turn with the second half of another one of its corpus. Seconds and memory to build
it, and to answer contexts of dev. The system may take back the memory of an index's files; so start
this in a control group with a limit, as a container has one, to see whether it is enough.
"""

import itertools
import os
import pathlib
import random
import tempfile
import time

import numpy as np
from absl import flags
from rich.progress import track

from colloquy.base import cli
from colloquy.base.files import UserError
from colloquy.benchmarks.turns import define_record_flags, in_process, memory, report, timed

FLAGS = flags.FLAGS
flags.DEFINE_enum("what", None, ["found", "cost"], "Measurement.", required=True)
flags.DEFINE_string("run", None, "Run directory of a response-selection model.", required=True)
flags.DEFINE_string(
    "source", None, "Directory of the run's training files, in the format smn.", required=True
)
flags.DEFINE_multi_string("other", [], "cost: CORPUS:DIRECTORY of further conversations.")
flags.DEFINE_integer("responses", 1_000_000, "cost: distinct responses to index.", lower_bound=1)
flags.DEFINE_integer(
    "contexts", 0, "Contexts of dev, evenly spaced; 0: all, of cost 50.", lower_bound=0
)
flags.DEFINE_enum("precision", "float32", ["float32", "bfloat16"], "Precision of the model.")
define_record_flags()
SHOWN = (1, 10, 50, 100)
# recombinations for each response that is wanted: some are equal, some have too many unknown words
SPARE = 1.2


def main():
    rows, measured = find() if FLAGS.what == "found" else ([], cost())
    report(rows, **measured, load_average=os.getloadavg())


def open_run(run, precision):
    from colloquy.engine.devices import set_precision
    from colloquy.engine.run import Run
    from colloquy.tasks import TASKS

    set_precision(precision)
    opened = Run.open(run)
    return TASKS[opened.task].predictor(opened)


def conversations(corpus, source, split, count=0):
    """The conversations of a split of a corpus, or `count` of them, evenly spaced."""
    from colloquy.tasks.selection.retrieval.build import of_corpus

    every = list(of_corpus(corpus, source, split))
    return every[:: max(1, len(every) // count)][:count] if count else every


def build(path, talks, predictor):
    from colloquy.tasks.selection.retrieval import build as building
    from colloquy.tasks.selection.retrieval.index import RetrievalIndex

    building.build(predictor, path, talks)
    return RetrievalIndex(path, predictor.vocabulary)


# === Found ===


def find():
    """A row per search: the fractions of all contexts whose true response is among the first."""
    predictor, dev = (
        open_run(FLAGS.run, FLAGS.precision),
        conversations("smn", FLAGS.source, "dev", FLAGS.contexts),
    )
    talks = [*conversations("smn", FLAGS.source, "train"), *(["", turns[-1]] for turns in dev)]
    with tempfile.TemporaryDirectory() as directory:
        index = build(pathlib.Path(directory) / "index", talks, predictor)
        places = [
            places_of(index, predictor, *turns) for turns in track(dev, description="contexts")
        ]
        stored = {index.utterance(number) for number in range(index.size)}
    rows = []
    for name in places[0]:
        found = np.array([place[name] for place in places])
        row = {"found_by": name, **{f"R@{k}": float((found < k).mean()) for k in SHOWN}}
        rows.append({**row, "MRR": float(np.where(found < SHOWN[-1], 1 / (1 + found), 0).mean())})
    true = sum(turns[-1] in stored for turns in dev) / len(dev)
    return rows, {"contexts": len(dev), "responses": len(stored), "true_response_in_index": true}


def places_of(index, predictor, *turns):
    """The place of the true response, the last turn, in each list, from 0; `SHOWN[-1]` if it is in
    none.
    """
    from colloquy.tasks.selection.retrieval.answers import CANDIDATES, without_duplicates, words_of
    from colloquy.tasks.selection.retrieval.index import (
        READ,
        SEARCHED,
        SEARCHES,
        Hit,
        best_by_words,
    )

    *said, true = turns
    hits = index.search(said)
    words = [word for turn in said[-READ:] for word in words_of(turn, **index.text)]
    by_words = best_by_words(index._responses, index.words.encode(words), SEARCHED)
    lists = {"BM25": [index.utterance(number) for number in by_words]}
    for search in (name for name in SEARCHES if name != "responses"):
        of_search = (hit for hit in hits if search in hit.places)
        lists[search] = [hit.text for hit in sorted(of_search, key=lambda hit: hit.places[search])]
    lists["together"] = [hit.text for hit in hits]
    ranked = [hit.text for hit in without_duplicates(hits[: 2 * CANDIDATES], said, CANDIDATES)]
    [found] = predictor.predict([{"turns": said, "candidates": ranked}])
    by_model = [ranked[i] for i in found["order"]]
    lists["model"] = by_model + [text for text in lists["together"] if text not in by_model]
    places = {}
    for name, texts in lists.items():
        new = (text for text in texts if without_duplicates([Hit(text, [], {})], said))
        first = list(itertools.islice(new, SHOWN[-1]))
        places[name] = first.index(true) if true in first else SHOWN[-1]
    return places


# === Cost ===


def cost():
    """Seconds and memory of building an index, and of answers, each in its own process."""
    with tempfile.TemporaryDirectory() as directory:
        path, sources = (
            f"{directory}/index",
            [("smn", FLAGS.source), *(other.split(":", 1) for other in FLAGS.other)],
        )
        building = in_process(build_large, path, FLAGS.run, sources, FLAGS.responses)
        answering = in_process(
            answer, path, FLAGS.run, FLAGS.source, FLAGS.contexts or 50, FLAGS.precision
        )
        size = sum(file.stat().st_size for file in pathlib.Path(path).rglob("*") if file.is_file())
    return {"building": building, "index_megabytes": size / 2**20, "answering": answering}


def build_large(path, run, sources, count):
    """Builds an index of at least `count` responses; returns what it is made of, its seconds and
    its memory.
    """
    predictor, made_of = open_run(run, "float32"), {}

    def large():  # holds the conversations until they are read
        each = {corpus: conversations(corpus, source, "train") for corpus, source in sources}
        every = [talk for talks in each.values() for talk in talks]
        missing = max(0, int(SPARE * (count - len({turn for talk in every for turn in talk[1:]}))))
        made_of.update({corpus: len(talks) for corpus, talks in each.items()}, recombined=missing)
        for talks in each.values():
            yield from talks
            yield from recombined(talks, missing * len(talks) // len(every))

    before, built = timed(lambda: 0), []
    block = timed(lambda: built.append(build(path, large(), predictor)) or 0)
    [index] = built
    if index.size < count:
        raise UserError(
            f"--responses={count}: the corpora and their recombinations have {index.size}"
        )
    return {
        "conversations": made_of,
        **{
            name: index.config[name]
            for name in ("responses", "pairs", "utterances", "words", "left_out")
        },
        "seconds": block.seconds,
        "cpu_seconds": block.cpu_seconds,
        "megabytes_before": 1024 * before.gigabytes,
        "peak_megabytes": 1024 * block.gigabytes,
    }


def recombined(talks, count, seed=1):
    """`count` conversations whose last turn has the first half of its words and the second half of
    another's.
    """
    rng = random.Random(seed)
    for _ in range(count):
        talk, other = rng.choice(talks), rng.choice(talks)
        at = rng.randrange(1, len(talk))
        first, second = talk[at].split(), rng.choice(other).split()
        yield [
            *talk[max(0, at - 2) : at],
            " ".join(first[: len(first) // 2 + 1] + second[len(second) // 2 :]),
        ]


def answer(path, run, source, count, precision):
    """Medians of answering contexts of dev from an index, and the memory of this process."""
    from colloquy.tasks.selection.retrieval.answers import answers_of
    from colloquy.tasks.selection.retrieval.index import RetrievalIndex

    begin = time.perf_counter()
    predictor = open_run(run, precision)
    opened = time.perf_counter()
    index = RetrievalIndex(path, predictor.vocabulary)
    ready = time.perf_counter()
    times = []
    for talk in conversations("smn", source, "dev", count) * 2:  # at first sizes are compiled
        started = time.perf_counter()
        index.search(talk[:-1])
        searched = time.perf_counter()
        answers_of(predictor, index, talk[:-1])
        times.append((searched - started, time.perf_counter() - searched))
    searching, answering = 1000 * np.array(times[len(times) // 2 :]).T
    return {
        "contexts": count,
        "seconds_to_open_model": opened - begin,
        "seconds_to_open_index": ready - opened,
        "search_ms_median": float(np.median(searching)),
        "answer_ms_median": float(np.median(answering)),
        "answer_ms_fastest": float(answering.min()),
        "resident_megabytes": memory("VmRSS"),
        "of_these_mapped_files": memory("RssFile"),
    }


if __name__ == "__main__":
    cli.run(main)
