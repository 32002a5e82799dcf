"""`tasks.reading_comprehension.chat`: a reader that is asked, on small simulated texts."""

import numpy as np
import pytest
from terminals import talk_plain

from tasks import TASKS
from tasks.dialog.chat import DialogChat
from tasks.reading_comprehension.chat import ReadingComprehensionChat, _in_its_sentence

reading = TASKS["reading_comprehension"]


# === Reading ===


@pytest.fixture(scope="module")
def reader(trained_reading_comprehension):
    return ReadingComprehensionChat(reading.predictor(trained_reading_comprehension))


def test_an_answer_is_shown_in_its_sentence_and_stands_where_it_says(reader):
    text = "  Ann lives in Rome. Bob e\u0301 👍🏽 lives\n in Paris!\n\n \n\n\u05e9\u05dc\u05d5\u05dd Cyd. "
    assert reader.take(text) == "16 words in 2 paragraphs."
    asked = [{"passage": each, "question": "Where does Bob live?"} for each in reader.paragraphs]
    best = max(reader.predictor.predict(asked), key=lambda found: found["score"])
    assert best["answer"] and best["answer"] in text
    shown, note, *_ = reader.reply("Where does Bob live?")
    [span] = shown.spans
    assert shown.plain[span.start : span.end] == best["answer"]
    assert note == f"{best['answer']}  (score {best['score']:.1f})"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Ann is tall. Bob lives\nin Rome, the\n  city. Cyd.", "Bob lives in Rome, the   city."),
        ("Plans\nBob lives in Rome\nCyd in Oslo", "Bob lives in Rome"),
        ("Bob lives in Rome!\nhe says. Cyd.", "Bob lives in Rome!"),
    ],
)
def test_a_sentence_may_go_on_in_the_next_line(text, shown):
    at = text.index("Rome")
    sentence = _in_its_sentence(text, at, at + 4)
    [span] = sentence.spans
    assert sentence.plain == shown and sentence.plain[span.start : span.end] == "Rome"


def test_the_best_of_several_paragraphs_is_taken(reader):
    reader.take("Ann lives in Rome.\n\nBob lives in Paris.\n\nCyd lives in Oslo.")
    asked = [{"passage": each, "question": "Where does Ann live?"} for each in reader.paragraphs]
    best = int(np.argmax([found["score"] for found in reader.predictor.predict(asked)]))
    assert reader.reply("Where does Ann live?")[0].plain == reader.paragraphs[best]


def test_an_answer_is_explained(reader):
    reader.take("Cyd lives in Oslo. " * 9 + "Bob lives in Paris.")
    assert reader.explain() == "Ask a question first."
    reader.reply("Where does Bob live?")
    found = reader.predictor.explain(reader.last)
    probabilities, flow, *_ = found["attention"]
    first, last, *words = reader.explain().splitlines()
    best = int(np.argmax(probabilities["weights"][0]))
    assert first.startswith(f"first word  {probabilities['columns'][best]} {probabilities['weights'][0][best]:.2f}, ")
    assert last.startswith("last word   ") and [line.split()[0] for line in words] == found["answer"].split()
    for line in words:
        word, weight, other = line.split()
        row = flow["weights"][len("Cyd lives in Oslo . ".split()) * 9 + "Bob lives in Paris .".split().index(word)]
        assert float(weight) == pytest.approx(max(row), abs=5e-3) and flow["columns"][int(np.argmax(row))] == other


def test_attention_is_drawn_where_a_file_is_named(reader, trained_dialog, tmp_path):
    chat = DialogChat(TASKS["dialog"].predictor(trained_dialog))
    reader.take("Ann lives in Rome.")
    reader.reply("Where does Ann live?")
    list(chat.reply("hello"))
    list(chat.reply("hello"))
    for name, command in (("reader", reader.explain), ("bot", chat.attention)):
        assert command(str(tmp_path / f"{name}.png")) == f"{tmp_path / name}.png written"
        assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")


def test_what_to_know_of_an_answer_is_said(reader, monkeypatch):
    reader.take("Ann lives in Rome.")
    [found] = reader.predictor.predict([{"passage": "Ann lives in Rome.", "question": "Where does Ann live?"}])
    remarked = {**found, "confidence": 0.218, "good": False, "unknown_percent": 15.4}
    monkeypatch.setattr(reader.predictor, "predict", lambda _: [remarked])
    _, *notes = reader.reply("Where does Ann live?")
    assert notes == [
        f"{found['answer']}  (score {found['score']:.1f}, confidence 22 %)",
        "[There may be no good answer: the score is below the threshold that dev gave.]",
        "[The model has no vector for 15 % of these words.]",
    ]


def test_a_question_may_be_longer_than_its_text(reader):
    reader.take("Rome")
    assert reader.reply("Where, of all the places in this wide world, does Ann live?")[0].plain == "Rome"


def test_reading_says_what_it_lacks(reader, tmp_path):
    reader.paragraphs = []
    assert reader.reply("Who?") == ["Give me a text first: /read FILE"]
    assert reader.take(" \n\n ") == "There are no words in this text."
    assert reader.read(str(tmp_path / "missing")).startswith("/read expects a UTF-8 text file.")
    (tmp_path / "notes.txt").write_text("Ann lives in Rome.", encoding="utf-8")
    printed = talk_plain(reader, f"/read {tmp_path / 'notes.txt'}", "", "Where does Ann live?")
    assert "5 words in 1 paragraphs." in printed
    assert "Ask a question." in printed
    assert "score" in printed
