"""`tasks.generation.data`: replies compared with several references, from a file alone."""

import dataclasses
import json

import numpy as np
import pytest
from helpers import copy_of

from base.files import UserError
from data.vocabulary import Vocabulary
from engine.evaluate import evaluate, evaluate_all, read_scores
from engine.run import Run
from metrics.generation import baselines_of, generation_metrics, perplexity
from models.decoding import Decoding
from tasks import TASKS
from tasks.generation.data import TextSettings, read_references
from tasks.generation.scoring import likelihood
from tasks.generation.search import reply, words_of

generation = TASKS["generation"]
FOUND = {
    "I am Dee.": ["hello dee , what do you like ?", "Hello!", "i like tea ."],
    "x\tI am Ann.\tHello ann, what do you like?": ["I like rain.", "i like noise ."],
    "i like zebras .": ["tea is fine"],
}


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "references.json"
    path.write_text(json.dumps(FOUND), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def run(trained_generation, tmp_path_factory):
    """A copy, into which evaluate.py may write."""
    return copy_of(trained_generation, tmp_path_factory)


def test_a_file_is_read_as_the_run_reads_texts(file):
    vocabulary = Vocabulary.of(["i", "am", "dee", ".", "hello", "!"])  # 3 to 8
    split = read_references(file, vocabulary, TextSettings(tokenizer="words", lower=True, turns=2))
    assert split.source.lists()[0] == split.source.lists()[2] == [3, 4, 5, 6, 1]
    assert split.source_texts[3] == "i am ann .\thello ann , what do you like ?"
    assert split.target.lists()[1] == [7, 8, 1] and split.target_texts[1] == "hello !"
    assert split.source.lists()[5] == [3, 2, 2, 6, 1]  # _UNK_
    assert len(split) == 6 and split.bos == 9 and split.several and not split.seen.any()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[]", r"expected an object \{source: \[reference\]\}\. Received: list$"),
        ("{}", r"expected an object \{source: \[reference\]\}\. Received: dict$"),
        ('{"hi": "you"}', "expected a list of texts for the source 'hi'$"),
        ('{"hi": []}', "expected a list of texts for the source 'hi'$"),
        ('{"hi": ["you", 3]}', "expected a list of texts for the source 'hi'$"),
        ('{"hi": ["you", " "]}', "expected texts with words for the source 'hi'$"),
        ('{"hi\\t": ["you"]}', r"expected texts with words for the source 'hi\\t'$"),
        ("{", "expected JSON in UTF-8"),
    ],
)
def test_a_file_of_another_kind_is_refused(tmp_path, content, message):
    path = tmp_path / "references.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(UserError, match=message) as error:
        read_references(path, Vocabulary.of(["hi"]), TextSettings(tokenizer="words", lower=True, turns=1))
    assert str(path) in str(error.value)


def test_replies_are_compared_with_all_references_of_their_source(run, file, tmp_path, capsys):
    given = {"decode": "min_length=3,max_length=7", "scores_out": tmp_path / "replies.txt"}
    record = evaluate(generation, run.path, "references", data=file, **given)
    dataset, model = generation.dataset_of(run, file), run.load_model()
    split = dataset.splits["references"]
    ids, _ = reply(model, split, np.array([0, 3, 5]), Decoding(min_length=3, max_length=7))
    replies = [" ".join(words_of(row[0], dataset.vocabulary)) for row in ids]
    references = [split.target_texts[:3], split.target_texts[3:5], split.target_texts[5:]]
    nll, words = likelihood(model, split, model.config)
    expected = generation_metrics(replies, references)
    assert expected != generation_metrics(replies, [group[:1] for group in references])
    measured = {**record["metrics"]}
    assert measured.pop("perplexity") == pytest.approx(perplexity(float(nll.sum()), int(words.sum())), rel=1e-4)
    assert measured == expected
    assert record["counts"] == {"pairs": 6, "sources": 3, "words": int(words.sum())} and record["parts"] == {}
    assert (record["split"], record["corpus"]) == ("references", "small")
    train = generation.dataset_of(run).splits["train"].target_texts
    assert record["baselines"] == baselines_of(train, split.source_texts, split.target_texts, several=True)
    constant = next(name for name in record["baselines"] if name.startswith("constant, "))
    told = constant.removeprefix("constant, ")
    assert record["baselines"][constant] == generation_metrics([told] * 3, references)
    assert [line.split("\t")[2] for line in (tmp_path / "replies.txt").read_text("utf-8").splitlines()][3:] == [
        *[replies[1]] * 2,
        replies[2],
    ]
    printed = " ".join(capsys.readouterr().out.split())
    assert "6 references of 3 sources; greedy, at least 3 words" in printed
    assert "all references of a source at once" in printed
    assert "references" in json.loads((run.path / "metrics.json").read_text())


def test_a_run_alone_is_enough(run, file, tmp_path):
    """Its dataset may be gone; then only people are a baseline. Each run reads the file by its own words."""
    config = {**run.record, "dataset": {**run.dataset, "path": str(tmp_path / "gone")}}
    model, words = run.load_model(), Vocabulary.load(run.path / "vocabulary.txt").words
    for name, order in (("a", words), ("b", [*words[:2], *words[:1:-1]])):
        made = Run.create(tmp_path / name, config, Vocabulary(order))
        made.save_best(model)
    splits = [generation.dataset_of(Run.open(tmp_path / name), file).splits for name in "ab"]
    assert splits[0].keys() == {"references"}
    assert splits[0]["references"].target.lists() != splits[1]["references"].target.lists()
    evaluate_all(TASKS, str(tmp_path / "[ab]"), ["references"], data=str(file), scores=tmp_path / "scores.jsonl")
    *records, person = sorted(read_scores(tmp_path / "scores.jsonl"), key=lambda row: "seed" not in row)
    assert person["recipe"] == "baseline: human, 2 sources with several targets"
    assert records[0]["metrics"]["perplexity"] != records[1]["metrics"]["perplexity"]


def test_a_dataset_is_still_a_directory(run, prepared_generation):
    assert generation.dataset_of(run, prepared_generation).splits.keys() == {"train", "dev"}
    assert not dataclasses.replace(generation.dataset_of(run).splits["dev"]).several
