"""SQuAD's exact match and F1.

Rajpurkar et al. 2016, section 6.1, and the official evaluation script for version 1.1:

    text  ->  lower case, no punctuation, no articles, single spaces  ->  equal, or words in common

Metrics are from 0 to 1; the script prints per cent.
"""

import collections
import re
import string
from collections.abc import Mapping, Sequence

from colloquy.base.characters import SPACELESS

METRICS = ("EM", "F1")
ADDED = {}
"""`{name: function}`: your own metrics, functions of the arguments of `squad_metrics`."""
_SPACELESS = re.compile(f"[{SPACELESS}]")
_PUNCTUATION = str.maketrans("", "", string.punctuation)


def normalize(text: str) -> str:
    """Lower case, without ASCII punctuation, then without articles, white space as one space.

    >>> normalize("The  U.S. and a dog's")
    'us and dogs'
    """
    without_punctuation = text.lower().translate(_PUNCTUATION)
    without_articles = re.sub(r"\b(a|an|the)\b", " ", without_punctuation)
    return " ".join(without_articles.split())


def exact_match(prediction: str, answer: str) -> float:
    """1 where both are the same after `normalize`, else 0.

    >>> exact_match("the Denver Broncos.", "Denver Broncos")
    1.0
    """
    return float(normalize(prediction) == normalize(answer))


def f1(prediction: str, answer: str, by_character: bool = False) -> float:
    """Harmonic mean of precision and recall of the prediction's words.

    A word counts as often as it occurs. With `by_character`, each character of a script without
    spaces is a word.

    >>> round(f1("Denver Broncos of Denver", "the Denver team"), 3)
    0.333
    """
    predicted = _words(prediction, by_character)
    correct = _words(answer, by_character)
    common = (collections.Counter(predicted) & collections.Counter(correct)).total()
    if not common:
        return 0.0
    precision = common / len(predicted)
    recall = common / len(correct)
    return 2 * precision * recall / (precision + recall)


def _words(text, by_character):
    normalized = normalize(text)
    if by_character:
        normalized = _SPACELESS.sub(r" \g<0> ", normalized)
    return normalized.split()


def squad_metrics(
    predictions: Mapping[str, str], answers: Mapping[str, Sequence[str]]
) -> dict[str, float]:
    """EM and F1 of predictions, the best over each question's answers, averaged over the questions;
    and those `ADDED`.

    Both map question ids to texts; each question has an answer. One without a prediction counts 0,
    as in the script.

    >>> squad_metrics({"a": "Paris"}, {"a": ["in Paris", "paris"], "b": ["Rome"]})
    {'EM': 0.5, 'F1': 0.5}
    """
    by_question = question_metrics(predictions, answers)
    metrics = {name: sum(values) / len(answers) for name, values in by_question.items()}
    for name, metric in ADDED.items():
        metrics[name] = float(metric(predictions, answers))
    return metrics


def question_metrics(
    predictions: Mapping[str, str], answers: Mapping[str, Sequence[str]]
) -> dict[str, list[float]]:
    """EM and F1 of each question, as `squad_metrics` averages them."""
    by_question = {name: [] for name in METRICS}
    for id, references in answers.items():
        em = f1_score = 0.0
        if id in predictions:
            em = float(max(exact_match(predictions[id], answer) for answer in references))
            # SQuAD's answers have no such scripts, so its scores are those of the official script.
            by_character = all(_SPACELESS.search(answer) for answer in references)
            f1_score = max(f1(predictions[id], answer, by_character) for answer in references)
        by_question["EM"].append(em)
        by_question["F1"].append(f1_score)
    return by_question
