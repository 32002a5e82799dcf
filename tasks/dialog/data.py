"""A prepared dialog dataset: the domain of its bot, and batches of whole dialogs.

A sentence is stored, sent and encoded once for all turns that remember it, and once for all dialogs
of a batch.

Letters:  B dialogs   M sentences   S distinct sentences   W words   T turns   E entities   K
entities of a sentence
"""

import collections
import dataclasses
import functools
import itertools
import pathlib
from typing import NamedTuple

import numpy as np

from colloquy.base.files import UserError
from colloquy.data import pickles
from colloquy.data.corpora.babi_dialog import SILENCE
from colloquy.data.prepared import (
    METADATA,
    VOCABULARY,
    Dataset,
    checked,
    read_metadata,
    read_vocabulary,
)
from colloquy.data.sequences import Sequences, stack
from colloquy.data.text_files import read_lines
from colloquy.data.vocabulary import Vocabulary
from colloquy.tasks.dialog.prepare import (
    CALL,
    CANDIDATES,
    DIALOGS,
    ENTITIES,
    KNOWLEDGE,
    RESTAURANT,
    SPEAKERS,
    SPLITS,
    find_facts,
)

FIELDS = ("sentences", "speakers", "times", "turns", "answers")
NONE = -1  # a sentence or an answer that only pads
# a type with at most 8 values has them all in any training set, so they keep their own ids
CLOSED = 8
MAX_PARTS = 100  # of an entity's name
PHRASES = "phrases.txt"  # of a run: what users say


class Sentences(NamedTuple):
    """Encoded sentences."""

    words: Sequences  # word ids
    # the same, but the id of its type for an entity of an open type (`Domain`), then zeros
    typed_words: Sequences
    entities: Sequences  # entities that a sentence mentions, in its order, counted from 1
    # candidates of the same words, from 1; 0: none; -1: `SILENCE`; int32 `(S,)`
    responses: np.ndarray | None = None


class DialogSplit:
    """The dialogs of a split, dicts of lists as `tasks.dialog.prepare` writes them, and their
    `Sentences`.

    `answers`, `dialog` and `manager` are the candidate, dialog and dialog manager of each response,
    `(responses,)`; `sizes` are the sentences and turns of each dialog, int `(dialogs, 2)`.
    """

    def __init__(self, sentences, dialogs):
        self.sentences, self.dialogs = sentences, dialogs
        self.fields = {name: Sequences.of([dialog[name] for dialog in dialogs]) for name in FIELDS}
        self.answers = self.fields["answers"].flat()
        self.dialog = np.repeat(np.arange(len(dialogs)), self.fields["turns"].lengths)
        self.manager = np.array([dialog.get("manager", "") for dialog in dialogs])[self.dialog]
        self.sizes = np.stack(
            [self.fields[name].lengths for name in ("sentences", "turns")], axis=1
        )

    def __len__(self):
        return len(self.dialogs)

    def collate(self, rows, names, entities=0, length_multiple=4):
        """Makes the arrays of a batch.

        Args:
            rows: Numbers of dialogs, int `(B,)`.
            names: Inputs to make.
            entities: Number of entities in the domain, E.
            length_multiple: Sizes are rounded up to it.

        Returns:
            A dict of inputs, and the candidates that are the answers, int32 `(B, T)`, -1 for
            padding. The inputs: words, typed_words: ids of the distinct sentences of the batch,
            int32 `(S, W)`; the first is empty.
            sentences: numbers of these, speakers: see `SPEAKERS`, times: earlier turns; int32 `(B,
                M)`, 0 for padding.
            turns: places of the user's sentences, int32 `(B, T)`; 0 also for padding.
            mentions: 1 where a sentence mentions an entity, uint8 `(B, M, E)`.
            entities: of each sentence, int32 `(B, M, K)`; responses: see `Sentences`, int32 `(B,
                M)`.
        """
        rows = np.asarray(rows)

        def padded(name, padding=0):
            field = self.fields[name]
            width = field.width(rows, multiple=length_multiple)
            real = np.arange(width) < field.lengths[rows, None]
            return np.where(real, field.padded(rows, width), padding)

        spoken_BM = padded("sentences", NONE)
        distinct, number = np.unique(np.append(spoken_BM, NONE), return_inverse=True)
        distinct = np.pad(
            distinct, (0, -len(distinct) % (4 * length_multiple)), constant_values=NONE
        )
        width = self.sentences.words.width(distinct, multiple=length_multiple)
        mentioned = self.sentences.entities
        inputs = {name: padded(name) for name in ("speakers", "times", "turns")}
        inputs["sentences"] = number[:-1].reshape(spoken_BM.shape).astype(np.int32)
        inputs["entities"] = mentioned.padded(spoken_BM, mentioned.width(spoken_BM))
        for name in {"words", "typed_words"}.intersection(names):
            inputs[name] = getattr(self.sentences, name).padded(distinct, width)
        if "responses" in names:
            inputs["responses"] = np.where(spoken_BM >= 0, self.sentences.responses[spoken_BM], 0)
        if "mentions" in names:
            mentions = np.zeros((*spoken_BM.shape, entities + 1), np.uint8)
            np.put_along_axis(mentions, inputs["entities"], 1, axis=2)
            inputs["mentions"] = mentions[:, :, 1:]
        return {name: inputs[name] for name in names}, padded("answers", NONE)


# === The domain ===


@dataclasses.dataclass(frozen=True)
class Domain:
    """Words, responses and entities that a bot knows.

    A type of entities is *open* if it has more than 8 values: places, cuisines, restaurants, phone
    numbers. New values of such a type may appear, so all its values share one id in
    `Sentences.typed_words`.
    """

    vocabulary: Vocabulary
    candidates: list[str]
    knowledge: list[tuple[str, str, str]]
    # `(name, type, source)` from `tasks.dialog.prepare.find_entities`
    entities: list[tuple[str, str, str]]

    FILES = (VOCABULARY, CANDIDATES, KNOWLEDGE, ENTITIES)

    @classmethod
    def load(cls, path):
        """Reads a prepared dataset or a run; a missing or malformed file is a `UserError`."""
        path = pathlib.Path(path)
        candidates = [line for _, line in read_lines(path / CANDIDATES, "candidates")]
        knowledge, entities = (_read_triples(path / name) for name in (KNOWLEDGE, ENTITIES))
        if any(name.count("_") > MAX_PARTS for name, _, _ in entities):
            raise UserError(f"{path / ENTITIES}: expected names of at most {MAX_PARTS} parts")
        domain = cls(read_vocabulary(path / VOCABULARY), candidates, knowledge, entities)
        with checked(path / CANDIDATES, "candidates of similar lengths"):
            _ = domain.required_fields
        return domain

    @functools.cached_property
    def types(self):
        """The types of entities, sorted; those of the knowledge base's values first."""
        known = {type for _, type, source in self.entities if source == "knowledge"}
        return sorted(
            {type for _, type, _ in self.entities}, key=lambda type: (type not in known, type)
        )

    @functools.cached_property
    def open_types(self):
        """`{type: id}` of the open types, with ids after those of the words."""
        counts = collections.Counter(type for _, type, _ in self.entities)
        ids = enumerate(self.types, len(self.vocabulary) + 1)
        return {type: id for id, type in ids if counts[type] > CLOSED}

    @functools.cached_property
    def surface_forms(self):
        """`{words: numbers of entities}`: each name as one word and with spaces for `_`."""
        surface_forms = {}
        for number, (name, _, _) in enumerate(self.entities):
            for words in {(name,), tuple(name.split("_"))}:
                surface_forms.setdefault(words, []).append(number)
        return surface_forms

    @functools.cached_property
    def longest(self):
        """Words of the longest name."""
        return max(map(len, self.surface_forms), default=1)

    def link(self, words):
        """Splits words into pairs `(words, entities)`: the longest name at each word, or one word
        without entities.
        """
        start, parts = 0, []
        while start < len(words):
            ends = range(min(start + self.longest, len(words)), start + 1, -1)
            end = next(
                (end for end in ends if tuple(words[start:end]) in self.surface_forms), start + 1
            )
            parts.append((words[start:end], self.surface_forms.get(tuple(words[start:end]), [])))
            start = end
        return parts

    def template(self, text):
        """A sentence with `{type}` in place of each entity."""
        parts = self.link(text.split())
        return " ".join(
            f"{{{self.entities[numbers[0]][1]}}}" if numbers else part[0] for part, numbers in parts
        )

    def search(self, response):
        """The facts that a response finds: none unless it is an `api_call`, see
        `tasks.dialog.prepare.find_facts`.
        """
        return find_facts(self.knowledge, response) if response.startswith(CALL) else []

    def encode(self, sentences):
        """Encodes lists of words as `Sentences`."""
        numbers = {SILENCE: -2, **self.numbers}
        responses = np.array(
            [numbers.get(" ".join(words), -1) + 1 for words in sentences], np.int32
        )
        linked = [*map(self.link, sentences)]
        words = [*map(self.vocabulary.encode, sentences)]
        typed_words = [[id for part in parts for id in self._typed(*part)] for parts in linked]
        entities = [[number + 1 for _, numbers in parts for number in numbers] for parts in linked]
        return Sentences(*map(Sequences.of, (words, typed_words, entities)), responses)

    def _typed(self, words, numbers):
        type = self.entities[numbers[0]][1] if numbers else None
        if type not in self.open_types:
            return self.vocabulary.encode(words)
        return [self.open_types[type]] + [0] * (len(words) - 1)

    @functools.cached_property
    def numbers(self):
        """`{candidate: its number}`."""
        return {text: number for number, text in enumerate(self.candidates)}

    @functools.cached_property
    def slot_values(self):
        """`{type: values}` that calls name, sorted."""
        lists = zip(self.candidates, self.encoded_candidates.entities.lists(), strict=True)
        found = {
            self.entities[number - 1][:2]
            for text, each in lists
            if text.startswith(CALL)
            for number in each
        }
        return {
            type: sorted(name for name, other in found if other == type)
            for type in sorted({t for _, t in found})
        }

    @functools.cached_property
    def fallback_response(self):
        """The response if no candidate is allowed."""
        known = "; ".join(f"{type}: {listed(values)}" for type, values in self.slot_values.items())
        return f"sorry, i did not understand, or found nothing. i know {known}"

    @functools.cached_property
    def encoded_candidates(self):
        return self.encode([text.split() for text in self.candidates])

    @functools.cached_property
    def candidate_entities(self):
        """The entities of each candidate, counted from 1, padded with 0, int32 `(C, K)`."""
        return stack(self.encoded_candidates.entities.lists())

    @functools.cached_property
    def match_groups(self):
        """The match types of candidates (Bordes et al. 2017, section 4.2).

        A candidate has type `t` in a context that mentions one of its entities of type `t`, which
        are a group. Returns the entities of each group, int32 `(groups, members)`, its type,
        `(groups,)`, and the groups of each candidate, `(C, groups per candidate)`. Entities and
        groups count from 1; 0 is padding.
        """
        groups, candidates = {}, []
        for numbers in self.encoded_candidates.entities.lists():
            by_type = collections.defaultdict(set)
            for number in numbers:
                _, type, source = self.entities[number - 1]
                if source == "knowledge":
                    by_type[self.types.index(type)].add(number)
            keys = [(type, *sorted(members)) for type, members in sorted(by_type.items())]
            candidates.append([groups.setdefault(key, len(groups) + 1) for key in keys])
        types, members = [type for type, *_ in groups], [members for _, *members in groups]
        return stack(members), np.array(types, np.int32), stack(candidates)

    @functools.cached_property
    def state_tables(self):
        """The tables of `layers.dialog_state.DialogState`."""
        types, owners = [type for _, type, _ in self.entities], collections.defaultdict(set)
        number = {
            name: id
            for id, (name, _, source) in enumerate(self.entities, 1)
            if source == "subjects"
        }
        for subject, _, value in self.knowledge:
            owners[value].add(number.get(subject, 0))
        known = [owners[name] for name, _, _ in self.entities]
        tables = (
            [text.startswith(CALL) for text in self.candidates],
            [0, *(self.types.index(type) + 1 if type in self.slot_values else 0 for type in types)],
            [0, *(id if type == RESTAURANT else 0 for id, type in enumerate(types, 1))],
            [0, *(min(each) if len(each) == 1 else 0 for each in known)],
        )
        return [np.array(table, np.int32) for table in tables]

    @functools.cached_property
    def required_fields(self):
        words, (members, _, groups) = self.encoded_candidates.words, self.match_groups
        return {
            "vocabulary_size": len(self.vocabulary),
            "candidates": (len(words), int(words.lengths.sum())),
            "entities": len(self.entities),
            "types": len(self.types),
            "candidate_entities": self.candidate_entities.shape,
            "match_groups": members.shape,
            "match_candidates": groups.shape,
        }

    def put_into(self, model):
        """Sets the candidates of a model and the entities in them; its trained variables stay."""
        words, typed_words, *_ = self.encoded_candidates
        tables = {
            "candidate_words": [
                (typed_words if "typed_words" in model.config.reads else words).flat()
            ],
            "candidate_rows": [words.owners()],
            "match_types": self.match_groups,
            "entity_pointer": [self.candidate_entities],
            "dialog_state": self.state_tables,
        }
        for layer in model.layers:
            if layer.name in tables:
                trained = map(np.asarray, layer.trainable_variables)
                layer.set_weights([*trained, *tables[layer.name]])


# === Prepared datasets ===


@dataclasses.dataclass(frozen=True)
class DialogDataset(Dataset):
    """A prepared directory with a `DialogSplit` for each of `tasks.dialog.prepare.SPLITS`."""

    domain: Domain

    @property
    def vocabulary(self):
        return self.domain.vocabulary

    def conversation(self, split, dialog):
        """The sentences of a split's dialog, `{"speaker", "text"}` each."""
        names = {number: name for name, number in SPEAKERS.items()}
        spoken = zip(
            dialog["speakers"], split.sentences.words.lists(dialog["sentences"]), strict=True
        )
        return [
            {"speaker": names[by], "text": " ".join(map(self.vocabulary.word, ids))}
            for by, ids in spoken
        ]

    def phrases(self, count=12):
        """The most frequent sentences of users in train, one for each template."""
        split, by_template = self.splits["train"], collections.defaultdict(list)
        for said in itertools.chain.from_iterable(
            self.conversation(split, dialog) for dialog in split.dialogs
        ):
            if said["speaker"] == "user" and said["text"] != SILENCE:
                by_template[self.domain.template(said["text"])].append(said["text"])
        return [texts[0] for texts in sorted(by_template.values(), key=len, reverse=True)[:count]]


def listed(values, most=24):
    """The first values of a list as a text."""
    more = f" and {len(values) - most} more" if len(values) > most else ""
    return f"{', '.join(values[:most])}{more}"


def load_dataset(path):
    """Reads a prepared dataset; missing, malformed or contradictory files are a `UserError`."""
    path = pathlib.Path(path)
    if not (path / METADATA).is_file() and (path / "task1" / METADATA).is_file():
        raise UserError(f"{path} holds several tasks: give one of them, such as {path / 'task1'}")
    facts = read_facts(path, "dialog")
    domain, data = Domain.load(path), pickles.load(path / DIALOGS)
    with checked(path / DIALOGS, "what prepare.py writes for these words and candidates"):
        words = dict(enumerate(domain.vocabulary.words, 1))
        ids = Sequences.of(data["sentences"]).lists()
        sentences = domain.encode([[words[id] for id in sentence] for sentence in ids])
        splits = {name: DialogSplit(sentences, data["splits"].get(name, [])) for name in SPLITS}
        for dialog in itertools.chain.from_iterable(split.dialogs for split in splits.values()):
            _check(dialog, len(ids), len(domain.candidates))
    return DialogDataset(path, facts["name"], splits, domain)


def _check(dialog, sentences, candidates):
    """Raises a ValueError where the lists of a dialog do not fit each other."""
    length, turns = len(dialog["sentences"]), len(dialog["turns"])
    sizes, ends = (
        (length, length, length, turns, turns),
        (sentences, len(SPEAKERS) + 1, length, length, candidates),
    )
    for name, size, end in zip(FIELDS, sizes, ends, strict=True):
        values = dialog[name]
        if not (0 < len(values) == size and 0 <= min(values) <= max(values) < end):
            raise ValueError(f"{name} must be {size or 'some'} numbers from 0 to {end - 1}")


def _read_triples(path):
    rows = {number: tuple(line.split("\t")) for number, line in read_lines(path, None)}
    for number, row in rows.items():
        if len(row) != 3:
            raise UserError(
                f"{path}, line {number}: expected three fields, separated by tabs. Received: {len(row)}"
            )
    return [*rows.values()]
