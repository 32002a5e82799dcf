"""Behaviour seen from outside, pinned before the redesign: commands, files and answers of the published models.

`tests/pinned.json` holds the answers of commit 2c95758 to ten instances per model; `python tests/test_pinned.py
DIRECTORY` wrote it there. Only commands and file formats that users see are used, so the file runs before and after.
"""

import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import time
import urllib.request

import h5py
import numpy as np
import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
EXPECTED = ROOT / "tests" / "pinned.json"
pytestmark = pytest.mark.slow

PASSAGE = (
    "The Danube rises in the Black Forest in Germany. It flows through Vienna, Budapest and Belgrade, and reaches the "
    "Black Sea after 2,850 kilometres. Johann Strauss wrote a waltz about it in 1866."
)
QUESTIONS = (
    "Where does the Danube rise?",
    "How long is the river?",
    "Who wrote a waltz about it?",
    "When was the waltz written?",
    "Which sea does it reach?",
    "What flows through Vienna?",
    "Which cities does it pass?",
)
TALKS = (
    ["hello, how are you?"],
    ["where do you work?", "in a bank.", "do you like it?"],
    ["can i help you?"],
    ["i lost my wallet."],
    ["what time is it?", "half past two."],
    ["thank you very much."],
    ["shall we go to the cinema tonight?"],
)
CHINESE = (
    ["你好"],
    ["你喜欢喝茶吗\uff1f"],
    ["今天天气很好。", "是的。我们去公园吧。"],
    ["谢谢你"],
    ["多少钱\uff1f"],
    ["我很忙"],
    ["再见"],
)
CANDIDATES = [
    "try sudo apt-get update first",
    "thanks , that worked",
    "what does dmesg say ?",
    "i do not know",
    "use mount -t ntfs-3g /dev/sdb1 /mnt",
]
PROBLEMS = (
    ["how do i mount a usb stick ?"],
    ["my wifi does not work after the upgrade", "which card do you have ?", "an intel one"],
    ["hi", "hello"],
    ["apt-get says that the package has no candidate"],
    ["how can i list all partitions ?", "sudo fdisk -l"],
    ["the screen stays black"],
    ["it works now , thank you"],
)
BOOKINGS = (
    ["hi"],
    ["hi", "can you book a table with italian food"],
    ["good morning", "may i have a table in paris for six"],
    ["hello", "i'd like to book a table with indian cuisine", "in rome", "for four people", "in a cheap price range"],
    ["hello", "can you make a restaurant reservation in bombay for two in a moderate price range with french food"],
    ["thanks"],
    ["no"],
)
INSTANCES = {
    "bidaf-squad": [{"passage": PASSAGE, "question": question} for question in QUESTIONS],
    "chat-dailydialog": [{"turns": turns} for turns in TALKS],
    "chat-xdailydialog": [{"turns": turns} for turns in CHINESE],
    "dam-ubuntu-irc": [{"turns": turns, "candidates": CANDIDATES} for turns in PROBLEMS],
    "entity-memma-task5": [{"history": [{"speaker": "user", "text": text} for text in said]} for said in BOOKINGS],
    "memma-task6": [{"history": [{"speaker": "user", "text": text} for text in said]} for said in BOOKINGS],
}
LINES = {
    "bidaf-squad": ["/read passage.txt", "How long is the Danube?", "Who wrote a waltz?"],
    "chat-dailydialog": ["hello", "how are you today?", "/beam 4", "what do you do for a living?"],
    "entity-memma-task5": ["hi", "can you book a table with italian food in paris", "for six please", "cheap"],
    "memma-task6": ["hello", "i want cheap chinese food in the north"],
}


def instances_of(model):
    """Ten instances: the published examples of a model and seven more."""
    examples = json.loads((ROOT / "pretrained" / model / "examples.json").read_text(encoding="utf-8"))
    return [*(example["instance"] for example in examples), *INSTANCES[model]]


def command(*arguments, stdin=""):
    """Runs `python ARGUMENTS` at the project's root."""
    process = subprocess.run(
        [sys.executable, *map(str, arguments)], cwd=ROOT, input=stdin, capture_output=True, text=True, encoding="utf-8"
    )
    return process.returncode, process.stdout, process.stderr


# === Answers ===


def json_lines(model, directory):
    asked, answered = directory / "asked.jsonl", directory / "answered.jsonl"
    asked.write_text("".join(json.dumps(instance) + "\n" for instance in instances_of(model)), encoding="utf-8")
    code, _, errors = command("evaluate.py", f"--run=pretrained/{model}", f"--predict={asked}", f"--out={answered}")
    assert code == 0, errors
    return [json.loads(line) for line in answered.read_text(encoding="utf-8").splitlines()]


def chat(model, directory):
    """What is printed from the first line that was typed to the last."""
    (directory / "passage.txt").write_text(PASSAGE, encoding="utf-8")
    lines = [line.replace("passage.txt", str(directory / "passage.txt")) for line in LINES[model]]
    code, out, errors = command("chat.py", f"--run=pretrained/{model}", stdin="\n".join([*lines, "/quit", ""]))
    assert code == 0, errors
    talk = out[out.index("you: ") : out.index("you: /quit")].replace(str(directory), "")
    return [line.rstrip() for line in talk.splitlines()]


EXPORTED = """
import json, sys
import tensorflow as tf
model, found = tf.saved_model.load(sys.argv[1]), []
for instance in json.load(open(sys.argv[2], encoding="utf-8")):
    if "passage" in instance:
        given = {name: tf.constant([value]) for name, value in instance.items()}
        answer = model.answer(**given)
    elif "candidates" in instance:
        answer = model.rank(turns=tf.constant([instance["turns"]]), candidates=tf.constant([instance["candidates"]]))
    elif "turns" in instance:
        answer = model.reply(turns=tf.constant([instance["turns"]]))
    else:
        said = instance["history"]
        given = {"history": [each["text"] for each in said], "speakers": [each["speaker"] for each in said]}
        given |= {"facts": [""], "candidates": [""]}
        answer = model.respond(**{name: tf.constant([value]) for name, value in given.items()})
    lists = {name: value if hasattr(value, "to_list") else value.numpy() for name, value in answer.items()}
    found.append({name: x.to_list() if hasattr(x, "to_list") else x.tolist() for name, x in lists.items()})
print(json.dumps(found, default=lambda text: text.decode("utf-8")))
"""


def exported(model, directory):
    code, _, errors = command("export.py", f"--run=pretrained/{model}", f"--out={directory / 'model'}")
    assert code == 0, errors
    asked = directory / "instances.json"
    asked.write_text(json.dumps(instances_of(model)), encoding="utf-8")
    code, out, errors = command("-c", EXPORTED, directory / "model" / "1", asked)
    assert code == 0, errors
    return json.loads(out)


def assert_same(found, expected, where=""):
    """Texts are equal and numbers close: logits to about 1e-4."""
    if isinstance(expected, dict):
        assert found.keys() == expected.keys(), where
        for name in expected:
            assert_same(found[name], expected[name], f"{where}.{name}")
    elif isinstance(expected, list):
        assert len(found) == len(expected), where
        for number, pair in enumerate(zip(found, expected, strict=True)):
            assert_same(*pair, f"{where}[{number}]")
    elif isinstance(expected, float):
        assert found == pytest.approx(expected, rel=1e-3, abs=1e-4), where
    else:
        assert found == expected, where


@pytest.mark.parametrize("model", INSTANCES)
def test_answers_of_json_lines(model, tmp_path):
    assert_same(json_lines(model, tmp_path), pinned("json_lines", model))


@pytest.mark.parametrize("model", LINES)
def test_chats(model, tmp_path):
    assert chat(model, tmp_path) == pinned("chat", model)


@pytest.mark.parametrize("model", ["bidaf-squad", "chat-dailydialog", "dam-ubuntu-irc", "entity-memma-task5"])
def test_answers_of_a_saved_model(model, tmp_path):
    assert_same(exported(model, tmp_path), pinned("exported", model))


def pinned(kind, model):
    return json.loads(EXPECTED.read_text(encoding="utf-8"))[kind][model]


@pytest.fixture(scope="module")
def server():
    """The address of a server of all published models."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    runs = [f"--run={model}=pretrained/{model}" for model in INSTANCES]
    process = subprocess.Popen(
        [sys.executable, "serve.py", *runs, f"--port={port}"],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    address = f"http://127.0.0.1:{port}"
    for _ in range(300):
        assert process.poll() is None
        try:
            urllib.request.urlopen(f"{address}/healthz")
            break
        except OSError:
            time.sleep(1)
    yield address
    process.terminate()
    process.wait(60)


@pytest.mark.parametrize("model", INSTANCES)
def test_rest_answers_as_json_lines_do(model, server):
    body = json.dumps({"instances": instances_of(model)}).encode()
    request = urllib.request.Request(f"{server}/v1/models/{model}:predict", body, {"Content-Type": "application/json"})
    found = json.load(urllib.request.urlopen(request))
    assert_same(found["predictions"], pinned("json_lines", model))


# === Training ===


def write_corpora(root):
    """Small raw corpora of three kinds, whose sentences have many lengths."""
    for name in ("smn", "talk", "squad"):
        (root / name).mkdir(parents=True)
    words = "ann bob cyd dee eve likes hates tea rain noise jam in rome paris oslo when it is late or cold".split()
    rng = np.random.default_rng(7)

    def sentence():
        return " ".join(rng.choice(words, rng.integers(1, 9)))

    for split, count in (("train", 90), ("valid", 24), ("test", 24)):
        with open(root / "smn" / f"{split}.txt", "w", encoding="utf-8") as file:
            for _ in range(count):
                turns = [sentence() for _ in range(rng.integers(1, 5))]
                for label in (1, 0) if split == "train" else (1, *[0] * 9):
                    file.write("\t".join([str(label), *turns, sentence()]) + "\n")
    for split, count in (("train", 60), ("dev", 20)):
        text = "".join("\t".join(sentence() for _ in range(rng.integers(2, 5))) + "\n" for _ in range(count))
        (root / "talk" / f"{split}.txt").write_text(text, encoding="utf-8")
    for split, count in (("train", 40), ("dev", 12)):
        paragraphs = []
        for number in range(count):
            context = ". ".join(f"{sentence()} and {rng.choice(words)} came" for _ in range(rng.integers(1, 4)))
            word = context.split(" ")[-2]
            answer = {"text": word, "answer_start": context.rindex(word)}
            qas = [{"id": f"{split}{number}", "question": f"who {sentence()} ?", "answers": [answer]}]
            paragraphs.append({"context": context, "qas": qas})
        data = {"data": [{"title": "t", "paragraphs": paragraphs}]}
        (root / "squad" / f"{split}-v1.1.json").write_text(json.dumps(data), encoding="utf-8")
    vectors = rng.normal(size=(len(words), 5)).astype("float16")
    np.savez(root / "squad" / "vectors.npz", words=np.array(words), vectors=vectors)


PREPARE = {
    "dam": ["--corpus=smn", "--min_count=1", "--dimension=7"],
    "seq2seq": ["--corpus=conversations", "--min_count=1", "--tokenizer=words"],
    "bidaf": ["--corpus=squad"],
}
TRAIN = {
    "dam": ["--batch_size=8", "--epochs=3", "--set=levels=1", "--set=max_turns=3", "--set=max_words=8",
            "--set=embedding_dropout=.2", "--set=validations_per_epoch=1", "--set=negatives=fresh"],
    "seq2seq": ["--batch_size=8", "--epochs=3", "--set=embedding_dim=7", "--set=hidden=10", "--set=dropout=0.1"],
    "bidaf": ["--batch_size=5", "--epochs=3", "--set=hidden=5", "--set=character_filters=7", "--set=ema=0.9"],
}  # fmt: skip
SOURCES = {"dam": "smn", "seq2seq": "talk", "bidaf": "squad"}


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """Prepared datasets, `{model: directory}`."""
    root = tmp_path_factory.mktemp("pinned")
    write_corpora(root / "raw")
    for model, flags in PREPARE.items():
        source = root / "raw" / SOURCES[model]
        code, _, errors = command("prepare.py", *flags, f"--source={source}", f"--out={root / model}")
        assert code == 0, errors
    return {model: root / model for model in PREPARE}


def weights_of(run):
    """All arrays of the best weights, by their path in the file."""
    found = {}
    with h5py.File(run / "best.weights.h5") as file:
        file.visititems(lambda name, node: found.update({name: node[()]}) if isinstance(node, h5py.Dataset) else None)
    return found


def history_of(run):
    """The validations of a run, without what differs between two equal trainings."""
    rows = [json.loads(line) for line in (run / "history.jsonl").read_text().splitlines()]
    return [{name: value for name, value in row.items() if "second" not in name} for row in rows]


def train(model, data, run, *flags):
    return command("train.py", f"--model={model}", f"--data={data}", f"--workdir={run}", *TRAIN[model], *flags)


@pytest.mark.parametrize("model", TRAIN)
def test_losses_of_a_training(model, prepared, tmp_path):
    """The same batches in the same order, and the same arithmetic, as before.

    Written again once, for DAM: an interval's loss is now the mean over its steps, where it was weighted by their
    examples within a block of ten. Weights and optimizer were equal to those of 2c95758, bit by bit.
    """
    code, _, errors = train(model, prepared[model], tmp_path / "run")
    assert code == 0, errors
    found = [(row["step"], row["loss"]) for row in history_of(tmp_path / "run")]
    assert_same([list(row) for row in found], pinned("losses", model))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize("model", TRAIN)
def test_an_ended_training_resumes_bit_for_bit(model, number, prepared, tmp_path):
    """Ended twice within the training, into whatever batch comes next."""
    whole, ended = tmp_path / "whole", tmp_path / "ended"
    code, _, errors = train(model, prepared[model], whole)
    assert code == 0, errors
    first = [f"--model={model}", f"--data={prepared[model]}", f"--workdir={ended}", *TRAIN[model]]
    for flags in (first, ["--resume", f"--workdir={ended}"]):
        process = subprocess.Popen(
            [sys.executable, "train.py", *flags, "--save_minutes=0"], cwd=ROOT, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )  # fmt: skip
        before = time_of(ended / "last.npz")
        while process.poll() is None and time_of(ended / "last.npz") == before:
            time.sleep(0.02)
        process.send_signal(number)
        process.wait()
    code, _, errors = command("train.py", "--resume", f"--workdir={ended}")
    assert code == 0, errors
    found, expected = weights_of(ended), weights_of(whole)
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_array_equal(found[name], value, err_msg=name)
    for row, of_whole in zip(history_of(ended), history_of(whole), strict=True):
        assert row == {**of_whole, "loss": pytest.approx(of_whole["loss"], rel=1e-4)}


def time_of(path):
    return path.stat().st_mtime_ns if path.exists() else None


# === Bad input ===

BAD = [
    (["train.py", "--model=dam", "--data=nowhere"], "nowhere"),
    (["train.py", "--model=dam", "--set=levels=x"], "levels"),
    (["train.py", "--model=dam", "--set=nothing=1"], "nothing"),
    (["train.py", "--recipe=unknown"], "recipe"),
    (["train.py", "--resume", "--workdir=nowhere"], "nowhere"),
    (["evaluate.py"], "--run"),
    (["evaluate.py", "--run=nowhere"], "nowhere"),
    (["evaluate.py", "--run=pretrained/bidaf-squad"], "--data"),
    (["evaluate.py", "--run=pretrained/bidaf-squad", "--predict=nowhere.jsonl"], "nowhere.jsonl"),
    (["prepare.py", "--corpus=smn", "--source=nowhere", "--out=build/x"], "nowhere"),
    (["export.py", "--run=nowhere", "--out=build/x"], "nowhere"),
    (["chat.py", "--run=nowhere"], "nowhere"),
    (["serve.py", "--run=dam=nowhere"], "nowhere"),
    (["serve.py", "--run=nowhere"], "NAME=DIR"),
]


@pytest.mark.parametrize("arguments, word", BAD, ids=[" ".join(arguments) for arguments, _ in BAD])
def test_bad_input_is_one_sentence_and_exit_code_1(arguments, word):
    code, out, errors = command(*arguments)
    assert code == 1, out
    assert word in errors and "Traceback" not in errors


def record(directory):
    """Writes `pinned.json`."""
    write = {"json_lines": (json_lines, INSTANCES), "chat": (chat, LINES)}
    write["exported"] = exported, ["bidaf-squad", "chat-dailydialog", "dam-ubuntu-irc", "entity-memma-task5"]
    found = {}
    for kind, (ask, models) in write.items():
        for model in models:
            (directory / kind / model).mkdir(parents=True)
            found.setdefault(kind, {})[model] = ask(model, directory / kind / model)
    write_corpora(directory / "raw")
    for model, flags in PREPARE.items():
        command("prepare.py", *flags, f"--source={directory / 'raw' / SOURCES[model]}", f"--out={directory / model}")
        code, _, errors = train(model, directory / model, directory / "run" / model)
        assert code == 0, errors
        losses = [[row["step"], row["loss"]] for row in history_of(directory / "run" / model)]
        found.setdefault("losses", {})[model] = losses
    EXPECTED.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    record(pathlib.Path(sys.argv[1]))
