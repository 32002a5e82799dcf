"""engine/json_lines.py with a predictor that answers at once."""

import json

import pytest
from helpers import full_disk, refusal, script_refusal

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
    assert predict_lines(predictor, source, out) == (2 * BATCH + 5, 0)
    assert predictor.sizes == [BATCH, BATCH, 5]
    assert [each["text"] for each in read(out)] == [text * 2 for text in texts]
    with full_disk(20), pytest.raises(UserError, match="more cannot be written: File too large"):
        predict_lines(Double(), source, tmp_path / "more")


def test_an_existing_file_stays_and_an_interrupted_one_does_not_appear(tmp_path):
    source = write(tmp_path / "in", ["a"] * (BATCH + 1))
    out = tmp_path / "out"
    with pytest.raises(KeyboardInterrupt):
        predict_lines(Double(limit=BATCH), source, out)
    assert [path.name for path in tmp_path.iterdir()] == ["in"]
    out.write_text('{"text": "old"}\n')
    assert "exists" in refusal(predict_lines, Double(), source, out)
    assert out.read_text() == '{"text": "old"}\n'
    missing, new = tmp_path / "missing", tmp_path / "new"
    assert "No such file" in refusal(predict_lines, Double(), missing, new)


def test_a_malformed_line_gets_an_error_and_the_others_answers(tmp_path):
    source = tmp_path / "in"
    source.write_bytes(
        b'{"text": "a"}\n{"text": 3}\n\xff\n' + b"[" * 200_000 + b'\n{"text": "b"}\n'
    )
    for explain, more in ((False, {}), (True, {"attention": []})):
        out = tmp_path / f"out-{explain}"
        assert predict_lines(Double(), source, out, explain) == (5, 3)
        first, *wrong, last = read(out)
        assert first == {"text": "aa", **more} and last == {"text": "bb", **more}
        errors = [each["error"] for each in wrong]
        assert errors[0] == "line 2: text: input should be a valid string. Received: 3"
        assert errors[1].startswith("line 3: expected a JSON object")
        assert errors[2].startswith("line 4: expected a JSON object") and len(errors[2]) < 200


def test_predict_fails_with_the_numbers_of_the_lines_without_an_answer(trained_selection, tmp_path):
    write(tmp_path / "in", ["no", "fields", "of selection"])
    flags = f"--input={tmp_path / 'in'}", f"--out={tmp_path / 'out'}"
    message = script_refusal("predict.py", f"--run={trained_selection.path}", *flags)
    assert message == "error: no answer to 3 lines; in their place, the answers say why"


def test_blank_lines_are_skipped_and_ids_come_back(tmp_path):
    source = tmp_path / "in"
    source.write_text('\ufeff{"text": "a"}\n\n{"id": "x1", "text": "b"}\n \n{"id": 7, "text": 3}\n')
    out = tmp_path / "out"
    assert predict_lines(Double(), source, out) == (3, 1)
    first, second, third = read(out)
    assert first == {"text": "aa"}
    assert second == {"id": "x1", "text": "bb"}
    assert third["id"] == 7
    assert third["error"].startswith("line 5: text: ")
