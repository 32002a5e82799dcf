"""Measures answers by retrieval: what is found, and what a million responses cost.

python -m benchmarks.retrieval --what=found --run=runs/dam --source=../shared/data/ubuntu-irc
python -m benchmarks.retrieval --what=cost --run=runs/dam --source=../shared/data/ubuntu-irc \\
    --other=cornell:../shared/data/cornell --other=dailydialog:../shared/data/dailydialog

found: an index of the training conversations and of the true responses of dev, which stand in it without their
contexts, so that these cannot give them away. How often is the true response among the first 1, 10, 100? By BM25 over
responses alone, by each search, by what they find together; and when the model has ranked the first of these. What was
said already is no answer, and left out of all lists.
cost: an index of every turn of all corpora, and where these are too few, of seeded recombinations: the first half of a
turn with the second half of another one of its corpus. Seconds and memory to build it, and to answer contexts of dev.
What the files of an index take of the memory, the system may take back; so start this in a control group with a limit,
as a container has one, to see whether it is enough.
"""

import multiprocessing
import os
import pathlib
import random
import resource
import statistics
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor

from absl import flags
from rich.progress import track

from base import cli, runtime
from base.files import UserError
from benchmarks.indexes import build, conversations, open_run
from benchmarks.turns import write_record

FLAGS = flags.FLAGS
flags.DEFINE_enum("what", None, ["found", "cost"], "What is measured.", required=True)
flags.DEFINE_string("run", None, "Run directory of a response-selection model.", required=True)
flags.DEFINE_string(
    "source", None, "Directory of the files that the run was trained on, in the format smn.", required=True
)
flags.DEFINE_multi_string("other", [], "cost: CORPUS:DIRECTORY of further conversations.")
flags.DEFINE_integer("responses", 1_000_000, "cost: distinct responses to index.", lower_bound=1)
flags.DEFINE_integer("contexts", 0, "Contexts of dev, evenly spaced; 0: all.", lower_bound=0)
flags.DEFINE_enum("precision", "float32", ["float32", "bfloat16"], "What the model computes in.")
flags.DEFINE_string("index", None, "cost: an index to measure in place of a new one.")
flags.DEFINE_string("out", None, "Also writes what was measured, as JSON.")
SHOWN = (1, 10, 50, 100)


def main():
    measured = found() if FLAGS.what == "found" else cost()
    for name, value in measured.items():
        print(f"{name}: {value}")
    limit = runtime.memory_limit()
    measured["memory_limit_megabytes"] = limit and limit >> 20
    load = [round(minutes, 1) for minutes in os.getloadavg()]
    write_record(FLAGS.out, "retrieval", **measured, precision=FLAGS.precision, load_average=load)


# === Found ===


def found():
    """How often the true response is found, as fractions of all contexts."""
    predictor, dev = open_run(FLAGS.run, FLAGS.precision), conversations("smn", FLAGS.source, "dev", FLAGS.contexts)
    with tempfile.TemporaryDirectory() as directory:
        train = conversations("smn", FLAGS.source, "train")
        index = build(pathlib.Path(directory) / "index", [*train, *(["", turns[-1]] for turns in dev)], predictor)
        places = [places_of(index, predictor, *turns) for turns in track(dev, description="contexts")]
        stored = {index.utterance(number) for number in range(index.size)}
    return {
        "contexts": len(dev),
        "responses": len(stored),
        "true_response_in_index": round(sum(turns[-1] in stored for turns in dev) / len(dev), 4),
        "rows": [row_of(places, name) for name in places[0]],
    }


def places_of(index, predictor, *turns):
    """The place of the true response, the last of some turns, in each list, from 0; `SHOWN[-1]` where it is in none."""
    from tasks.selection.retrieval.answers import CANDIDATES, without_duplicates, words_of
    from tasks.selection.retrieval.index import READ, SEARCHED, SEARCHES, Hit, best_by_words

    *said, true = turns
    hits = index.search(said, len(SEARCHES) * SEARCHED)
    words = [word for turn in said[-READ:] for word in words_of(turn, **index.text)]
    by_words = best_by_words(index._responses, index.words.encode(words), SEARCHED)
    ranked = without_duplicates(hits[: 2 * CANDIDATES], said, CANDIDATES)
    [found] = predictor.predict([{"turns": said, "candidates": [hit.text for hit in ranked]}])
    lists = {
        "BM25": [index.utterance(number) for number in by_words],
        **{search: by_place(hits, search) for search in SEARCHES if search != "responses"},
        "together": [hit.text for hit in hits],
    }
    by_model = [ranked[i].text for i in found["order"]]
    lists["model"] = by_model + [text for text in lists["together"] if text not in by_model]
    every = {text for texts in lists.values() for text in texts}
    new = {text for text in every if without_duplicates([Hit(text, [], {})], said)}
    lists = {name: [text for text in texts if text in new][: SHOWN[-1]] for name, texts in lists.items()}
    return {name: texts.index(true) if true in texts else SHOWN[-1] for name, texts in lists.items()}


def by_place(hits, search):
    """The texts that a search found, in its order."""
    return [hit.text for hit in sorted((h for h in hits if search in h.places), key=lambda hit: hit.places[search])]


def mean_reciprocal(places, name):
    """Of the true response in a list; nothing where it is not in it."""
    return sum(1 / (1 + place[name]) for place in places if place[name] < SHOWN[-1]) / len(places)


def row_of(places, name):
    """What is said of a list."""
    recalls = {f"R@{k}": round(sum(place[name] < k for place in places) / len(places), 4) for k in SHOWN}
    return {"found_by": name, **recalls, "MRR": round(mean_reciprocal(places, name), 4)}


# === Cost ===


def cost():
    """Seconds and memory of building an index, and of answers."""
    context = multiprocessing.get_context("spawn")  # of each its own process, so that its memory is its own
    pool = ProcessPoolExecutor(1, context, max_tasks_per_child=1)
    with tempfile.TemporaryDirectory() as directory, pool:
        path, building = FLAGS.index, {}
        if not path:
            path = f"{directory}/index"
            sources = [("smn", FLAGS.source), *(other.split(":", 1) for other in FLAGS.other)]
            building = pool.submit(build_large, path, FLAGS.run, sources, FLAGS.responses).result()
        arguments = path, FLAGS.run, FLAGS.source, FLAGS.contexts or 50, FLAGS.precision
        answering = pool.submit(answer, *arguments).result()
        size = sum(file.stat().st_size for file in pathlib.Path(path).rglob("*") if file.is_file())
    return {"building": building, "index_megabytes": round(size / 2**20), "answering": answering}


def build_large(path, run, sources, count):
    """Builds an index of at least `count` responses; returns what it is made of and what it took."""
    predictor = open_run(run, "float32")
    made_of = {corpus: conversations(corpus, source, "train") for corpus, source in sources}
    real = sum(map(len, made_of.values()))
    missing = missing_of(made_of, predictor, count)

    def every():
        for talks in made_of.values():
            yield from talks
            yield from recombined(talks, missing * len(talks) // real)

    begin, cpu, load = time.perf_counter(), time.process_time(), os.getloadavg()[0]
    held = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    index = build(path, every(), predictor)
    if index.size < count:
        raise UserError(f"--responses={count}: the corpora and their recombinations have {index.size}")
    return {
        "conversations": {corpus: len(talks) for corpus, talks in made_of.items()},
        "recombined": missing,
        **{name: index.config[name] for name in ("responses", "pairs", "utterances", "words", "left_out")},
        "seconds": round(time.perf_counter() - begin, 1),
        "cpu_seconds": round(time.process_time() - cpu, 1),
        "load_average": [round(load, 1), round(os.getloadavg()[0], 1)],
        "megabytes_before": round(held / 2**10),
        "peak_megabytes": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10),
    }


def missing_of(made_of, predictor, count):
    """How many recombinations it takes to have `count` responses that an index keeps, by how many of some it keeps."""
    every = [talk for talks in made_of.values() for talk in talks]
    some = 20_000
    real, both = kept_of(every, predictor), kept_of([*every, *recombined(every, some, seed=2)], predictor)
    return max(0, int(1.05 * (count - real) * some / (both - real)))


def kept_of(talks, predictor):
    """How many distinct responses an index of some conversations keeps."""
    import numpy as np

    from tasks.selection.retrieval.build import unfit_of
    from tasks.selection.retrieval.spool import TurnStore

    with tempfile.TemporaryDirectory() as directory:
        store = TurnStore(pathlib.Path(directory), talks)
        responses = np.unique(store.numbers[store.places > 0])
        known = set(predictor.vocabulary.words)
        return int((~unfit_of(*store.words(predictor.text), known)[responses]).sum())


def recombined(talks, count, seed=1):
    """So many conversations whose last turn has the first half of its words and the second half of another's."""
    rng = random.Random(seed)
    for _ in range(count):
        talk, other = rng.choice(talks), rng.choice(talks)
        at = rng.randrange(1, len(talk))
        first, second = talk[at].split(), rng.choice(other).split()
        yield [*talk[max(0, at - 2) : at], " ".join(first[: len(first) // 2 + 1] + second[len(second) // 2 :])]


def answer(path, run, source, count, precision):
    """Answers contexts of dev from an index; returns medians and the memory of this process."""
    from tasks.selection.retrieval.answers import CANDIDATES, answers_of
    from tasks.selection.retrieval.index import RetrievalIndex

    begin = time.perf_counter()
    predictor = open_run(run, precision)
    opened = time.perf_counter()
    index = RetrievalIndex(path, predictor.vocabulary)
    ready = time.perf_counter()
    dev = conversations("smn", source, "dev", count)
    seconds = {"search": [], "answer": []}
    for turns in [talk[:-1] for talk in dev] * 2:  # at first sizes are compiled
        started = time.perf_counter()
        index.search(turns, CANDIDATES)
        searched = time.perf_counter()
        answers_of(predictor, index, turns)
        seconds["search"].append(searched - started)
        seconds["answer"].append(time.perf_counter() - searched)
    status = dict(line.split(":", 1) for line in pathlib.Path("/proc/self/status").read_text().splitlines())
    timed = {name: sorted(times[len(times) // 2 :]) for name, times in seconds.items()}
    return {
        "contexts": count,
        "seconds_to_open_model": round(opened - begin, 1),
        "seconds_to_open_index": round(ready - opened, 2),
        **{f"{name}_ms_median": round(1e3 * statistics.median(times), 1) for name, times in timed.items()},
        **{f"{name}_ms_fastest": round(1e3 * times[0], 1) for name, times in timed.items()},
        "resident_megabytes": int(status["VmRSS"].split()[0]) >> 10,
        "of_these_mapped_files": int(status["RssFile"].split()[0]) >> 10,
    }


if __name__ == "__main__":
    cli.run(main)
