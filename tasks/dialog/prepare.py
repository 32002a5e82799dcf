"""Dialog tasks: from a corpus's files to one prepared dataset per task, `OUT/task1`, `OUT/task2`
and so on; `OUT/dialogs` of files of one's own.

    dialogs.pkl       {"sentences": lists of word ids, each sentence once,
                       "splits": {split: [{"sentences", "speakers", "times", "turns", "answers"}]}}
    candidates.txt    all responses of the bot, one per line
    knowledge.txt     `subject TAB relation TAB value` per line
    entities.txt      `name TAB type TAB source` per line, see `find_entities`

and the files of `data.prepared`, without word vectors.

A dialog has the numbers of its `sentences` in order, their `speakers` (1 user, 2 bot, 3 knowledge)
and `times` (earlier turns); `turns` are the places of the user's sentences, and `answers` the
numbers of the candidates that follow them. The split `dev-oov` is dev moved to entities that no
training dialog mentions (`data.corpora.babi_dialog.unseen_entities`), if the knowledge base has
enough of them.
"""

import collections
import itertools

from colloquy.base.files import atomic_directory
from colloquy.data.corpora import CORPORA
from colloquy.data.prepared import VOCABULARY, CommonSettings, write
from colloquy.data.report import Report, choose_examples, shorten
from colloquy.data.vocabulary import Vocabulary
from colloquy.engine.vocabularies import Words
from colloquy.tasks.dialog.domain import (
    CALL,
    CANDIDATES,
    DIALOGS,
    ENTITIES,
    KNOWLEDGE,
    NO_RESULT,
    SPLITS,
    Entity,
    find_facts,
)
from colloquy.tasks.dialog.split import encode_dialog
from colloquy.tasks.dialog.tables import RESTAURANT


class Settings(CommonSettings):
    """Settings of preparing a corpus."""


def prepare(corpus, source, out, settings):
    """Prepares every task that a directory holds, each as `data.prepared` says."""
    reader = CORPORA[corpus].reader
    report = Report()
    examples = []
    statistics_of_tasks = {}
    with atomic_directory(out) as directory:
        for task in reader.find_tasks(source):
            name = task.name
            files, statistics, examples_of_task = _prepare_task(reader, task, settings, report)
            examples = examples or examples_of_task
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
    report.note_unread(source)
    report.print(examples)
    for name, statistics in statistics_of_tasks.items():
        splits = [split for split in SPLITS if split in statistics]
        dialogs = [f"{statistics[split]['dialogs']:,} {split}" for split in splits]
        print(
            f"{name}: {statistics['candidates']:,} candidates, {statistics['vocabulary']:,} words, "
            f"dialogs: {', '.join(dialogs)}"
        )
    print(f"{out}: prepared")


def _prepare_task(reader, task, settings, report):
    """Returns the files of a task's dataset, `{name: content}`, its statistics and examples."""
    candidates = reader.read_candidates(task.candidates)
    knowledge = reader.read_knowledge(task.knowledge)
    for file in task.splits.values():
        report.add_file(file, "dialogs, a turn or a fact a line")
    report.add_file(task.candidates, "responses to choose from")
    report.add_file(task.knowledge, "facts")
    dialogs = _read_dialogs(reader, task, candidates, knowledge, report)
    _note_calls(task.name, find_unrepeatable_calls(dialogs["train"], knowledge), report)
    vocabulary = _make_vocabulary(dialogs["train"], candidates, knowledge, settings)
    if settings.vocabulary_of:
        _note_unknown_words(task.name, vocabulary, candidates, knowledge, report)

    sentences, encoded = _encode_dialogs(dialogs, candidates)
    entities = find_entities(knowledge, candidates)
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
            for name, count in statistics[split].items():
                report.counts[name] += count
    return files, statistics, _show_examples(dialogs["train"], vocabulary)


def _show_examples(dialogs, vocabulary):
    """The examples of the report: dialogs of train up to their last response.

    Unknown words are in brackets.
    """

    def show(place):
        turns = dialogs[place]
        last = max(i for i, turn in enumerate(turns) if turn.speaker == "bot")
        texts = [vocabulary.in_brackets(turn.text.split()) for turn in turns[: last + 1]]
        return " / ".join(texts[:-1]), texts[-1]

    return choose_examples(len(dialogs), show)


def _read_dialogs(reader, task, candidates, knowledge, report):
    """Reads `{split: dialogs}`; `dev-oov` is there if the knowledge base allows it.

    Dialogs are lists of `Turn`.
    """
    dialogs = {}
    for split, file in task.splits.items():
        dialogs[split] = reader.read_dialogs(file, task.candidates, report)
    pairs = reader.unseen_entities(dialogs["train"], knowledge)
    if pairs and "dev" in dialogs:
        moved = reader.move(dialogs["dev"], pairs)
        turns = itertools.chain(*moved)
        if {text for speaker, text in turns if speaker == "bot"} <= set(candidates):
            dialogs["dev-oov"] = moved
    return dialogs


def find_unrepeatable_calls(dialogs, knowledge):
    """Finds the calls after which a dialog has other facts than a search of the knowledge base.

    A bot that makes such a call finds something else than its training dialogs say. A call without
    facts after it is not compared.

    Returns:
        `{call: (facts in the dialog, facts of the search)}`, the numbers of facts.
    """
    facts_by_call = {}
    unrepeatable = {}
    for turns in dialogs:
        for place, turn in enumerate(turns):
            if turn.speaker != "bot" or not turn.text.startswith(CALL):
                continue
            after_call = itertools.takewhile(
                lambda turn: turn.speaker == "fact", turns[place + 1 :]
            )
            facts = [turn.text for turn in after_call]
            if turn.text not in facts_by_call:
                facts_by_call[turn.text] = find_facts(knowledge, turn.text)
            found = facts_by_call[turn.text]
            if facts and set(facts) != set(found):
                unrepeatable[turn.text] = (_count(facts), _count(found))
    return unrepeatable


def _count(facts):
    return 0 if facts == [NO_RESULT] else len(facts)


def _note_calls(name, unrepeatable, report):
    """Notes how many calls find other facts than their dialogs have, and the first of them."""
    if not unrepeatable:
        return
    call, (in_dialog, found) = next(iter(unrepeatable.items()))
    report.note(
        f"{name}: {len(unrepeatable):,} calls of train find other facts in the knowledge base, "
        f"such as {call}: {in_dialog} facts in the dialog, {found} in the knowledge base"
    )


def _make_vocabulary(dialogs, candidates, knowledge, settings):
    if settings.vocabulary_of:
        return Words.open(settings.vocabulary_of, "dialog").vocabulary
    texts = [text for _, text in itertools.chain(*dialogs)]
    texts += candidates
    texts += [" ".join(fact) for fact in knowledge]
    counts = collections.Counter(" ".join(texts).split())
    return Vocabulary.of_counts(counts)


def _note_unknown_words(name, vocabulary, candidates, knowledge, report):
    """Notes words that a bot would need and that a known vocabulary lacks."""
    texts = [*candidates, *(" ".join(fact) for fact in knowledge)]
    unknown = sorted(set(" ".join(texts).split()).difference(vocabulary.words))
    if unknown:
        report.note(
            f"{name}: --vocabulary_of lacks words of its candidates and facts, so a bot that is "
            f"trained on it gives no response with them: {shorten(unknown)}"
        )


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


def _statistics(dialogs):
    return {
        "dialogs": len(dialogs),
        "responses": sum(len(dialog["turns"]) for dialog in dialogs),
    }


# === Entities ===


def find_entities(knowledge, candidates):
    """The distinct `Entity`s of the domain, sorted within a source.

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
        entities.append(Entity(value, value_type, "knowledge"))
        type_of_value[value] = value_type
    for subject in sorted(subjects):
        entities.append(Entity(subject, RESTAURANT, "subjects"))
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
                unknown.add(Entity(word, common_type, "calls"))
    return sorted(unknown)
