"""Reading a text takes time that is linear in its length: no request, no file stops a program.

The functions are found by the program, not listed: each function of one `text`, each compiled
pattern and each list of rules of the rooms, each tokenizer in Python and in the graph, each reader
of a corpus. They read hostile texts of many kinds, and where a text takes long, a
quarter of it.
"""

import gc
import importlib
import inspect
import math
import pathlib
import re
import time

import pytest
from helpers import ROOT, TASKS_ONE_FAST, instance_of

from colloquy.base.files import UserError
from colloquy.data.corpora import CORPORA
from colloquy.data.graph_tokenizer import GraphTokenizer
from colloquy.data.report import Report
from colloquy.data.tokenizers import TOKENIZERS, WHITESPACE, apply_rules, words_of

LIMIT = 16_000
"""The longest text, in characters; four times more would be as linear."""
GROWTH = 8.0
"""Most growth of the time from a quarter of `LIMIT` to `LIMIT`: a line has 4, a square 16."""
FLOOR = 0.03
"""Seconds for a text of `LIMIT` characters below which growth is noise."""
RUNS = 5
"""Most times that a text is read; the least time counts, since other work only adds to it."""
MOST = 0.3
"""Most seconds for a text of `LIMIT` characters."""

MARKS = "".join(chr(code) for code in (0x301, 0x316, 0x300, 0x327, 0x302, 0x31B))
KINDS = {
    "letter": "a",
    "words": "a ",
    "hyphens": "-",
    "hyphenated": "a-",
    "marks": MARKS,
    "letters with marks": "a\u0301\u0316",
    "half-width marks": "\uff76\uff9e\uff9f",
    "digits": "1",
    "dates": "1:1.1,1/",
    "brackets": "(",
    "styles": "{\\",
    "tags": "<a",
    "quotes": "\"'` ",
    "emojis": "\U0001f600\u200d",
    "surrogates": "\ud800a",
    "blanks": " ",
    "lines": "a\n",
    "tabs": "a\t",
    "joiners": "a\u200d\u200c",
    "invisible": "\u200b\ufeff",
    "underscores": "a_-_/",
    "Chinese": "\u4f60\u597d\uff01",
    "jamo": "\u1100\u1161\u11a8",
    "mixture": "a-'1.\u0301(\"\u4f60 {\\<",
    "hyphens in a word": "-",
    "brackets in a word": "(",
    "blanks between words": " ",
}
BETWEEN_LETTERS = {"hyphens in a word", "brackets in a word", "blanks between words"}
"""Kinds with a letter before and behind their signs: a search for signs at the end of a text fails
at each of them.
"""


def text_of(kind, length):
    unit = KINDS[kind]
    text = unit * (length // len(unit))
    return f"a{text}a" if kind in BETWEEN_LETTERS else text


# === What reads a text ===


def modules():
    """The modules that read texts of users or files; one whose package is missing is left out."""
    for room in ("data", "engine", "tasks", "metrics", "serving"):
        for path in sorted((ROOT / room).rglob("*.py")):
            if path.name == "__main__.py" or "samples" in path.parts:
                continue
            name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
            try:
                yield importlib.import_module(f"colloquy.{name}".removesuffix(".__init__"))
            except ImportError as error:
                assert error.name == "ray", error


def is_of_one_text(function):
    """Whether a function needs nothing but a text."""
    required = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.default is parameter.empty:
            required.append(parameter.name)
    return required in (["text"], ["line"], ["question"])


def is_rules(value):
    """Whether a value is a list of patterns with their replacements."""
    if not isinstance(value, tuple | list) or not value:
        return False
    try:
        for pattern, replacement in value:
            re.sub(pattern, replacement, "")
    except (TypeError, ValueError, re.error):  # RE2's rules are tested in the graph
        return False
    return True


def find_readers():
    """`{name: function of a text}`."""
    readers = {}
    for module in modules():
        own = module.__name__.removeprefix("colloquy.")
        for name, value in vars(module).items():
            if inspect.isfunction(value) and value.__module__ == module.__name__:
                if is_of_one_text(value):
                    readers[f"{own}.{name}"] = value
            elif isinstance(value, re.Pattern) and isinstance(value.pattern, str):
                readers[f"{own}.{name}"] = lambda text, pattern=value: pattern.sub("", text)
            elif is_rules(value) and name.isupper():
                readers[f"{own}.{name}"] = lambda text, rules=value: apply_rules(text, rules)
    for name in (*TOKENIZERS, WHITESPACE):
        readers[f"tokenizer {name}"] = lambda text, name=name: words_of(text, name)
    for name, tokenizer in TOKENIZERS.items():
        readers[f"detokenizer {name}"] = lambda text, tokenizer=tokenizer: tokenizer.detokenize(
            text.split()
        )
    return readers


READERS = find_readers()


def seconds(read, text):
    """CPU seconds, so that other work of the machine counts little."""
    gc.disable()
    begin = time.process_time()
    try:
        read(text)
    except (UserError, UnicodeError, ValueError, ImportError):
        pass  # a refusal reads the text, too
    finally:
        gc.enable()
    return time.process_time() - begin


def is_linear(quarter, whole):
    """Judges CPU seconds at a quarter of `LIMIT` and at `LIMIT`."""
    return whole <= min(MOST, max(FLOOR, GROWTH * quarter))


def check_growth(name, read, kinds=KINDS):
    slow = []
    for kind in kinds:
        quarter = math.inf
        whole = math.inf
        for _ in range(RUNS):
            whole = min(whole, seconds(read, text_of(kind, LIMIT)))
            # Below FLOOR, `is_linear` does not need the quarter.
            if whole > FLOOR:
                quarter = min(quarter, seconds(read, text_of(kind, LIMIT // 4)))
            # A reader that takes very long is not measured again.
            if is_linear(quarter, whole) or whole > 2 * MOST:
                break
        if not is_linear(quarter, whole):
            slow.append(f"{kind}: {1000 * quarter:.1f} and {1000 * whole:.1f} ms")
    assert not slow, f"{name} is not linear: {slow}"


def test_a_square_is_found_and_noise_is_not():
    def read(text):
        for place in range(len(text)):
            text[place:].count("ab")

    with pytest.raises(AssertionError, match="square is not linear"):
        check_growth("square", read, ["letter"])
    # Of a linear function, on a machine with other work.
    assert is_linear(0.0127, 0.0872)
    assert not is_linear(0.0055, 0.0880)


def test_functions_are_found():
    assert {"data.normalization.normalize", "tokenizer terms"} <= READERS.keys()
    assert len(READERS) > 40


@pytest.mark.parametrize("name", READERS)
def test_a_text_is_read_in_linear_time(name):
    check_growth(name, READERS[name])


@pytest.mark.parametrize("name", [name for name in TOKENIZERS if name != "jieba"])
def test_a_text_is_read_in_linear_time_in_the_graph(name):
    import tensorflow as tf

    tokenizer = GraphTokenizer(name, lower=True)
    tokenize = tf.function(tokenizer, input_signature=[tf.TensorSpec([None], tf.string)])
    tokenize(tf.constant(["compile"]))

    def read(text):
        tokenize(tf.constant([text.encode(errors="replace")]))

    check_growth(f"graph {name}", read)


@pytest.mark.parametrize("task", TASKS_ONE_FAST)
def test_an_instance_is_read_in_linear_time(task, request):
    """Predictors read texts by methods, which `find_readers` does not find."""
    predictor = request.getfixturevalue(f"{task}_predictor")

    def read(text):
        instance = predictor.make_instance(instance_of(task, text), "the instance")
        predictor.padded_rows(instance)
        predictor.count_tokens(text)
        if task in ("dialog", "selection"):
            predictor._read(instance)
        elif task == "generation":
            predictor._request(instance)
        else:
            predictor.reader.questions([instance.tokenized])

    check_growth(f"instance {task}", read)


# === Files ===

FORMS = {
    "smn": ("train.txt", "1\tx\t{text}\n"),
    "dailydialog": ("dialogues_train.txt", "x __eou__ {text} __eou__\n"),
    "subtitles": ("a.conv", "E\nM {text}\nM y\n"),
    "conversations": ("a.txt", "x\t{text}\n"),
    "conversations, CSV": ("a.csv", "chat,sender,text\n1,ann,x\n1,bob,{text}\n"),
    "conversations, WhatsApp": (
        "a.txt",
        "12/05/2021, 14:02 - Ann: hi\n12/05/2021, 14:03 - Bob: {text}\n",
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_a_file_is_read_in_linear_time(form, tmp_path):
    name, content = FORMS[form]
    reader = CORPORA[form.split(",")[0]].reader
    path = tmp_path / name

    def read(text):
        line = " ".join(re.sub("[\n\t]", " ", text).split(" "))
        path.write_text(content.format(text=line), encoding="utf-8", errors="replace")
        if form == "smn":
            list(reader.read(path))
        else:
            reader.read([path], "train", Report())

    read("hello")  # is not refused, so the long texts are read, too
    check_growth(form, read)


def test_rows_of_one_sender_are_read_in_linear_time(tmp_path):
    path = pathlib.Path(tmp_path / "a.csv")

    def read(text):
        # Long messages: joining them one by one would copy gigabytes.
        rows = f"1,ann,{'x' * 2_000}\n" * (len(text) // 8)
        path.write_text(f"chat,sender,text\n1,bob,hi\n{rows}1,bob,bye\n")
        CORPORA["conversations"].reader.read([path], "train", Report())

    read("hello there")  # is not refused
    check_growth("conversations, CSV of one sender", read, ["letter"])
