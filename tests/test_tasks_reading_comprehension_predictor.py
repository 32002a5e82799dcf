"""`tasks.reading_comprehension.predictor` and `chat`: long passages, answers, attention, a chat."""

import itertools

import keras
import numpy as np
import pytest
from helpers import copy_of, refusal, talk_plain
from reference_recurrent import softmax

from colloquy.data.offsets import read_text, tokenize
from colloquy.tasks import TASKS
from colloquy.tasks.reading_comprehension.chat import (
    ReadingComprehensionChat,
    _highlight_in_sentence,
)
from colloquy.tasks.reading_comprehension.reader import TokenizedInstance
from colloquy.tasks.reading_comprehension.spans import BATCH_WORDS
from colloquy.tasks.reading_comprehension.windows import make_windows

PASSAGE = "Ann lives in Rome. Bob lives in Paris."
QUESTION = "Where does Bob live?"


@pytest.fixture
def predictor(reading_comprehension_predictor):
    return reading_comprehension_predictor


def ask(predictor, passage, question=QUESTION):
    [answer] = predictor.predict([{"passage": passage, "question": question}])
    return answer


def words_of(text):
    return [text[start:end] for start, end in tokenize(text)]


@pytest.mark.slow
def test_answers_are_no_longer_than_asked(trained_reading_comprehension, tmp_path_factory):
    run = copy_of(trained_reading_comprehension, tmp_path_factory)
    run.update({"config": {**run.record["config"], "max_answer_words": 1}})
    answer = ask(TASKS["reading_comprehension"].predictor(run), PASSAGE)
    assert all(len(words_of(span["answer"])) == 1 for span in answer["n_best"])


# === Windows ===


@pytest.mark.parametrize("words", [1, 7, 53])
def test_each_short_span_is_whole_in_a_window(words):
    windows = make_windows(5, words, size=12)
    assert windows[-1].end == words
    for window in windows:
        assert window.row == 5
        assert window.end - window.first == min(12, words)
    for first in range(words - 2):
        assert any(window.first <= first and first + 3 <= window.end for window in windows)


def test_the_window_with_the_highest_logits_answers(predictor):
    filler = "in Oslo, in Kyiv? " * 211
    passage = f"{filler}{PASSAGE} {filler}"
    offsets = tokenize(passage)
    windows = make_windows(0, len(offsets), predictor.span_finder.window_words)
    assert len(windows) > 5
    assert predictor.span_finder.window_words // 4 >= predictor.model.config.max_answer_words

    scores_and_answers = []
    for _, first, end in windows:
        start = offsets[first][0]
        stop = offsets[end - 1][1]
        answer = ask(predictor, passage[start:stop])
        scores_and_answers.append((answer["score"], answer["answer"]))
    best_score, best_answer = max(scores_and_answers)

    answer = ask(predictor, passage)
    assert answer["score"] == pytest.approx(best_score, abs=1e-3)
    assert answer["answer"] == best_answer
    assert passage[answer["start"] : answer["end"]] == answer["answer"]
    assert 0 < answer["probability"] < 1
    # Attention is that in the window of the answer, not in the whole passage.
    explained = predictor.explain({"passage": passage, "question": QUESTION})
    columns = explained["attention"][0]["columns"]
    assert len(columns) == predictor.span_finder.window_words
    assert answer["answer"].split()[0] in columns
    window = passage[answer["window_start"] : answer["window_end"]]
    assert read_text(window).words == columns


def test_ten_thousand_words_are_read_a_batch_at_a_time(predictor, monkeypatch):
    words_of_batches = []
    predict = predictor.span_finder.best_spans.predict_on_batch

    def counting(inputs):
        words_of_batches.append(inputs["context"].size)
        return predict(inputs)

    monkeypatch.setattr(predictor.span_finder.best_spans, "predict_on_batch", counting)
    passage = "Cyd lives in Kyiv. " * 2000 + PASSAGE
    assert len(tokenize(passage)) == 10_010
    answer = ask(predictor, passage)
    assert answer["answer"]
    assert answer["answer"] == passage[answer["start"] : answer["end"]]
    assert max(words_of_batches) <= BATCH_WORDS
    assert sum(words_of_batches) < 1.5 * 10_010
    # As after training on passages of this length.
    monkeypatch.setattr(predictor.span_finder, "window_words", BATCH_WORDS + 1)
    assert ask(predictor, PASSAGE)["answer"]


# === Answers ===


def test_the_best_answers_share_no_word(predictor):
    answer = ask(predictor, PASSAGE)
    n_best = answer["n_best"]
    assert 1 < len(n_best) <= 5
    for name, value in n_best[0].items():
        assert answer[name] == value
    scores = [span["score"] for span in n_best]
    assert scores == sorted(scores, reverse=True)
    by_place = sorted(n_best, key=lambda span: span["start"])
    for span, following in itertools.pairwise(by_place):
        assert span["end"] <= following["start"]
    unknown = ask(predictor, "Rome, Xyzzy in Bern.", "where, plugh?")["unknown_percent"]
    assert unknown == pytest.approx(100 * 2 / 6, abs=0.1)


def test_attention_is_the_papers(predictor):
    _, c2q, q2c = predictor.explain({"passage": PASSAGE, "question": QUESTION})["attention"]
    flow = predictor.model.get_layer("attention_flow")
    split = predictor.reader.questions([TokenizedInstance.of(PASSAGE, QUESTION)])
    inputs, _ = split.collate([0])
    encoder = keras.Model(predictor.model.input, flow.input[:2])
    [H_TD], [U_JD] = encoder.predict_on_batch(inputs)
    w_h, w_u, w_hu = np.asarray(flow.w_3D)
    S_TJ = np.zeros((len(H_TD), len(U_JD)))
    for t, h in enumerate(H_TD):
        for j, u in enumerate(U_JD):
            S_TJ[t, j] = h @ w_h + u @ w_u + (h * u) @ w_hu

    np.testing.assert_allclose(c2q["weights"], [softmax(row) for row in S_TJ], atol=1e-5)
    np.testing.assert_allclose(q2c["weights"], [softmax(S_TJ.max(axis=1))], atol=1e-5)
    assert c2q["rows"] == words_of(PASSAGE)
    assert c2q["columns"] == words_of(QUESTION)
    assert q2c["rows"] == ["question"]
    assert q2c["columns"] == words_of(PASSAGE)


def test_passage_and_question_need_words(predictor):
    message = refusal(ask, predictor, "\u3000", QUESTION)
    assert "instance 0, passage: expected words" in message
    message = refusal(ask, predictor, PASSAGE, "")
    assert "instance 0, question: expected words" in message
    message = refusal(ask, predictor, PASSAGE, "where " * 301)
    assert "question: expected at most 300 words. Received: 301" in message


# === Chat ===


@pytest.fixture
def chat(predictor):
    return ReadingComprehensionChat(predictor)


def test_the_best_answer_of_all_paragraphs_is_shown_in_its_sentence(chat):
    text = (
        "  Ann lives in Rome. Bob e\u0301 👍🏽 lives\n in Paris!\n\n \n\n"
        "\u05e9\u05dc\u05d5\u05dd Cyd. "
    )
    assert chat.take(text) == "16 words in 2 paragraphs."
    asked = [{"passage": paragraph, "question": QUESTION} for paragraph in chat.paragraphs]
    answers = chat.predictor.predict(asked)
    best = int(np.argmax([answer["score"] for answer in answers]))
    answer = answers[best]

    sentence, note, *_ = chat.reply(QUESTION)
    [highlight] = sentence.spans
    assert sentence.plain[highlight.start : highlight.end] == answer["answer"]
    assert sentence.plain in chat.paragraphs[best].replace("\n", " ")
    assert note == f"{answer['answer']}  (score {answer['score']:.1f})"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Ann is tall. Bob lives\nin Rome, the\n  city. Cyd.", "Bob lives in Rome, the   city."),
        ("Plans\nBob lives in Rome\nCyd in Oslo", "Bob lives in Rome"),
        ("Bob lives in Rome!\nhe says. Cyd.", "Bob lives in Rome!"),
        ("安娜很高。鲍勃住在Rome。赛德住在奥斯陆。", "鲍勃住在Rome。"),
        ("他说“我住在Rome。”她走了。", "他说“我住在Rome。”"),
    ],
)
def test_a_sentence_may_continue_in_the_next_line(text, expected):
    start = text.index("Rome")
    sentence = _highlight_in_sentence(text, {"start": start, "end": start + 4})
    [highlight] = sentence.spans
    assert sentence.plain == expected
    assert sentence.plain[highlight.start : highlight.end] == "Rome"


def test_an_answer_is_explained(chat, tmp_path):
    chat.reset()
    chat.take("Cyd lives in Oslo. " * 9 + "Bob lives in Paris.")
    assert chat.explain() == "Say something first."
    chat.reply("Where does Bob live?")
    probabilities, *_ = chat.predictor.explain(chat.last)["attention"]
    first, last = chat.explain().splitlines()
    start_p, _ = probabilities["weights"]
    best = int(np.argmax(start_p))
    assert first.startswith(f"first word  {probabilities['columns'][best]} {start_p[best]:.2f}, ")
    assert last.startswith("last word   ")
    picture = tmp_path / "a.png"
    assert chat.explain(str(picture)) == f"{picture} written"
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_an_instance_is_tokenized_once(predictor, monkeypatch):
    texts = []

    def counted(text):
        texts.append(text)
        return read_text(text)

    monkeypatch.setattr("colloquy.tasks.reading_comprehension.reader.read_text", counted)
    instance = predictor.make_instance({"passage": PASSAGE, "question": QUESTION}, "instance 0")
    predictor.padded_rows(instance)
    predictor.answer_as_dicts([instance])
    predictor.explain(instance)
    assert texts == [PASSAGE, QUESTION]


def test_a_doubtful_answer_is_remarked_on(chat, monkeypatch):
    answer = {**ask(chat.predictor, PASSAGE), "confidence": 0.218, "good": False}
    answer["verdict"] = "probably not in this text"
    answer["unknown_percent"] = 15.4
    answer["remark"] = "The text is not English."
    monkeypatch.setattr(chat.predictor, "predict", lambda asked: [answer] * len(asked))
    chat.take(PASSAGE)
    _, *notes = chat.reply("Where does Bob live?")
    assert notes == [
        f"{answer['answer']}  (probably not in this text, confidence 22 %)",
        "[The text is not English.]",
        "[The model has no vector for 15 % of these words.]",
    ]


def test_the_chat_says_what_it_needs(chat, tmp_path):
    chat.paragraphs = []
    assert chat.reply("Who?") == ["Give me a text first: /read FILE"]
    assert chat.take(" \n\n ") == "There are no words in this text."
    assert chat.read(str(tmp_path / "missing")).startswith("/read expects a UTF-8 text file.")
    notes = tmp_path / "notes.txt"
    notes.write_text("Ann lives in Rome.", encoding="utf-8-sig")  # with a byte order mark
    printed = talk_plain(chat, f"/read {notes}", "", "Where does Ann live?")
    for text in ("5 words in 1 paragraphs.", "Ask a question.", "score"):
        assert text in printed
    assert chat.paragraphs == ["Ann lives in Rome."]
