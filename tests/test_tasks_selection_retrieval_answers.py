"""`tasks.selection.retrieval.answers`: candidates of an index, ranked, without near-duplicates."""

import pytest

from base.files import UserError
from tasks.selection.retrieval.answers import (
    AnsweringPredictor,
    answers_of,
    as_written,
    candidates_of,
    without_duplicates,
)
from tasks.selection.retrieval.build import of_corpus
from tasks.selection.retrieval.index import Hit, RetrievalIndex


@pytest.fixture(scope="module")
def index(selection_predictor, selection_index):
    return RetrievalIndex(selection_index, selection_predictor.vocabulary)


def test_answers_are_ordered_by_the_model_and_by_their_questions(index, selection_predictor, prepared):
    turns = list(of_corpus("smn", prepared.parent / "raw"))[7][:-1]
    hits = candidates_of(index, turns, 23)
    texts = [hit.text for hit in hits]
    [found] = selection_predictor.predict([{"turns": turns, "candidates": texts}])
    answers = answers_of(selection_predictor, index, turns, 23)
    assert sorted(answer.text for answer in answers) == sorted(texts) and len(texts) > 9
    total = {hit.text: logit + 16 * hit.question for hit, logit in zip(hits, found["logits"], strict=True)}
    assert len({hit.question for hit in hits}) > 3
    assert [answer.total for answer in answers] == sorted(total.values(), reverse=True)
    assert [answer.total for answer in answers] == [total[answer.text] for answer in answers]
    assert {answer.text: answer.score for answer in answers} == dict(zip(texts, found["scores"], strict=True))


def test_answers_of_an_index_are_ordered_and_as_people_write(selection_predictor, selection_index, monkeypatch):
    predictor, asked = AnsweringPredictor(selection_predictor, selection_index), {"turns": ["what is the town like ?"]}
    best = answers_of(selection_predictor, predictor.index, asked["turns"])[:20]
    monkeypatch.setitem(selection_predictor.text, "tokenizer", "terms")
    [found] = predictor.predict([asked])
    assert found["totals"] == sorted(found["totals"], reverse=True) == [answer.total for answer in best]
    assert found["candidates"] == [as_written(answer.text, "terms") for answer in best]
    assert any(" ." in answer.text for answer in best) and not any(" ." in text for text in found["candidates"])
    assert "logits" not in found and found["order"] == list(range(len(best)))
    assert predictor.reply(found) == found["candidates"][0]
    with pytest.raises(UserError, match="the index has no response with these words"):
        predictor.reply(predictor.predict([{"turns": ["zork"]}])[0])


def test_candidates_are_responses_to_the_most_similar_questions_then_the_others(index):
    turns = ["the market is far", "what can you tell me about the town ?"]
    hits = candidates_of(index, turns, 300)
    asked = [hit.question for hit in hits if "contexts" in hit.places]
    others = [hit for hit in hits if "contexts" not in hit.places]
    assert asked == sorted(asked, reverse=True) == [hit.question for hit in hits[: len(asked)]]
    assert len(asked) > 9 and others and asked[0] > 0.3
    assert hits == without_duplicates(hits, turns) and candidates_of(index, turns, 5) == hits[:5]


@pytest.mark.parametrize(
    ("texts", "said", "kept"),
    [
        (
            ["Try this kernel, it works!", "try this kernel it works", "try that", "How do I mount it??", "ok", "OK."],
            ["hi", "how do i mount it"],
            ["Try this kernel, it works!", "try that", "ok"],
        ),
        # 4 of 5 words are alike; 5 of 6 are, but of what is left out
        (["a b c d", "a b c d e", "a b c d e f", "?", "!", "?"], [], ["a b c d", "a b c d e f", "?", "!"]),
    ],
)
def test_near_duplicates_and_echoes_are_left_out(texts, said, kept):
    found = without_duplicates(list(map(Hit, texts)), said)
    assert [answer.text for answer in found] == kept
