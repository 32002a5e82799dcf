"""The published reader on sixty questions to six everyday texts.

`everyday_questions.json` was written before any model had answered it. A question without answers
is not answered by its text.
"""

import json

import pytest
from helpers import ROOT

from colloquy.engine.run import Run
from colloquy.metrics.reading_comprehension import exact_match
from colloquy.tasks import TASKS

TEXTS = json.loads((ROOT / "tests" / "everyday_questions.json").read_text(encoding="utf-8"))


def outcomes(predictor):
    """Counts of answers, by whether they are right and called good."""
    counts = {"right": 0, "right doubted": 0, "wrong good": 0, "unanswerable good": 0}
    for text in TEXTS:
        asked = []
        for question in text["questions"]:
            asked.append({"passage": text["passage"], "question": question["question"]})
        for question, found in zip(text["questions"], predictor.predict(asked), strict=True):
            is_right = any(exact_match(found["answer"], answer) for answer in question["answers"])
            if is_right:
                counts["right"] += 1
                counts["right doubted"] += not found["good"]
            elif question["answers"]:
                counts["wrong good"] += found["good"]
            else:
                counts["unanswerable good"] += found["good"]
    return counts


@pytest.mark.slow
def test_sixty_questions_to_everyday_texts():
    predictor = TASKS["reading_comprehension"].predictor(Run.open(ROOT / "pretrained/bidaf-squad"))
    found = outcomes(predictor)
    assert found["right"] >= 31
    assert found["right doubted"] <= 3
    assert found["wrong good"] <= 3
    assert found["unanswerable good"] <= 8
