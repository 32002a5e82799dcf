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

import bisect
import collections
import functools
import itertools
import random
from typing import Literal

import numpy as np

from colloquy.base.config import NonNegative
from colloquy.base.files import UserError, atomic_directory
from colloquy.data.corpora import CORPORA
from colloquy.data.prepared import VOCABULARY, CommonSettings, print_summary, write
from colloquy.data.vocabulary import Vocabulary
from colloquy.engine.vocabularies import Words
from colloquy.tasks.dialog.augment import augment

DIALOGS, CANDIDATES, KNOWLEDGE, ENTITIES = (
    "dialogs.pkl",
    "candidates.txt",
    "knowledge.txt",
    "entities.txt",
)
SPLITS = ("train", "dev", "dev-oov", "test", "test-oov")
SPEAKERS = {"user": 1, "bot": 2, "fact": 3}
CALL = "api_call "
RESTAURANT = "restaurant"
NO_RESULT = "api_call no result"
MANAGERS = ("smaller", "larger")
COMMON = 20  # dialogs that contain a template, at least
STARTS, STEPS = 10, 100  # of the expectation maximisation
HELD_OUT = 150  # training dialogs of the larger manager that dev gets


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
    reader, statistics = CORPORA[corpus].reader, {}
    with atomic_directory(out) as directory:
        for task in reader.find_tasks(source):
            name = f"task{task.number}"
            files, statistics[name] = _prepare_task(reader, task, settings)
            (directory / name).mkdir()
            corpus_name = f"{settings.name or 'babi'}-{name}"
            write(
                directory / name,
                files,
                corpus,
                source,
                settings,
                statistics[name],
                name=corpus_name,
            )
    for name, found in statistics.items():
        print(f"{name}: {found['candidates']:,} candidates, {found['vocabulary']:,} words")
        print_summary({split: found[split] for split in SPLITS if split in found})
    print(f"{out}: prepared")


def _prepare_task(reader, task, settings):
    candidates, knowledge = (
        reader.read_candidates(task.candidates),
        reader.read_knowledge(task.knowledge),
    )
    dialogs = _read_dialogs(reader, task, candidates, knowledge)
    rng, search = random.Random(1), functools.partial(find_facts, knowledge)
    copies = [
        copy for _ in range(settings.augment) for copy in augment(dialogs["train"], search, rng)
    ]
    dialogs["train"] = [*dialogs["train"], *copies]
    numbers, sentences = {text: number for number, text in enumerate(candidates)}, {}
    if (
        missing := {text for copy in copies for speaker, text in copy if speaker == "bot"}
        - numbers.keys()
    ):
        raise UserError(
            f"{task.candidates}: --augment expects the responses of dialog bAbI. Missing: {min(missing)!r}"
        )
    if settings.vocabulary_of:
        vocabulary = Words.of(settings.vocabulary_of, "dialog").vocabulary
    else:
        texts = [text for said in dialogs["train"] for _, text in said]
        texts += [*candidates, *map(" ".join, knowledge)] if settings.words_of == "all" else []
        vocabulary = Vocabulary.of_counts(collections.Counter(" ".join(texts).split()))
    encoded = {split: [] for split in SPLITS}
    for split, of_split in dialogs.items():
        for said in of_split:
            answers = [numbers[text] for speaker, text in said if speaker == "bot"]
            encoded[split].append({**encode_dialog(said, sentences), "answers": answers})
    entities = find_entities(knowledge, candidates)
    if settings.managers != "all":
        types = {name: f"{{{type}}}" for name, type, _ in entities}
        responses = [CALL if text.startswith(CALL) else text for text in candidates]
        templates = [" ".join(types.get(word, word) for word in text.split()) for text in responses]
        encoded = split_by_manager(encoded, templates, settings.managers)
    files = {
        DIALOGS: {
            "sentences": [vocabulary.encode(text.split()) for text in sentences],
            "splits": encoded,
        },
        VOCABULARY: vocabulary,
        CANDIDATES: candidates,
        KNOWLEDGE: map("\t".join, knowledge),
        ENTITIES: map("\t".join, entities),
    }
    sizes = {"vocabulary": len(vocabulary), "candidates": len(candidates)}
    return files, sizes | {split: _statistics(found) for split, found in encoded.items() if found}


def _read_dialogs(reader, task, candidates, knowledge):
    """`{split: dialogs}` with dialogs as lists of `(speaker, text)`; `dev-oov` where the knowledge
    base allows it.
    """
    dialogs = {
        split: reader.read_dialogs(file, task.candidates) for split, file in task.splits.items()
    }
    pairs = reader.unseen_entities(dialogs["train"], knowledge)
    if pairs and "dev" in dialogs:
        moved = reader.move(dialogs["dev"], pairs)
        if {text for said in moved for speaker, text in said if speaker == "bot"} <= {*candidates}:
            dialogs["dev-oov"] = moved
    return dialogs


def encode_dialog(said, sentences):
    """A list of `(speaker, text)` as numbers, without answers; adds new texts to `sentences`,
    `{text: number}`.

    >>> encode_dialog([("user", "hi"), ("bot", "hello"), ("user", "hi"), ("fact", "x R_y z")], {})
    {'sentences': [0, 1, 0, 2], 'speakers': [1, 2, 1, 3], 'times': [0, 0, 1, 1], 'turns': [0, 2]}
    """
    turns = [place for place, (speaker, _) in enumerate(said) if speaker == "user"]
    return {
        "sentences": [sentences.setdefault(text, len(sentences)) for _, text in said],
        "speakers": [SPEAKERS[speaker] for speaker, _ in said],
        "times": [max(bisect.bisect(turns, place) - 1, 0) for place in range(len(said))],
        "turns": turns,
    }


def find_facts(knowledge, call):
    """The facts about all subjects with every value that an `api_call` names; `R_price` means any
    price.
    """
    wanted = {word for word in call.split()[1:] if not word.startswith("R_")}
    values = collections.defaultdict(set)
    for subject, _, value in knowledge:
        values[subject].add(value)
    return [" ".join(fact) for fact in knowledge if wanted <= values[fact[0]]] or [NO_RESULT]


def _statistics(encoded):
    lengths, responses = zip(
        *((len(dialog["sentences"]), len(dialog["turns"])) for dialog in encoded), strict=True
    )
    sizes = {
        "sentences_mean": round(sum(lengths) / len(lengths), 1),
        "sentences_most": max(lengths),
    }
    return {"dialogs": len(encoded), "responses": sum(responses), **sizes}


def find_entities(knowledge, candidates):
    """The entities of the domain: distinct triples `(name, type, source)`, sorted within a source.

    `knowledge`: the values of a relation, whose type is the relation (`R_price` gives `price`).
    `subjects`: subjects of facts, of type `restaurant`. `calls`: words that the knowledge base
    lacks but an `api_call` has, with the type that most other calls have in the same place
    (`canapes`, in the place of cuisines).

    >>> from colloquy.data.corpora.babi_dialog import Fact
    >>> facts = [Fact("prezzo", "R_cuisine", "thai"), Fact("prezzo", "R_location", "west")]
    >>> find_entities(facts, ["api_call thai west", "api_call thai R_location", "api_call tuscan west", "hello"])
    [('thai', 'cuisine', 'knowledge'), ('west', 'location', 'knowledge'), ('prezzo', 'restaurant',
     'subjects'), ('tuscan', 'cuisine', 'calls')]
    """
    pairs = sorted({(fact.relation.removeprefix("R_"), fact.value) for fact in knowledge})
    entities = [(value, type, "knowledge") for type, value in pairs]
    entities += [
        (name, RESTAURANT, "subjects") for name in sorted({fact.subject for fact in knowledge})
    ]
    type_of = {value: type for type, value in pairs}
    calls, unknown = [text.split()[1:] for text in candidates if text.startswith(CALL)], set()
    # the words in one place of all calls
    for words in itertools.zip_longest(*calls, fillvalue="R_"):
        new = {word for word in words if word not in type_of and not word.startswith("R_")}
        for type, _ in collections.Counter(
            type_of[word] for word in words if word in type_of
        ).most_common(1):
            unknown |= {(word, type, "calls") for word in new}
    return entities + sorted(unknown)


# === Dialog managers of task 6 ===


def split_by_manager(splits, templates, wanted):
    """`{split: dialogs}` with train and dev of one manager or `both`; each of their dialogs gets
    its `manager`.

    Task 6 was recorded with three managers (Henderson, Thomson and Williams 2014): train and dev
    have two, the smaller one in dev almost alone, and test has a third. So dev gets `HELD_OUT`
    training dialogs of the larger manager, or half of them if there are fewer. `templates` has the
    template of each candidate.
    """
    dialogs = splits["train"] + splits["dev"]
    managers = find_managers(
        [{templates[answer] for answer in dialog["answers"]} for dialog in dialogs]
    )
    in_dev = np.arange(len(dialogs)) >= len(splits["train"])
    larger = np.flatnonzero((managers == 1) & ~in_dev)
    in_dev[
        np.random.default_rng(1).choice(larger, min(HELD_OUT, len(larger) // 2), replace=False)
    ] = True
    parts = {"train": [], "dev": []}
    for dialog, manager, held_out in zip(dialogs, managers, in_dev, strict=True):
        if wanted in ("both", MANAGERS[manager]):
            parts["dev" if held_out else "train"].append({**dialog, "manager": MANAGERS[manager]})
    return splits | parts


def find_managers(templates):
    """Separates dialogs by a mixture of two products of Bernoulli distributions over the templates
    in a dialog.

    Each dialog is the set of its responses with types in place of entities. Returns the index into
    `MANAGERS` of each, int `(D,)`; the second has more dialogs. Shape suffixes: D dialogs, K
    templates, L managers, 2.
    """
    counts = collections.Counter(itertools.chain.from_iterable(templates))
    common = sorted(template for template, count in counts.items() if count >= COMMON)
    X_DK = np.array([[template in each for template in common] for each in templates], float)
    rng = np.random.default_rng(1)
    starts = [_maximise(X_DK, rng.dirichlet((1, 1), len(X_DK))) for _ in range(STARTS)]
    _, P_DL = max(starts, key=lambda found: found[0])
    return np.argsort(np.argsort(P_DL.sum(axis=0)))[P_DL.argmax(axis=1)]


def _maximise(X_DK, P_DL):
    """The log-likelihood and the posterior `(D, L)` after `STEPS` steps of expectation
    maximisation.
    """
    for _ in range(STEPS):
        size_L = P_DL.sum(axis=0)
        p_LK = (P_DL.T @ X_DK + 1) / (size_L[:, None] + 2)
        joint_DL = (
            X_DK @ np.log(p_LK).T + (1 - X_DK) @ np.log(1 - p_LK).T + np.log(size_L / len(X_DK))
        )
        total_D = np.logaddexp(*joint_DL.T)
        P_DL = np.exp(joint_DL - total_D[:, None])
    return total_D.sum(), P_DL
