"""The embedded sample of SQuAD 1.1: prose about simulated restaurants with questions on it, and
random word vectors.

Each passage describes 2 to 4 restaurants of a world of its own, so its facts can be learnt only
from it. It contains several values of the kind that a question asks for, so that the answer depends
on the restaurant and on the relation.
"""

import json
import random
import string
from typing import NamedTuple

import numpy as np

from colloquy.base.files import atomic_directory
from colloquy.data.corpora.squad import tokenize
from colloquy.data.samples.phrases import TEMPLATES, read_phrases, single_options
from colloquy.data.samples.world import Restaurant, restaurants

FILES = {"train": "train-v1.1.json", "dev": "dev-v1.1.json"}
VECTORS, DIMENSION = "vectors.npz", 50
QUESTIONS, SENTENCES = 4, range(2, 7)  # of a passage
RELATIONS = {2: 3, 3: 2}  # restaurants in a passage -> least facts about each

PASSAGES = read_phrases(TEMPLATES / "passages.txt")
TOLD, ASIDES = PASSAGES["prose"]["told"], PASSAGES["prose"]["asides"]
ASKED = PASSAGES["asked"]  # relation -> questions for its value
# relation -> the end of "Which restaurant ...?" for the one that has a value
SOUGHT = single_options(PASSAGES["sought"])
WHICH, OLDER = PASSAGES["choice"]["which"], PASSAGES["choice"]["older"]


class Fact(NamedTuple):
    """A fact in a passage: the spans of its value and of its restaurant's latest name; `None` in an
    aside.
    """

    place: Restaurant
    relation: str
    value: object
    span: tuple[int, int]
    name: tuple[int, int] | None


class Passage(NamedTuple):
    """A passage with `questions`, `(text, the Fact that answers it, span of the answer)`; the last
    place is unnamed.
    """

    text: str
    places: list[Restaurant]
    facts: list[Fact]
    questions: list[tuple[str, Fact, tuple[int, int]]]


def _sentences(rng, places):
    """Sentences as lists of `(restaurant, clause)`."""
    *named, other = places
    relations, clauses, sentences = rng.sample(sorted(ASKED), RELATIONS[len(named)]), [], []
    for place in named:
        told = set()
        for clause in rng.sample(TOLD, len(TOLD)):
            fields = {field for _, field, *_ in string.Formatter().parse(clause)} - {"place", None}
            if 2 * len(fields.intersection(relations)) >= len(fields) and not fields & told:
                told |= fields
                clauses.append((place, clause))
    if rng.random() < 0.4:
        rng.shuffle(clauses)
    while clauses:
        sentences.append([clauses.pop(0) for _ in range(min(rng.randint(1, 2), len(clauses)))])
    for aside in rng.sample(ASIDES, rng.randrange(2)):
        sentences.insert(rng.randrange(len(sentences) + 1), [(other, aside)])
    return sentences


def _prose(rng, sentences):
    """The text and its facts. A pronoun may replace the name of the only restaurant in the previous
    sentence.
    """
    text, facts, names, topic = "", [], {}, None
    for sentence in sentences:
        text += " " if text else ""
        begin, only = len(text), len({place for place, _ in sentence}) == 1
        for number, (place, clause) in enumerate(sentence):
            text += (", and " if only else ", while ") if number else ""
            pronoun, spans = place is topic and rng.random() < 0.7, {}
            for words, field, *_ in string.Formatter().parse(clause):
                start = len(text := text + words)
                if field == "place" and pronoun:
                    text += rng.choice(
                        ("the place", "the restaurant") if words else ("it", "it", "the place")
                    )
                elif field == "place":
                    text += f"the {place.name}"
                    names[place] = start + len("the "), len(text)
                elif field:
                    text += str(getattr(place, field))
                    spans[field] = start, len(text)
            facts += [
                Fact(place, field, getattr(place, field), spans[field], names.get(place))
                for field in spans
            ]
            topic = place
        text = f"{text[:begin]}{text[begin].upper()}{text[begin + 1 :]}."
        topic = topic if only else None
    return text, facts


def _questions(rng, places, facts):
    """Yields every question that has one correct answer among several of its kind, in one of its
    wordings.
    """
    for fact in (fact for fact in facts if fact.name):
        place, relation = fact.place, fact.relation
        others = [
            other for other in facts if other.relation == relation and other.value != fact.value
        ]
        if others:
            yield rng.choice(ASKED[relation]).format(name=place.name), fact, fact.span
        if (
            relation in SOUGHT
            and [getattr(other, relation) for other in places].count(fact.value) == 1
        ):
            yield f"{rng.choice(WHICH)} {SOUGHT[relation].format(**vars(place))}?", fact, fact.name
        younger = [
            other.place
            for other in others
            if relation == "since" and other.name and other.value > fact.value
        ]
        if younger:
            pair = rng.sample([place.name, rng.choice(younger).name], 2)
            yield rng.choice(OLDER).format(*pair), fact, fact.name


def simulate_passages(count, seed=1, split="train"):
    """Simulates passages for `train` or `dev`; a larger `count` gives the same ones first."""
    rng, passages = random.Random(f"passages {split} {seed}"), []
    while len(passages) < count:
        places = rng.sample(restaurants(rng.randrange(2**32), 100), rng.choice(list(RELATIONS)) + 1)
        text, facts = _prose(rng, sentences := _sentences(rng, places))
        questions = list(_questions(rng, places, facts))
        if len(sentences) in SENTENCES and len(questions) >= QUESTIONS:
            passages.append(Passage(text, places, facts, rng.sample(questions, QUESTIONS)))
    return passages


def _paragraph(passage, name):
    qas = [
        {
            "id": f"{name}-{n}",
            "question": text,
            "answers": [{"answer_start": i, "text": passage.text[i:j]}],
        }
        for n, (text, _, (i, j)) in enumerate(passage.questions, 1)
    ]
    return {"context": passage.text, "qas": qas}


def write_squad(directory, count=2100, seed=1, held_out=100):
    """Writes questions on passages to `FILES`, and random vectors of the lower-case tokens of train
    to `VECTORS`.
    """
    counts = {"train": count - held_out, "dev": held_out}
    splits = {split: simulate_passages(count, seed, split) for split, count in counts.items()}
    texts = [
        text
        for p in splits["train"]
        for text in (p.text, *(question for question, *_ in p.questions))
    ]
    words = np.array(
        sorted({text[start:end].lower() for text in texts for start, end in tokenize(text)})
    )
    vectors = (
        np.random.default_rng(seed).standard_normal((len(words), DIMENSION)).astype(np.float16)
    )
    with atomic_directory(directory) as staging:
        for split, name in FILES.items():
            paragraphs = [
                _paragraph(passage, f"{split}-{n}") for n, passage in enumerate(splits[split], 1)
            ]
            file = {"version": "1.1", "data": [{"title": "Restaurants", "paragraphs": paragraphs}]}
            (staging / name).write_text(json.dumps(file), encoding="utf-8", newline="\n")
        np.savez(staging / VECTORS, words=words, vectors=vectors)
    return {name: counts[split] * QUESTIONS for split, name in FILES.items()} | {
        VECTORS: len(words)
    }
