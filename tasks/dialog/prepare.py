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
from colloquy.data.report import Report, choose_examples, shorten
from colloquy.data.vocabulary import Vocabulary
from colloquy.engine.vocabularies import Words
from colloquy.tasks.dialog.domain import CANDIDATES, DIALOGS, ENTITIES, KNOWLEDGE, SPLITS
from colloquy.tasks.dialog.entities import find_entities
from colloquy.tasks.dialog.knowledge import find_unrepeatable_calls
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
    _note_unrepeatable_calls(task.name, dialogs["train"], knowledge, report)
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

    def show(number):
        turns = dialogs[number]
        last = max(place for place, turn in enumerate(turns) if turn.speaker == "bot")
        texts = [vocabulary.in_brackets(turn.text.split()) for turn in turns[: last + 1]]
        return " / ".join(texts[:-1]), texts[-1]

    return choose_examples(len(dialogs), show)


def _read_dialogs(reader, task, candidates, knowledge, report):
    """Reads the dialogs of a task, lists of `Turn`: `{split: dialogs}`.

    The split `dev-oov`, for out of vocabulary, is dev with each cuisine and place replaced by one
    that no training dialog mentions. It is left out if the knowledge base has too few others, or if
    a response that is changed so is no candidate.
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


def _note_unrepeatable_calls(name, dialogs, knowledge, report):
    """Notes how many calls find other facts than their dialogs have, and the first of them."""
    unrepeatable = find_unrepeatable_calls(dialogs, knowledge)
    if not unrepeatable:
        return
    call, facts = next(iter(unrepeatable.items()))
    report.note(
        f"{name}: {len(unrepeatable):,} calls of train find other facts in the knowledge base, "
        f"such as {call}: {facts.in_dialog} facts in the dialog, {facts.found} in the knowledge "
        "base"
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
        for turns in dialogs_of_split:
            dialog = encode_dialog(turns, sentences)  # adds new texts to `sentences`
            dialog["answers"] = [numbers[turn.text] for turn in turns if turn.speaker == "bot"]
            encoded[split].append(dialog)
    return sentences, encoded


def _statistics(dialogs):
    return {
        "dialogs": len(dialogs),
        "responses": sum(len(dialog["turns"]) for dialog in dialogs),
    }
