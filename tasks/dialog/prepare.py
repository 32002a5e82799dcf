"""Dialog tasks: from a corpus's files to one prepared dataset per task.

The tasks of dialog bAbI become `OUT/task1`, `OUT/task2` and so on; files of one's own become
`OUT/dialogs`. A dataset has the files of `data.prepared`, without word vectors, and

    dialogs.pkl       {"sentences": lists of word ids, each sentence once,
                       "splits": {split: [{"sentences", "speakers", "times", "turns", "answers"}]}}
    candidates.txt    all responses of the bot, one per line
    knowledge.txt     `subject TAB relation TAB value` per line
    entities.txt      `name TAB type TAB source` per line, see `find_entities`

Each dialog in `dialogs.pkl` has five lists:

    sentences    for each sentence its number, from 0
    speakers     for each sentence 1 user, 2 bot, 3 knowledge
    times        for each sentence the number of earlier turns
    turns        for each sentence of the user its place in the dialog
    answers      for each sentence of the user the number of the candidate that follows it
"""

import collections
import itertools

from colloquy.base.files import atomic_directory
from colloquy.data.corpora import CORPORA
from colloquy.data.prepared import VOCABULARY, CommonSettings, write
from colloquy.data.report import Report
from colloquy.data.vocabulary import Vocabulary
from colloquy.engine.vocabularies import Words
from colloquy.tasks.dialog.domain import CANDIDATES, DIALOGS, ENTITIES, KNOWLEDGE, SPLITS
from colloquy.tasks.dialog.knowledge import find_entities
from colloquy.tasks.dialog.prepare_report import (
    note_unknown_words,
    note_unrepeatable_calls,
    print_tasks,
    show_examples,
)
from colloquy.tasks.dialog.split import encode_dialog


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
            files, statistics, examples_of_task = _prepare_task(reader, task, settings, report)
            # The report shows examples of the first task alone.
            examples = examples or examples_of_task
            statistics_of_tasks[task.name] = statistics
            name = f"{settings.name or 'babi'}-{task.name}"
            path = directory / task.name
            path.mkdir()
            write(path, files, corpus, source, settings, statistics, name=name)
    report.note_unread(source)
    report.print(examples)
    print_tasks(statistics_of_tasks)
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
    note_unrepeatable_calls(task.name, dialogs["train"], knowledge, report)
    vocabulary = _make_vocabulary(dialogs["train"], candidates, knowledge, settings)
    if settings.vocabulary_of:
        note_unknown_words(task.name, vocabulary, candidates, knowledge, report)

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
            num_responses = sum(len(dialog["answers"]) for dialog in dialogs_of_split)
            statistics[split] = {"dialogs": len(dialogs_of_split), "responses": num_responses}
            report.counts.update(statistics[split])
    return files, statistics, show_examples(dialogs["train"], vocabulary)


def _read_dialogs(reader, task, candidates, knowledge, report):
    """Reads the dialogs of a task, lists of `Turn`: `{split: dialogs}`.

    One more split, `dev-oov` (out of vocabulary), is dev with other cuisines and places, which no
    training dialog mentions. It is left out if the knowledge base has too few of these, or if the
    bot's responses with them are no candidates.
    """
    dialogs = {}
    for split, file in task.splits.items():
        dialogs[split] = reader.read_dialogs(file, task.candidates, report)
    replacements = reader.unseen_entities(dialogs["train"], knowledge)
    if replacements and "dev" in dialogs:
        moved = reader.move(dialogs["dev"], replacements)
        turns = itertools.chain(*moved)
        responses = {text for speaker, text in turns if speaker == "bot"}
        if responses <= set(candidates):
            dialogs["dev-oov"] = moved
    return dialogs


def _make_vocabulary(dialogs, candidates, knowledge, settings):
    if settings.vocabulary_of:
        return Words.open(settings.vocabulary_of, "dialog").vocabulary
    texts = [text for _, text in itertools.chain(*dialogs)]
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
        for turns in dialogs_of_split:
            # `encode_dialog` adds the texts that are new to `sentences`.
            dialog = encode_dialog(turns, sentences)
            dialog["answers"] = [numbers[turn.text] for turn in turns if turn.speaker == "bot"]
            encoded[split].append(dialog)
    return sentences, encoded
