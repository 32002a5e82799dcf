"""Dialog tasks: from a corpus's files to one prepared dataset per task, `OUT/task1`, `OUT/task2` and so on.

    dialogs.pkl       {"sentences": lists of word ids, each sentence once,
                       "splits": {split: [{"sentences", "speakers", "times", "turns", "answers"}]}}
    candidates.txt    every response a bot can give, one per line
    knowledge.txt     `subject TAB relation TAB value` a line
    entities.txt      `name TAB type TAB source` a line: the words that stand for an entity, see `find_entities`

and the files of `data.prepared`, without word vectors.

Of a dialog, `sentences` are what is said and known, in order (numbers of sentences), `speakers` who says it (1 user,
2 bot, 3 knowledge), `times` how many turns went before; `turns` are the places of the user's sentences, and `answers`
the numbers of the candidates that the bot gives to them.

Where a knowledge base has entities that no training dialog mentions, the split `dev-oov` is dev moved to these
(`data.corpora.babi_dialog.unseen_entities`).
"""

import collections
import dataclasses

import rich
from rich.table import Table

from base.files import UserError, atomic_directory
from data.corpora import CORPORA
from data.corpora.babi_dialog import Turn
from data.prepared import VOCABULARY, shown, write
from data.text_files import bad_line
from data.vocabulary import Vocabulary
from engine.vocabularies import Words

DIALOGS, CANDIDATES, KNOWLEDGE, ENTITIES = "dialogs.pkl", "candidates.txt", "knowledge.txt", "entities.txt"
SPLITS = ("train", "dev", "dev-oov", "test", "test-oov")
USER, BOT, FACT = 1, 2, 3
VOCABULARIES = ("all", "train")
RESTAURANT = "restaurant"


@dataclasses.dataclass(frozen=True)
class Settings:
    """How a corpus is prepared."""

    name: str | None = None
    """Name of the corpus in tables and in `results/published.json`; `None`: `babi`, to which `-taskN` is added."""
    words_of: str = "all"
    """`all`: the vocabulary has the words of the training dialogs, the candidates and the knowledge base, all of which
    a bot has before its first user comes. `train`: those of the training dialogs alone."""
    vocabulary_of: str | None = None
    """Run or prepared dataset of one task whose words are taken, so that a model of the one can score what is
    prepared; `None`: the corpus's own."""

    def __post_init__(self):
        if self.words_of not in VOCABULARIES:
            raise UserError(f"--words_of must be one of {VOCABULARIES}. Received: {self.words_of!r}")


def prepare(corpus, source, out, settings):
    """Prepares every task that a directory holds, each as `data.prepared` says."""
    reader = CORPORA[corpus].reader
    summary = Table("task", "split", "dialogs", "responses", "sentences per dialog: mean, most", "candidates", "words")
    with atomic_directory(out) as directory:
        for task in reader.find_tasks(source):
            files, sizes, statistics = _prepare_task(reader, task, settings)
            of_task = directory / f"task{task.number}"
            of_task.mkdir()
            name = f"{settings.name or 'babi'}-task{task.number}"
            write(of_task, files, corpus, source, settings, {**sizes, **statistics}, name=name)
            for split, found in statistics.items():
                lengths = f"{found['sentences_mean']:.1f}, {found['sentences_most']}"
                counts = found["dialogs"], found["responses"], lengths, sizes["candidates"], sizes["vocabulary"]
                summary.add_row(str(task.number), split, *map(shown, counts))
    rich.print(summary)
    print(f"{out}: prepared")


def _prepare_task(reader, task, settings):
    """The files, sizes and statistics of each split of a task."""
    candidates, knowledge = reader.read_candidates(task.candidates), reader.read_knowledge(task.knowledge)
    numbers = {text: i for i, text in enumerate(candidates)}
    dialogs = _read_dialogs(reader, task, numbers, knowledge)
    texts = [text for dialog in dialogs["train"] for entry in dialog for text in _texts(entry)]
    if settings.words_of == "all":
        texts += candidates + [fact.text for fact in knowledge]
    if settings.vocabulary_of:
        vocabulary = Words.of(settings.vocabulary_of, "dialog").vocabulary
    else:
        vocabulary = Vocabulary.count(text.split() for text in texts)
    sentences = {}
    encoded = {split: [] for split in SPLITS}
    for split in dialogs:
        encoded[split] = [_encode(dialog, sentences, numbers) for dialog in dialogs[split]]
    files = {
        DIALOGS: {"sentences": [vocabulary.encode(text.split()) for text in sentences], "splits": encoded},
        VOCABULARY: vocabulary,
        CANDIDATES: candidates,
        KNOWLEDGE: map("\t".join, knowledge),
        ENTITIES: map("\t".join, find_entities(knowledge, candidates)),
    }
    sizes = {"vocabulary": len(vocabulary), "candidates": len(candidates)}
    return files, sizes, {split: _statistics(coded) for split, coded in encoded.items() if coded}


def _read_dialogs(reader, task, numbers, knowledge):
    """`{split: dialogs}`, `dev-oov` made where the knowledge base allows it; `numbers` has every response."""
    dialogs = {}
    for split, file in task.splits.items():
        dialogs[split] = reader.read_dialogs(file)
        for entry in (entry for dialog in dialogs[split] for entry in dialog):
            if isinstance(entry, Turn) and entry.bot not in numbers:
                raise bad_line(file, entry.number, f"a response of {task.candidates.name}", entry.bot)
    pairs = reader.unseen_entities(dialogs["train"], knowledge)
    if pairs and "dev" in dialogs:
        moved = reader.move(dialogs["dev"], pairs)
        # A world that lacks one of the responses is none to move to.
        if all(entry.bot in numbers for dialog in moved for entry in dialog if isinstance(entry, Turn)):
            dialogs["dev-oov"] = moved
    return dialogs


def _statistics(encoded):
    lengths = [len(dialog["sentences"]) for dialog in encoded]
    return {
        "dialogs": len(encoded),
        "responses": sum(len(dialog["turns"]) for dialog in encoded),
        "sentences_mean": sum(lengths) / len(lengths),
        "sentences_most": max(lengths),
    }


def find_entities(knowledge, candidates):
    """The words that stand for entities of the world, each with its type.

    Args:
        knowledge: List of `data.corpora.babi_dialog.Fact`.
        candidates: List of texts.

    Returns:
        Distinct triples `(name, type, source)`, sorted within each source. From `knowledge`: the values of a relation,
        whose type is the relation (`R_price` gives `price`). From `subjects`: what the facts are about, of type
        `restaurant`. From `calls`: a word that the knowledge base lacks but an `api_call` has, with the type that most
        other calls have in its place (`canapes`, in the place of cuisines).

    >>> from data.corpora.babi_dialog import Fact
    >>> facts = [Fact("prezzo", "R_cuisine", "thai"), Fact("prezzo", "R_location", "west")]
    >>> find_entities(facts, ["api_call thai west", "api_call thai R_location", "api_call tuscan west", "hello"])
    [('thai', 'cuisine', 'knowledge'), ('west', 'location', 'knowledge'), ('prezzo', 'restaurant', 'subjects'),
     ('tuscan', 'cuisine', 'calls')]
    """
    types = {(fact.value, fact.relation.removeprefix("R_")) for fact in knowledge}
    entities = [(*pair, "knowledge") for pair in sorted(types, key=lambda pair: pair[::-1])]
    entities += [(name, RESTAURANT, "subjects") for name in sorted({fact.subject for fact in knowledge})]
    type_of = dict(sorted(types))  # a set's own order is another in each process
    calls = [text.split()[1:] for text in candidates if text.startswith("api_call ")]
    votes = collections.defaultdict(collections.Counter)
    for call in calls:
        for place, word in enumerate(call):
            if word in type_of:
                votes[place][type_of[word]] += 1
    unknown = {
        (word, votes[place].most_common(1)[0][0])
        for call in calls
        for place, word in enumerate(call)
        if word not in type_of and not word.startswith("R_") and votes[place]
    }
    return entities + [(*pair, "calls") for pair in sorted(unknown)]


def _encode(dialog, sentences, numbers):
    """A dialog as numbers; `sentences` collects each text once."""
    coded = {"sentences": [], "speakers": [], "times": [], "turns": [], "answers": []}

    def add(text, speaker, time):
        coded["sentences"].append(sentences.setdefault(text, len(sentences)))
        coded["speakers"].append(speaker)
        coded["times"].append(time)

    for entry in dialog:
        if isinstance(entry, Turn):
            time = len(coded["turns"])
            coded["turns"].append(len(coded["sentences"]))
            coded["answers"].append(numbers[entry.bot])
            add(entry.user, USER, time)
            add(entry.bot, BOT, time)
        else:  # what a call returns belongs to the turn of the call
            add(entry.text, FACT, max(len(coded["turns"]) - 1, 0))
    return coded


def _texts(entry):
    return (entry.user, entry.bot) if isinstance(entry, Turn) else (entry.text,)
