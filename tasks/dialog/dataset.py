"""A prepared dialog dataset, as prepare.py wrote it, read from disk; and the world that a bot lives in."""

import collections
import dataclasses
import functools
import pathlib
import shutil

import numpy as np

from base.files import UserError
from data import pickles
from data.corpora.babi_dialog import SILENCE
from data.prepared import FACTS, VOCABULARY, Dataset, checked, read_facts, read_vocabulary
from data.sequences import Sequences, stack
from data.text_files import read_lines
from data.vocabulary import Vocabulary
from tasks.dialog.data import DialogSplit, Sentences
from tasks.dialog.prepare import CANDIDATES, DIALOGS, ENTITIES, FACT, KNOWLEDGE, SPLITS

CLOSED = 8  # a type with at most so many values has them all in any training set, so they keep their own words
MAX_PARTS = 100  # of an entity's name
PHRASES = "phrases.txt"  # of a run: what users say


@dataclasses.dataclass(frozen=True)
class World:
    """What a bot knows before its first user comes: words, responses, and the entities of its knowledge base.

    Types of entities are *open* where they have more than 8 values: places, cuisines, restaurants, phone numbers. A new
    value of such a type may turn up any day; `typed_words` give all its values one id, after those of the words.
    """

    vocabulary: Vocabulary
    candidates: list[str]
    knowledge: list[tuple[str, str, str]]
    entities: list[tuple[str, str, str]]
    """`(name, type, source)`, see `tasks.dialog.prepare.find_entities`."""

    FILES = (VOCABULARY, CANDIDATES, KNOWLEDGE, ENTITIES)

    @classmethod
    def load(cls, path):
        """Reads it from a prepared dataset, or from a run.

        Raises:
            UserError: on a missing or malformed file.
        """
        path = pathlib.Path(path)
        entities, knowledge = (_rows(path / name) for name in (ENTITIES, KNOWLEDGE))
        if any(name.count("_") > MAX_PARTS for name, _, _ in entities):
            raise UserError(f"{path / ENTITIES}: expected names of at most {MAX_PARTS} parts")
        candidates = [line for _, line in read_lines(path / CANDIDATES, "candidates")]
        world = cls(read_vocabulary(path / VOCABULARY), candidates, knowledge, entities)
        with checked(path / CANDIDATES, "candidates of similar lengths"):
            _ = world.encoded_candidates
        return world

    @functools.cached_property
    def types(self):
        """The types of entities, sorted; those of the knowledge base's values first."""
        known = sorted({type for _, type, source in self.entities if source == "knowledge"})
        return known + sorted({type for _, type, _ in self.entities} - set(known))

    @functools.cached_property
    def open_types(self):
        """Those with more than `CLOSED` values."""
        counts = collections.Counter(type for _, type, _ in self.entities)
        return [type for type in self.types if counts[type] > CLOSED]

    @property
    def typed_vocabulary_size(self):
        """The largest id of `typed_words`."""
        return len(self.vocabulary) + len(self.types)

    @functools.cached_property
    def surfaces(self):
        """How entities are written, as tuples of words, to their numbers: also with spaces for `_`."""
        surfaces = collections.defaultdict(list)
        for number, (name, _, _) in enumerate(self.entities):
            for words in {(name,), tuple(name.split("_"))}:
                surfaces[words].append(number)
        return surfaces

    @functools.cached_property
    def _longest(self):
        return max(map(len, self.surfaces), default=1)

    def link(self, words):
        """Finds the entities in a sentence, the longest first at each word.

        Args:
            words: List of words.

        Returns:
            Pairs `(words, numbers)` that make up the sentence: some words, and the entities they stand for.
        """
        i, parts = 0, []
        while i < len(words):
            for n in range(min(self._longest, len(words) - i), 0, -1):
                found = self.surfaces.get(tuple(words[i : i + n]), []) if n > 1 or words[i] else []
                if found or n == 1:
                    parts.append((words[i : i + n], found))
                    i += n
                    break
        return parts

    def encode(self, sentences):
        """Encodes sentences.

        Args:
            sentences: List of texts, or of lists of words.

        Returns:
            A `tasks.dialog.data.Sentences`.
        """
        plain, typed, mentioned = [], [], []
        for sentence in sentences:
            words = sentence.split() if isinstance(sentence, str) else sentence
            plain.append(self.vocabulary.encode(words))
            typed.append([])
            mentioned.append([])
            for part, numbers in self.link(words):
                type = self.entities[numbers[0]][1] if numbers else None
                if type in self.open_types:
                    id = len(self.vocabulary) + 1 + self.types.index(type)
                    typed[-1] += [id] + [0] * (len(part) - 1)  # word by word beside the plain ones
                else:
                    typed[-1] += self.vocabulary.encode(part)
                mentioned[-1] += [number + 1 for number in numbers]
        return Sentences(stack(plain), stack(typed), stack(mentioned))

    @functools.cached_property
    def encoded_candidates(self):
        """The candidates as `tasks.dialog.data.Sentences`."""
        return self.encode(self.candidates)

    @functools.cached_property
    def match_groups(self):
        """What the match types of candidates compare (Bordes et al. 2017, section 4.2).

        A candidate has type `t` in a context that mentions one of its words of type `t`; a group is such a set of
        words, mostly a single one.

        Returns:
            members: Entities of each group, counted from 1 and padded with 0, int32 `(groups, members)`.
            types: Type of each group, int32 `(groups,)`.
            candidates: Groups of each candidate, counted from 1 and padded with 0, int32 `(C, groups a candidate)`.
        """
        type_of = {
            number: self.types.index(type)
            for number, (_, type, source) in enumerate(self.entities, 1)
            if source == "knowledge"
        }
        groups, candidates = {}, []
        for row in self.encoded_candidates.entities:
            by_type = collections.defaultdict(set)
            for number in row[np.isin(row, list(type_of))].tolist():
                by_type[type_of[number]].add(number)
            keys = [(type, tuple(sorted(numbers))) for type, numbers in sorted(by_type.items())]
            candidates.append([groups.setdefault(key, len(groups) + 1) for key in keys])
        members = stack([members for _, members in groups])
        return members, np.array([type for type, _ in groups], np.int32), stack(candidates)

    def save(self, source, path):
        """Copies its files from a dataset into a run."""
        for name in self.FILES:
            shutil.copyfile(pathlib.Path(source) / name, pathlib.Path(path) / name)


@dataclasses.dataclass(frozen=True)
class DialogDataset(Dataset):
    """What a prepared directory holds: of each of `tasks.dialog.prepare.SPLITS` a `DialogSplit`."""

    world: World

    def phrases(self, count=12):
        """What users say most often in the split train, each kind of sentence once, whatever entities it names."""
        split, words = self.splits["train"], self.world.vocabulary.words
        counts, texts = collections.Counter(), {}
        for dialog in split.dialogs:
            for number in dialog["sentences"][dialog["turns"]]:
                text = [words[id - 1] for id in split.sentences.words[number] if id]
                kind = tuple(
                    self.world.entities[found[0]][1] if found else tuple(part) for part, found in self.world.link(text)
                )
                counts[kind] += text != [SILENCE]
                texts.setdefault(kind, " ".join(text))
        return [texts[kind] for kind, found in counts.most_common(count) if found]

    @property
    def vocabulary(self):
        """That of its world."""
        return self.world.vocabulary


def load_dataset(path):
    """Reads a prepared dialog dataset.

    Raises:
        UserError: on a missing or malformed file, and where files contradict each other.
    """
    path = pathlib.Path(path)
    if not (path / FACTS).is_file() and (path / "task1" / FACTS).is_file():
        raise UserError(f"{path} holds several tasks: give one of them, as {path / 'task1'}")
    facts = read_facts(path, "dialog")
    world = World.load(path)
    return DialogDataset(path, facts["name"], _splits(path / DIALOGS, world), world)


def _splits(file, world):
    data = pickles.load(file)
    if not isinstance(data, dict) or not {"sentences", "splits"} <= data.keys():
        raise UserError(f"{file}: expected a dict with sentences and splits. Received: {type(data)}")
    words = (None, *world.vocabulary.words)
    with checked(file, "what prepare.py writes for these words and candidates"):
        ids = Sequences.of(data["sentences"])
        if len(ids.ids) and not 0 < ids.ids.min() <= ids.ids.max() < len(words):
            raise ValueError(f"words must be from 1 to {len(words) - 1}")
        sentences = world.encode([[words[id] for id in sentence] for sentence in ids.lists()])
        splits = {}
        for name in SPLITS:
            splits[name] = DialogSplit(sentences, data["splits"].get(name, []))
            for dialog in splits[name].dialogs:
                _check(dialog, len(ids), len(world.candidates))
    return splits


def _check(dialog, sentences, candidates):
    length = len(dialog["sentences"])
    if not length == len(dialog["speakers"]) == len(dialog["times"]):
        raise ValueError("sentences, speakers and times differ in length")
    if not 0 < len(dialog["turns"]) == len(dialog["answers"]):
        raise ValueError("turns and answers differ in length, or are none")
    ends = {"sentences": sentences, "turns": length, "answers": candidates, "times": length, "speakers": FACT + 1}
    for name, end in ends.items():
        if len(dialog[name]) and not (0 <= dialog[name].min() and dialog[name].max() < end):
            raise ValueError(f"{name} must be from 0 to {end - 1}")


def _rows(path):
    rows = []
    for number, line in read_lines(path, None):
        rows.append(tuple(line.split("\t")))
        if len(rows[-1]) != 3:
            raise UserError(
                f"{path}, line {number}: expected three fields, separated by tabs. Received: {len(rows[-1])}"
            )
    return rows
