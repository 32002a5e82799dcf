"""`tasks.reading_comprehension.chat`: questions on small texts."""

import numpy as np
import pytest
from helpers import talk_plain

from tasks import TASKS
from tasks.reading_comprehension.chat import ReadingComprehensionChat, _in_its_sentence


@pytest.fixture(scope="module")
def chat(trained_reading_comprehension):
    return ReadingComprehensionChat(TASKS["reading_comprehension"].predictor(trained_reading_comprehension))


def test_the_best_answer_of_all_paragraphs_is_shown_in_its_sentence(chat):
    text = "  Ann lives in Rome. Bob e\u0301 👍🏽 lives\n in Paris!\n\n \n\n\u05e9\u05dc\u05d5\u05dd Cyd. "
    assert chat.take(text) == "16 words in 2 paragraphs."
    for taken, question in ((text, "Where does Bob live?"), ("Ann lives in Rome.\n\nBob in Paris.", "Where is Ann?")):
        chat.take(taken)
        answers = chat.predictor.predict([{"passage": each, "question": question} for each in chat.paragraphs])
        number = int(np.argmax([answer["score"] for answer in answers]))
        best, paragraph = answers[number], chat.paragraphs[number]
        shown, note, *_ = chat.reply(question)
        [span] = shown.spans
        assert shown.plain[span.start : span.end] == best["answer"] == paragraph[best["start"] : best["end"]] != ""
        assert shown.plain in paragraph.replace("\n", " ")
        assert note == f"{best['answer']}  (score {best['score']:.1f})"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Ann is tall. Bob lives\nin Rome, the\n  city. Cyd.", "Bob lives in Rome, the   city."),
        ("Plans\nBob lives in Rome\nCyd in Oslo", "Bob lives in Rome"),
        ("Bob lives in Rome!\nhe says. Cyd.", "Bob lives in Rome!"),
    ],
)
def test_a_sentence_may_continue_in_the_next_line(text, shown):
    at = text.index("Rome")
    sentence = _in_its_sentence(text, {"start": at, "end": at + 4})
    [span] = sentence.spans
    assert sentence.plain == shown and sentence.plain[span.start : span.end] == "Rome"


def test_an_answer_is_explained_and_remarked_on(chat, tmp_path, monkeypatch):
    chat.reset()
    chat.take("Cyd lives in Oslo. " * 9 + "Bob lives in Paris.")
    assert chat.explain() == "Say something first."
    chat.reply("Where does Bob live?")
    found = chat.predictor.explain(chat.last)
    probabilities, flow, *_ = found["attention"]
    first, last, *words = chat.explain().splitlines()
    best = int(np.argmax(probabilities["weights"][0]))
    assert first.startswith(f"first word  {probabilities['columns'][best]} {probabilities['weights'][0][best]:.2f}, ")
    assert last.startswith("last word   ") and [line.split()[0] for line in words] == found["answer"].split()
    for line in words:
        word, weight, other = line.split()
        row = flow["weights"][len("Cyd lives in Oslo . ".split()) * 9 + "Bob lives in Paris .".split().index(word)]
        assert float(weight) == pytest.approx(max(row), abs=5e-3) and flow["columns"][int(np.argmax(row))] == other
    picture = tmp_path / "a.png"
    assert chat.explain(str(picture)) == f"{picture} written" and picture.read_bytes().startswith(b"\x89PNG")
    remarked = {**found, "confidence": 0.218, "good": False, "unknown_percent": 15.4}
    monkeypatch.setattr(chat.predictor, "predict", lambda asked: [remarked] * len(asked))
    _, *notes = chat.reply("Where does Bob live?")
    assert notes == [
        f"{found['answer']}  (score {found['score']:.1f}, confidence 22 %)",
        "[The text may not answer this: on dev, 95 % of the correct answers have a higher confidence.]",
        "[The model has no vector for 15 % of these words.]",
    ]


def test_what_the_chat_lacks_is_said(chat, tmp_path):
    chat.paragraphs = []
    assert chat.reply("Who?") == ["Give me a text first: /read FILE"]
    assert chat.take(" \n\n ") == "There are no words in this text."
    assert chat.read(str(tmp_path / "missing")).startswith("/read expects a UTF-8 text file.")
    (tmp_path / "notes.txt").write_text("Ann lives in Rome.", encoding="utf-8")
    printed = talk_plain(chat, f"/read {tmp_path / 'notes.txt'}", "", "Where does Ann live?")
    assert all(text in printed for text in ("5 words in 1 paragraphs.", "Ask a question.", "score"))
    chat.take("Rome")
    assert chat.reply("Where, of all the places in this wide world, does Ann live?")[0].plain == "Rome"
