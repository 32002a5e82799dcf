"""EM and F1: normalisation rules one by one, and the official definitions by hand."""

import pytest

from colloquy.metrics.reading_comprehension import exact_match, f1, normalize, squad_metrics


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The Cat", "cat"),
        ("a an the", ""),
        ("theory and anthem", "theory and anthem"),  # articles are whole words
        ("U.S.", "us"),
        ("well-known", "wellknown"),  # a sign leaves no space
        ("1,000.5", "10005"),
        ("the-end", "theend"),  # signs go before articles
        ("  two \t words\n", "two words"),
        ("l\u2019été", "l\u2019été"),  # other than ASCII signs stay
    ],
)
def test_normalize(text, expected):
    assert normalize(text) == expected


@pytest.mark.parametrize(
    ("prediction", "answer", "exact", "both"),
    [
        ("The Cat!", "cat", 1.0, 1.0),
        # 3 words predicted, 2 in the answer, in common x once and y once
        ("x x y", "x y", 0.0, 2 * (2 / 3) * 1.0 / (2 / 3 + 1.0)),
        ("x x", "x y x z", 0.0, 2 * 1.0 * 0.5 / 1.5),
        ("the", "the", 1.0, 0.0),  # nothing is left of either, as in the official script
    ],
)
def test_f1_counts_each_word_as_often_as_it_occurs(prediction, answer, exact, both):
    assert exact_match(prediction, answer) == exact
    assert f1(prediction, answer) == pytest.approx(both)


def test_squad_metrics_take_the_best_answer():
    # The first answer has the best F1, the second is the exact match of nothing.
    metrics = squad_metrics({"q": "x y"}, {"q": ["x y z", "w"]})
    assert metrics == {"EM": 0.0, "F1": pytest.approx(0.8)}
    # A question without a prediction counts 0.
    metrics = squad_metrics({"p": "x", "other": "y"}, {"p": ["x"], "q": ["y"]})
    assert metrics == {"EM": 0.5, "F1": 0.5}


def test_characters_are_words_if_all_answers_are_of_a_script_without_spaces():
    predictions = {"q": "中国首都"}
    metrics = squad_metrics(predictions, {"q": ["首都东"]})
    assert metrics["F1"] == pytest.approx(2 * 0.5 * (2 / 3) / (0.5 + 2 / 3))
    assert squad_metrics(predictions, {"q": ["Beijing", "首都东"]})["F1"] == 0
