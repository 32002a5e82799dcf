"""engine/json_lines.py with a predictor that answers at once."""

import json
import os

import pytest
from helpers import full_disk, refusal

from colloquy.base.config import Config
from colloquy.base.files import UserError
from colloquy.engine.json_lines import BATCH, predict_lines
from colloquy.engine.predictor import Predictor


class Double(Predictor):
    class Instance(Config):
        text: str
        times: int = 2

    class Answer(Config):
        text: str
        note: str = "nothing"

    def __init__(self, limit=None):
        self.sizes, self.limit = [], limit

    def answer(self, instances):
        if self.limit is not None and sum(self.sizes) + len(instances) > self.limit:
            raise KeyboardInterrupt
        self.sizes.append(len(instances))
        return [self.Answer(text=instance.text * instance.times) for instance in instances]

    def answer_with_attention(self, instance, details):
        return self.answer([instance])[0], []


def write(path, texts):
    path.write_text(
        "".join(json.dumps({"text": text}, ensure_ascii=False) + "\n" for text in texts),
        encoding="utf-8",
    )
    return path


def read(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_lines_are_answered_in_order_and_in_batches(tmp_path):
    texts, out = [f"{i}日" for i in range(2 * BATCH + 5)], tmp_path / "out"
    source, predictor = write(tmp_path / "in", texts), Double()
    assert predict_lines(predictor, source, out) == (2 * BATCH + 5, [])
    assert predictor.sizes == [BATCH, BATCH, 5]
    assert [each["text"] for each in read(out)] == [text * 2 for text in texts]
    with full_disk(20), pytest.raises(UserError, match="more cannot be written: File too large"):
        predict_lines(Double(), source, tmp_path / "more")


def test_a_file_of_answers_is_replaced_whole_or_stays(tmp_path):
    source, out = write(tmp_path / "in", ["a"] * (BATCH + 1)), tmp_path / "out"
    before = '{"text": "old"}\n{"id": 1, "error": "line 2: no"}\n'
    out.write_text(before)
    with pytest.raises(KeyboardInterrupt):
        predict_lines(Double(limit=BATCH), source, out)
    assert out.read_text() == before and len(list(tmp_path.iterdir())) == 2
    predict_lines(Double(), source, out)
    assert len(read(out)) == BATCH + 1


def test_a_malformed_line_gets_an_error_and_the_others_answers(tmp_path):
    source = tmp_path / "in"
    source.write_bytes(
        b'{"text": "a"}\n{"text": 3}\n\xff\n' + b"[" * 200_000 + b'\n{"text": "b"}\n'
    )
    for explain, more in ((False, {}), (True, {"attention": []})):
        out = tmp_path / f"out-{explain}"
        assert predict_lines(Double(), source, out, explain) == (5, [2, 3, 4])
        first, *wrong, last = read(out)
        assert first == {"text": "aa", **more} and last == {"text": "bb", **more}
        errors = [each["error"] for each in wrong]
        assert errors[0] == "line 2: text: input should be a valid string. Received: 3"
        assert errors[1].startswith("line 3: expected a JSON object")
        assert errors[2].startswith("line 4: expected a JSON object") and len(errors[2]) < 200


def test_blank_lines_are_skipped_and_ids_come_back(tmp_path):
    source = tmp_path / "in"
    source.write_text('\ufeff{"text": "a"}\n\n{"id": "x1", "text": "b"}\n \n{"id": 7, "text": 3}\n')
    out = tmp_path / "out"
    assert predict_lines(Double(), source, out) == (3, [5])
    first, second, third = read(out)
    assert first == {"text": "aa"}
    assert second == {"id": "x1", "text": "bb"}
    assert third["id"] == 7
    assert third["error"].startswith("line 5: text: ")


@pytest.mark.parametrize(
    ("source", "out", "message"),
    [
        ("missing", "out", "No such file"),
        ("out", "out", "is the file of instances"),
        ("in", ".", "is a directory"),
    ],
)
def test_files_that_do_not_belong_together_are_refused(tmp_path, source, out, message):
    write(tmp_path / "in", ["a"])
    write(tmp_path / "out", ["x", "y"])
    assert message in refusal(predict_lines, Double(), tmp_path / source, tmp_path / out)


@pytest.mark.parametrize(
    "content",
    [
        "My thesis. Its last line has no end",
        "3\n",
        '{"text": "an answer"}\n{"chapter": 1}\n',
        '{"text": "one whole object, no line"}',
        '{"text": "an answer"}\nnotes',
        '{"text": "half an ans',
        '{"id": 7, "chapter": "one line of a foreign file, without an end"}',
        '{"id": 7}\n',
    ],
)
def test_a_file_that_holds_no_answers_stays_as_it_is(tmp_path, content):
    source = write(tmp_path / "in", ["a", "b", "c"])
    thesis = tmp_path / "thesis.txt"
    thesis.write_text(content)
    message = refusal(predict_lines, Double(), source, thesis)
    assert "expected an answer of this model" in message
    assert thesis.read_text() == content


def test_answers_are_written_to_a_device(tmp_path):
    write(tmp_path / "in", ["a"])
    assert predict_lines(Double(), tmp_path / "in", os.devnull) == (1, [])


def test_a_predictor_shows_its_run_and_its_fields():
    predictor = Double()
    predictor.run = "runs/mine"
    assert repr(predictor) == "<Double runs/mine: {text, times} -> {text, note}>"
