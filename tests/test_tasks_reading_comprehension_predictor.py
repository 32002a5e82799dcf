"""`tasks.reading_comprehension.predictor` and `chat`: long passages, answers, attention, questions
in a chat.
"""

import keras
import numpy as np
import pytest
from helpers import refusal, talk_plain
from reference_recurrent import softmax

from colloquy.data.corpora.squad import tokenize
from colloquy.tasks import TASKS
from colloquy.tasks.reading_comprehension.chat import ReadingComprehensionChat, _in_its_sentence
from colloquy.tasks.reading_comprehension.predictor import BATCH_WORDS, windows_of
from colloquy.tasks.reading_comprehension.scoring import MAX_LENGTH

PASSAGE, QUESTION = "Ann lives in Rome. Bob lives in Paris.", "Where does Bob live?"


@pytest.fixture(scope="module")
def predictor(trained_reading_comprehension):
    return TASKS["reading_comprehension"].predictor(trained_reading_comprehension)


def ask(predictor, passage, question=QUESTION):
    return predictor.predict([{"passage": passage, "question": question}])[0]


@pytest.mark.parametrize("words", [1, 7, 8, 20, 53])
def test_each_short_span_is_whole_in_a_window(words):
    windows = windows_of(5, words, size=7, overlap=3)
    assert {window.row for window in windows} == {5} and windows[-1].end == words
    for first in range(words - 2):
        assert any(window.first <= first and first + 3 <= window.end for window in windows)
    assert all(window.end - window.first == min(7, words) for window in windows)


def test_the_best_window_answers(predictor):
    """A passage of windows: the answer is that of the window whose best span has the highest
    logits.
    """
    filler = "in Oslo, in Kyiv? " * 211
    passage = f"{filler}{PASSAGE} {filler}"
    places = tokenize(passage)
    windows = windows_of(0, len(places), predictor.window, predictor.window // 4)
    assert len(windows) > 5 and predictor.window // 4 >= MAX_LENGTH
    alone = []
    for _, first, end in windows:
        start, stop = places[first][0], places[end - 1][1]
        found = ask(predictor, passage[start:stop])
        alone.append((found["score"], found["answer"], found["start"] + start))
    found = ask(predictor, passage)
    best = max(alone)
    assert found["score"] == pytest.approx(best[0], abs=1e-3) and found["answer"] == best[1]
    assert passage[found["start"] : found["end"]] == found["answer"]
    assert 0 < found["probability"] < 1
    shown = predictor.explain({"passage": passage, "question": QUESTION})["attention"][0]
    # the window of the answer, not the whole passage
    assert len(shown["columns"]) == predictor.window
    assert found["answer"].split()[0] in shown["columns"]


def test_ten_thousand_words_are_read_a_batch_at_a_time(predictor, monkeypatch):
    calls, predict = [], predictor._reader.predict_on_batch

    def counting(inputs):
        calls.append(inputs["context"].shape)
        return predict(inputs)

    monkeypatch.setattr(predictor._reader, "predict_on_batch", counting)
    passage = "Cyd lives in Kyiv. " * 2000 + PASSAGE
    assert len(tokenize(passage)) == 10_010
    found = ask(predictor, passage)
    assert found["answer"] and found["answer"] == passage[found["start"] : found["end"]]
    assert max(rows * words for rows, words in calls) <= BATCH_WORDS
    assert sum(rows * words for rows, words in calls) < 1.5 * 10_010
    # as after training on passages of this length
    monkeypatch.setattr(predictor, "window", BATCH_WORDS + 1)
    assert ask(predictor, PASSAGE)["answer"]


def test_the_best_answers_share_no_word_and_attention_is_the_papers(predictor):
    found = predictor.explain({"passage": PASSAGE, "question": QUESTION})
    first = found["n_best"][0]
    assert {name: found[name] for name in first} == first
    scores = [each["score"] for each in found["n_best"]]
    assert scores == sorted(scores, reverse=True) and 1 < len(scores) <= 5
    taken = [place for each in found["n_best"] for place in range(each["start"], each["end"])]
    assert len(taken) == len(set(taken))
    _, c2q, q2c = found["attention"]
    flow = predictor.model.get_layer("attention_flow")
    inputs, _ = predictor._split([predictor.Instance(passage=PASSAGE, question=QUESTION)]).collate(
        [0]
    )
    H_TD, U_JD = (
        x[0] for x in keras.Model(predictor.model.input, flow.input[:2]).predict_on_batch(inputs)
    )
    w_h, w_u, w_hu = np.asarray(flow.w_3D)
    S_TJ = np.array([[h @ w_h + u @ w_u + (h * u) @ w_hu for u in U_JD] for h in H_TD])

    np.testing.assert_allclose(c2q["weights"], [softmax(row) for row in S_TJ], atol=1e-5)
    np.testing.assert_allclose(q2c["weights"], [softmax(S_TJ.max(axis=1))], atol=1e-5)
    words, asked = ([text[i:j] for i, j in tokenize(text)] for text in (PASSAGE, QUESTION))
    assert (c2q["rows"], c2q["columns"], q2c["rows"], q2c["columns"]) == (
        words,
        asked,
        ["question"],
        words,
    )


def test_words_are_needed_and_those_without_a_vector_are_counted(predictor):
    found = ask(predictor, "Rome, Xyzzy in Bern.", "where, plugh?")
    assert found["unknown_percent"] == pytest.approx(100 * 2 / 6, abs=0.1)
    for name, *instance in (("passage", "\u3000", QUESTION), ("question", PASSAGE, "")):
        assert f"instance 0, {name}: expected words" in refusal(ask, predictor, *instance)


# === Chat ===


@pytest.fixture(scope="module")
def chat(predictor):
    return ReadingComprehensionChat(predictor)


def test_the_best_answer_of_all_paragraphs_is_shown_in_its_sentence(chat):
    text = "  Ann lives in Rome. Bob e\u0301 👍🏽 lives\n in Paris!\n\n \n\n\u05e9\u05dc\u05d5\u05dd Cyd. "
    assert chat.take(text) == "16 words in 2 paragraphs."
    for taken, question in (
        (text, "Where does Bob live?"),
        ("Ann lives in Rome.\n\nBob in Paris.", "Where is Ann?"),
    ):
        chat.take(taken)
        answers = chat.predictor.predict(
            [{"passage": each, "question": question} for each in chat.paragraphs]
        )
        number = int(np.argmax([answer["score"] for answer in answers]))
        best, paragraph = answers[number], chat.paragraphs[number]
        shown, note, *_ = chat.reply(question)
        [span] = shown.spans
        assert (
            shown.plain[span.start : span.end]
            == best["answer"]
            == paragraph[best["start"] : best["end"]]
            != ""
        )
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
    assert first.startswith(
        f"first word  {probabilities['columns'][best]} {probabilities['weights'][0][best]:.2f}, "
    )
    assert (
        last.startswith("last word   ")
        and [line.split()[0] for line in words] == found["answer"].split()
    )
    for line in words:
        word, weight, other = line.split()
        row = flow["weights"][
            len("Cyd lives in Oslo . ".split()) * 9 + "Bob lives in Paris .".split().index(word)
        ]
        assert (
            float(weight) == pytest.approx(max(row), abs=5e-3)
            and flow["columns"][int(np.argmax(row))] == other
        )
    picture = tmp_path / "a.png"
    assert chat.explain(str(picture)) == f"{picture} written" and picture.read_bytes().startswith(
        b"\x89PNG"
    )
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
    assert (
        chat.reply("Where, of all the places in this wide world, does Ann live?")[0].plain == "Rome"
    )
