"""Dialog tasks: from a corpus's files to one prepared dataset per task, `OUT/task1`, `OUT/task2`
and so on.

    dialogs.pkl       {"sentences": lists of word ids, each sentence once,
                       "splits": {split: [{"sentences", "speakers", "times", "turns", "answers"}]}}
    candidates.txt    all responses of the bot, one per line
    knowledge.txt     `subject TAB relation TAB value` per line
    entities.txt      `name TAB type TAB source` per line, see `find_entities`

and the files of `data.prepared`, without word vectors.

A dialog has the numbers of its `sentences` in order, their `speakers` (1 user, 2 bot, 3 knowledge)
and `times` (earlier turns); `turns` are the places of the user's sentences, and `answers` the
numbers of the candidates that follow them. With --managers it also names its `manager`. The split
`dev-oov` is dev moved to entities that no training dialog mentions
(`data.corpora.babi_dialog.unseen_entities`), if the knowledge base has enough of them.
"""

import collections
import functools
import itertools
import random
from typing import Literal

from colloquy.base.config import NonNegative
from colloquy.base.files import UserError, atomic_directory
from colloquy.data.corpora import CORPORA
from colloquy.data.prepared import VOCABULARY, CommonSettings, print_summary, write
from colloquy.data.vocabulary import Vocabulary
from colloquy.engine.vocabularies import Words
from colloquy.tasks.dialog.augment import augment
from colloquy.tasks.dialog.managers import MANAGERS, split_by_manager
from colloquy.tasks.dialog.split import encode_dialog

DIALOGS = "dialogs.pkl"
CANDIDATES = "candidates.txt"
KNOWLEDGE = "knowledge.txt"
ENTITIES = "entities.txt"
SPLITS = ("train", "dev", "dev-oov", "test", "test-oov")
CALL = "api_call "
NO_RESULT = "api_call no result"
RESTAURANT = "restaurant"  # type of the subjects of facts


class Settings(CommonSettings):
    """Settings of preparing a corpus."""

    augment: NonNegative = 0
    """Copies of each full training dialog in other words, see tasks/dialog/augment.py."""
    managers: Literal["all", "both", *MANAGERS] = "all"
    """Dialog managers of train and dev, found by their responses; `both`: scores of dev are means
    over them.
    """
    words_of: Literal["all", "train"] = "all"
    """Texts whose words make the vocabulary: the training dialogs; with `all` also the candidates
    and the knowledge base, which a bot has before its first user."""


def prepare(corpus, source, out, settings):
    """Prepares every task that a directory holds, each as `data.prepared` says."""
    reader = CORPORA[corpus].reader
    statistics_of_tasks = {}
    with atomic_directory(out) as directory:
        for task in reader.find_tasks(source):
            name = f"task{task.number}"
            files, statistics = _prepare_task(reader, task, settings)
            statistics_of_tasks[name] = statistics
            (directory / name).mkdir()
            write(
                directory / name,
                files,
                corpus,
                source,
                settings,
                statistics,
                name=f"{settings.name or 'babi'}-{name}",
            )
    for name, statistics in statistics_of_tasks.items():
        candidates = statistics["candidates"]
        print(f"{name}: {candidates:,} candidates, {statistics['vocabulary']:,} words")
        print_summary({split: statistics[split] for split in SPLITS if split in statistics})
    print(f"{out}: prepared")


def _prepare_task(reader, task, settings):
    """Returns the files of a task's dataset, `{name: content}`, and its statistics."""
    candidates = reader.read_candidates(task.candidates)
    knowledge = reader.read_knowledge(task.knowledge)
    dialogs = _read_dialogs(reader, task, candidates, knowledge)
    copies = _make_copies(dialogs["train"], knowledge, settings.augment)
    _check_copies(copies, candidates, task)
    dialogs["train"] = dialogs["train"] + copies
    vocabulary = _make_vocabulary(dialogs["train"], candidates, knowledge, settings)

    sentences, encoded = _encode_dialogs(dialogs, candidates)
    entities = find_entities(knowledge, candidates)
    if settings.managers != "all":
        templates = _make_templates(candidates, entities)
        encoded = split_by_manager(encoded, templates, settings.managers)
    files = {
        DIALOGS: {
            "sentences": [vocabulary.encode(text.split()) for text in sentences],
            "splits": encoded,
        },
        VOCABULARY: vocabulary,
        CANDIDATES: candidates,
        KNOWLEDGE: ["\t".join(fact) for fact in knowledge],
        ENTITIES: ["\t".join(entity) for entity in entities],
    }
    statistics = {"vocabulary": len(vocabulary), "candidates": len(candidates)}
    for split, dialogs_of_split in encoded.items():
        if dialogs_of_split:
            statistics[split] = _statistics(dialogs_of_split)
    return files, statistics


def _read_dialogs(reader, task, candidates, knowledge):
    """Reads `{split: dialogs}`; `dev-oov` is there if the knowledge base allows it.

    Dialogs are lists of `(speaker, text)`.
    """
    dialogs = {}
    for split, file in task.splits.items():
        dialogs[split] = reader.read_dialogs(file, task.candidates)
    pairs = reader.unseen_entities(dialogs["train"], knowledge)
    if pairs and "dev" in dialogs:
        moved = reader.move(dialogs["dev"], pairs)
        if _responses_of(moved) <= set(candidates):
            dialogs["dev-oov"] = moved
    return dialogs


def _responses_of(dialogs):
    """The distinct responses of the bot."""
    responses = set()
    for conversation in dialogs:
        responses.update(text for speaker, text in conversation if speaker == "bot")
    return responses


def _make_copies(dialogs, knowledge, count):
    """Copies the full dialogs `count` times in other words."""
    rng = random.Random(1)
    search = functools.partial(find_facts, knowledge)
    copies = []
    for _ in range(count):
        copies += augment(dialogs, search, rng)
    return copies


def _check_copies(copies, candidates, task):
    missing = _responses_of(copies) - set(candidates)
    if missing:
        raise UserError(
            f"{task.candidates}: --augment expects the responses of dialog bAbI. "
            f"Missing: {min(missing)!r}"
        )


def _make_vocabulary(dialogs, candidates, knowledge, settings):
    if settings.vocabulary_of:
        return Words.of(settings.vocabulary_of, "dialog").vocabulary
    texts = []
    for conversation in dialogs:
        texts += [text for _, text in conversation]
    if settings.words_of == "all":
        texts += candidates
        texts += [" ".join(fact) for fact in knowledge]
    counts = collections.Counter(" ".join(texts).split())
    return Vocabulary.of_counts(counts)


def _encode_dialogs(dialogs, candidates):
    """Encodes the dialogs of all splits.

    Returns:
        The distinct sentences, `{text: number}`.
        The dialogs, `{split: dicts of lists}`, for each of `SPLITS`.
    """
    numbers = {text: number for number, text in enumerate(candidates)}
    sentences = {}
    encoded = {split: [] for split in SPLITS}
    for split, dialogs_of_split in dialogs.items():
        for conversation in dialogs_of_split:
            answers = [numbers[text] for speaker, text in conversation if speaker == "bot"]
            dialog = encode_dialog(conversation, sentences)
            encoded[split].append({**dialog, "answers": answers})
    return sentences, encoded


def _make_templates(candidates, entities):
    """The template of each candidate; all calls have one."""
    type_of = {name: f"{{{entity_type}}}" for name, entity_type, _ in entities}
    templates = []
    for text in candidates:
        if text.startswith(CALL):
            templates.append(CALL.strip())
        else:
            templates.append(" ".join(type_of.get(word, word) for word in text.split()))
    return templates


def _statistics(dialogs):
    lengths = [len(dialog["sentences"]) for dialog in dialogs]
    responses = [len(dialog["turns"]) for dialog in dialogs]
    return {
        "dialogs": len(dialogs),
        "responses": sum(responses),
        "sentences_mean": round(sum(lengths) / len(lengths), 1),
        "sentences_most": max(lengths),
    }


def find_facts(knowledge, call):
    """Finds the facts about all subjects with every value that an `api_call` names.

    `R_price` means any price.
    """
    wanted = {word for word in call.split()[1:] if not word.startswith("R_")}
    values_by_subject = collections.defaultdict(set)
    for subject, _, value in knowledge:
        values_by_subject[subject].add(value)
    facts = [" ".join(fact) for fact in knowledge if wanted <= values_by_subject[fact[0]]]
    return facts or [NO_RESULT]


# === Entities ===


def find_entities(knowledge, candidates):
    """The entities of the domain: distinct triples `(name, type, source)`, sorted within a source.

    - `knowledge`: the values of a relation, whose type is the relation (`R_price` gives `price`).
    - `subjects`: subjects of facts, of type `restaurant`.
    - `calls`: words that the knowledge base lacks but an `api_call` has, with the type that most
      other calls have in the same place (`canapes`, in the place of cuisines).

    >>> from colloquy.data.corpora.babi_dialog import Fact
    >>> facts = [Fact("prezzo", "R_cuisine", "thai"), Fact("prezzo", "R_location", "west")]
    >>> calls = ["api_call thai west", "api_call thai R_location", "api_call tuscan west"]
    >>> for entity in find_entities(facts, [*calls, "hello"]):
    ...     print(*entity)
    thai cuisine knowledge
    west location knowledge
    prezzo restaurant subjects
    tuscan cuisine calls
    """
    typed_values = set()
    subjects = set()
    for fact in knowledge:
        typed_values.add((fact.relation.removeprefix("R_"), fact.value))
        subjects.add(fact.subject)

    entities = []
    type_of_value = {}
    for value_type, value in sorted(typed_values):
        entities.append((value, value_type, "knowledge"))
        type_of_value[value] = value_type
    for subject in sorted(subjects):
        entities.append((subject, RESTAURANT, "subjects"))
    calls = [text.split()[1:] for text in candidates if text.startswith(CALL)]
    return entities + _find_unknown_values(calls, type_of_value)


def _find_unknown_values(calls, type_of_value):
    """Finds the words of calls that are no values of the knowledge base, sorted entities."""
    unknown = set()
    for words_of_place in itertools.zip_longest(*calls, fillvalue="R_"):
        known_types = [type_of_value[word] for word in words_of_place if word in type_of_value]
        if not known_types:
            continue
        [(common_type, _)] = collections.Counter(known_types).most_common(1)
        for word in words_of_place:
            if word not in type_of_value and not word.startswith("R_"):
                unknown.add((word, common_type, "calls"))
    return sorted(unknown)
