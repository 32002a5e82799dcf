"""Prepared datasets: a hostile file is refused in one line; what prepare.py makes of any corpus can be read again."""

import contextlib
import importlib
import io
import json
import shutil

import pytest
from fuzzing import accepts, any_json, mutated, with_an_odd_part
from helpers import unpickled, written
from hypothesis import given, settings
from hypothesis import strategies as st
from test_data_corpora import CORNELL, SQUAD, VECTORS

from base.files import UserError
from data import pickles
from data.corpora import CORPORA
from tasks import TASKS

SMN = "1\ta b\tc b\td\n0\ta b\tc b\tb a\n1\tb a\td\n0\tb a\tx y\n"
TALK = CORNELL["movie_conversations.txt"]
FILES = {
    "smn": {"train.txt": SMN, "dev.txt": SMN, "test.txt": SMN},
    "babi-dialog": {
        "dialog-babi-task1-x-trn.txt": "1 hi\thello\n2 thai\tapi_call thai rome\n3 shop R_cuisine thai\n\n"
        "1 rome\thello\n",
        "dialog-babi-task1-x-dev.txt": "1 hi\thello\n2 rome\tapi_call thai rome\n",
        "dialog-babi-candidates.txt": "1 hello\n1 api_call thai rome\n1 api_call basque oslo\n",
        "dialog-babi-kb-all.txt": "1 shop R_cuisine\tthai\n1 shop R_location\trome\n1 bar_x R_cuisine basque\n",
    },
    "squad": {
        **dict.fromkeys(("train-v1.1.json", "dev-v1.1.json"), SQUAD),
        "train-v1.1.ambiguous_starts.json": json.dumps({"q1": [{"answer": 0, "all": [13]}]}),
        "glove.txt": VECTORS,
    },
    "conversations": {"train.txt": "Hi!\thi there\tbye\na\tb\n", "dev.txt": "hi\tbye\n"},
    "cornell": {**CORNELL, "movie_conversations.txt": TALK + TALK.replace("m1", "m0")},
    "dailydialog": {
        "dialogues_train.txt": "Say , Jim ! __eou__ I \u2019 Ve one . __eou__\n",
        "dialogues_validation.txt": "You ? __eou__ Yes .\n",
    },
    "subtitles": {"a.conv": "E\nM one two\nM {\\an8}three\n" * 20},
}
"""A small corpus of each kind."""


def prepare(corpus, directory, **changed):
    """Writes a corpus, of which some files are changed, prepares it, and gives the prepared directory."""
    (directory / "raw").mkdir(parents=True)
    for name, content in {**FILES[corpus], **changed}.items():
        written(directory / "raw" / name, content)
    module = importlib.import_module(f"tasks.{CORPORA[corpus].task}.prepare")
    more = {} if corpus == "babi-dialog" else {"min_count": 1}
    if corpus == "smn":
        more["vectors"] = str(written(directory / "vectors.txt", VECTORS.replace("is", "a")))
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        module.prepare(corpus, directory / "raw", directory / "out", module.Settings(**more))
    return directory / "out" / "task1" if corpus == "babi-dialog" else directory / "out"


def load(corpus, directory):
    return TASKS[CORPORA[corpus].task].load_dataset(directory)


def pickled(value):
    file = io.BytesIO()
    with contextlib.suppress(TypeError):  # a value that only Python's own pickler writes
        pickles.dump(value, file)
    return file.getvalue()


def any_file(name, content):
    """What may be in the place of a file: other bytes, or a value with an odd part."""
    kinds = [mutated(content)]
    if name.endswith(".json"):
        kinds.append(any_json(content))
    if name.endswith(".pkl"):
        kinds += [with_an_odd_part(unpickled(content)).map(pickled)] * 2
    return st.one_of(kinds)


@pytest.fixture(scope="module")
def samples(tmp_path_factory):
    """A prepared dataset of each task."""
    corpora = ("smn", "babi-dialog", "squad", "conversations")
    return {corpus: prepare(corpus, tmp_path_factory.mktemp(corpus)) for corpus in corpora}


@pytest.mark.parametrize("corpus", FILES)
def test_each_corpus_is_prepared(corpus, tmp_path):
    assert load(corpus, prepare(corpus, tmp_path)).splits["train"]


@given(st.data())
def test_a_dataset_with_any_file_is_read_or_refused(samples, tmp_path_factory, data):
    corpus = data.draw(st.sampled_from(sorted(samples)))
    out = tmp_path_factory.getbasetemp() / "any-dataset"
    shutil.rmtree(out, ignore_errors=True)
    shutil.copytree(samples[corpus], out)
    path = data.draw(st.sampled_from(sorted(file for file in out.rglob("*") if file.is_file())))
    path.write_bytes(data.draw(any_file(path.name, path.read_bytes())))
    size = sum(file.stat().st_size for file in out.rglob("*") if file.is_file())
    accepts(lambda: load(corpus, out), size)


@settings(max_examples=max(40, settings().max_examples // 10))
@given(st.data())
def test_what_is_prepared_of_any_corpus_is_read_again(tmp_path_factory, data):
    corpus = data.draw(st.sampled_from(sorted(FILES)))
    directory = tmp_path_factory.getbasetemp() / "any-corpus"
    shutil.rmtree(directory, ignore_errors=True)
    name = data.draw(st.sampled_from(sorted(FILES[corpus])))
    content = data.draw(any_file(name, FILES[corpus][name].encode()))

    def read():
        out = prepare(corpus, directory, **{name: content})
        try:
            return load(corpus, out)
        except UserError as error:
            raise AssertionError(f"what prepare.py wrote cannot be read: {error}") from error

    accepts(read, len(content) + 10_000)
