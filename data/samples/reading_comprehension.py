"""The embedded sample of SQuAD 1.1: prose about simulated restaurants with questions on it.

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
VECTORS = "vectors.npz"
DIMENSION = 50
QUESTIONS = 4
"""Questions on a passage."""
SENTENCES = range(2, 7)
"""Sentences of a passage."""
RELATIONS = {2: 3, 3: 2}
"""Restaurants in a passage -> least facts about each."""

PASSAGES = read_phrases(TEMPLATES / "passages.txt")
TOLD = PASSAGES["prose"]["told"]
ASIDES = PASSAGES["prose"]["asides"]
ASKED = PASSAGES["asked"]
"""Relation -> questions for its value."""
SOUGHT = single_options(PASSAGES["sought"])
"""Relation -> the end of "Which restaurant ...?" for the one that has a value."""
WHICH = PASSAGES["choice"]["which"]
OLDER = PASSAGES["choice"]["older"]

Span = tuple[int, int]
"""Start and end of a part of a text."""


class Fact(NamedTuple):
    """A fact in a passage."""

    place: Restaurant
    relation: str
    value: object
    span: Span
    """Of the value."""
    name: Span | None
    """Of the latest name of the restaurant; `None` in an aside."""


class Question(NamedTuple):
    """A question, the fact that answers it, and the span of its answer."""

    text: str
    fact: Fact
    span: Span


class Passage(NamedTuple):
    """A passage; the last of its places is unnamed."""

    text: str
    places: list[Restaurant]
    facts: list[Fact]
    questions: list[Question]


# === Prose ===


def _draw_sentences(rng, places):
    """Draws sentences, lists of `(restaurant, clause)`."""
    *named, unnamed = places
    relations = rng.sample(sorted(ASKED), RELATIONS[len(named)])
    clauses = []
    for place in named:
        for clause in _draw_clauses(rng, relations):
            clauses.append((place, clause))
    if rng.random() < 0.4:
        rng.shuffle(clauses)

    sentences = []
    while clauses:
        count = min(rng.randint(1, 2), len(clauses))
        sentences.append(clauses[:count])
        clauses = clauses[count:]
    for aside in rng.sample(ASIDES, rng.randrange(2)):
        position = rng.randrange(len(sentences) + 1)
        sentences.insert(position, [(unnamed, aside)])
    return sentences


def _draw_clauses(rng, relations):
    """Draws clauses about one restaurant, mostly about some relations, each told once."""
    clauses = []
    told = set()
    for clause in rng.sample(TOLD, len(TOLD)):
        fields = {field for _, field in _parse(clause)} - {"place", None}
        is_mostly_relevant = 2 * len(fields.intersection(relations)) >= len(fields)
        if is_mostly_relevant and not fields & told:
            told |= fields
            clauses.append(clause)
    return clauses


def _parse(clause):
    """The parts of a template: words, and the field after them or `None`."""
    return [(words, field) for words, field, *_ in string.Formatter().parse(clause)]


class _Prose:
    """A text that grows, with its facts."""

    def __init__(self, rng):
        self.rng = rng
        self.text = ""
        self.facts = []
        self.names = {}  # restaurant -> span of its latest name
        self.topic = None  # the restaurant that a pronoun would mean

    def add_sentence(self, sentence):
        if self.text:
            self.text += " "
        start = len(self.text)
        has_one_place = len({place for place, _ in sentence}) == 1
        for number, (place, clause) in enumerate(sentence):
            if number:
                self.text += ", and " if has_one_place else ", while "
            self.add_clause(place, clause)
        if not has_one_place:
            self.topic = None
        capital = self.text[start].upper()
        self.text = f"{self.text[:start]}{capital}{self.text[start + 1 :]}."

    def add_clause(self, place, clause):
        """Adds a clause; a pronoun may replace the name of the topic."""
        has_pronoun = place is self.topic and self.rng.random() < 0.7
        spans = {}
        for words, field in _parse(clause):
            self.text += words
            start = len(self.text)
            if field is None:
                continue
            if field != "place":
                self.text += str(getattr(place, field))
                spans[field] = start, len(self.text)
            elif has_pronoun:
                begins_clause = not words
                self.text += self.rng.choice(
                    ("it", "it", "the place") if begins_clause else ("the place", "the restaurant")
                )
            else:
                self.text += f"the {place.name}"
                self.names[place] = start + len("the "), len(self.text)
        for field, span in spans.items():
            value = getattr(place, field)
            self.facts.append(Fact(place, field, value, span, self.names.get(place)))
        self.topic = place


# === Questions ===


def _ask(rng, places, facts):
    """Every question that has one correct answer among several of its kind."""
    questions = []
    for fact in facts:
        if fact.name is None:
            continue
        others = []
        for other in facts:
            if other.relation == fact.relation and other.value != fact.value:
                others.append(other)
        if others:
            template = rng.choice(ASKED[fact.relation])
            text = template.format(name=fact.place.name)
            questions.append(Question(text, fact, fact.span))

        values = [getattr(place, fact.relation) for place in places]
        if fact.relation in SOUGHT and values.count(fact.value) == 1:
            sought = SOUGHT[fact.relation].format(**vars(fact.place))
            questions.append(Question(f"{rng.choice(WHICH)} {sought}?", fact, fact.name))

        if fact.relation == "since":
            younger = [other.place for other in others if other.name and other.value > fact.value]
            if younger:
                names = [fact.place.name, rng.choice(younger).name]
                names = rng.sample(names, 2)
                questions.append(Question(rng.choice(OLDER).format(*names), fact, fact.name))
    return questions


# === The corpus ===


def simulate_passages(count, seed=1, split="train"):
    """Simulates passages for `train` or `dev`; a larger `count` gives the same ones first."""
    rng = random.Random(f"passages {split} {seed}")
    passages = []
    while len(passages) < count:
        world = restaurants(rng.randrange(2**32), 100)
        num_named = rng.choice(list(RELATIONS))
        places = rng.sample(world, num_named + 1)
        sentences = _draw_sentences(rng, places)
        prose = _Prose(rng)
        for sentence in sentences:
            prose.add_sentence(sentence)
        questions = _ask(rng, places, prose.facts)
        if len(sentences) in SENTENCES and len(questions) >= QUESTIONS:
            questions = rng.sample(questions, QUESTIONS)
            passages.append(Passage(prose.text, places, prose.facts, questions))
    return passages


def write_squad(directory, count=2100, seed=1, held_out=100):
    """Writes questions on passages to `FILES`, and random vectors of train's words to `VECTORS`."""
    train = simulate_passages(count - held_out, seed, "train")
    dev = simulate_passages(held_out, seed, "dev")
    words, vectors = _draw_vectors(train, seed)
    num_entries = {}
    with atomic_directory(directory) as staging:
        for split, passages in (("train", train), ("dev", dev)):
            paragraphs = []
            for number, passage in enumerate(passages, 1):
                paragraphs.append(_paragraph(passage, f"{split}-{number}"))
            content = {
                "version": "1.1",
                "data": [{"title": "Restaurants", "paragraphs": paragraphs}],
            }
            file = staging / FILES[split]
            file.write_text(json.dumps(content), encoding="utf-8", newline="\n")
            num_entries[FILES[split]] = len(passages) * QUESTIONS
        np.savez(staging / VECTORS, words=words, vectors=vectors)
        num_entries[VECTORS] = len(words)
    return num_entries


def _draw_vectors(passages, seed):
    """The lower-case tokens of passages, sorted, and random vectors of them."""
    words = set()
    for passage in passages:
        for text in (passage.text, *(question.text for question in passage.questions)):
            words.update(text[start:end].lower() for start, end in tokenize(text))
    words = np.array(sorted(words))
    rng = np.random.default_rng(seed)
    vectors = rng.standard_normal((len(words), DIMENSION)).astype(np.float16)
    return words, vectors


def _paragraph(passage, name):
    """A passage and its questions in SQuAD's format."""
    items = []
    for number, question in enumerate(passage.questions, 1):
        start, end = question.span
        answer = {"answer_start": start, "text": passage.text[start:end]}
        items.append({"id": f"{name}-{number}", "question": question.text, "answers": [answer]})
    return {"context": passage.text, "qas": items}
