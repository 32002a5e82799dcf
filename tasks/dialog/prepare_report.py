"""What the preparation of dialogs reports: numbers, examples, and notes on its tasks."""

import functools
import itertools

from colloquy.data.report import choose_examples, shorten
from colloquy.tasks.dialog.domain import SPLITS
from colloquy.tasks.dialog.knowledge import NO_RESULT, find_facts, is_call


def print_tasks(statistics_of_tasks):
    """Prints a line for each task, `{name: statistics}`."""
    for name, statistics in statistics_of_tasks.items():
        dialogs = [
            f"{statistics[split]['dialogs']:,} {split}" for split in SPLITS if split in statistics
        ]
        print(
            f"{name}: {statistics['candidates']:,} candidates, {statistics['vocabulary']:,} words, "
            f"dialogs: {', '.join(dialogs)}"
        )


def show_examples(dialogs, vocabulary):
    """The examples of the report: dialogs of train up to their last response.

    Unknown words are in brackets.
    """

    def show(number):
        turns = dialogs[number]
        last = max(place for place, turn in enumerate(turns) if turn.speaker == "bot")
        texts = [vocabulary.in_brackets(turn.text.split()) for turn in turns[: last + 1]]
        return " / ".join(texts[:-1]), texts[-1]

    return choose_examples(len(dialogs), show)


def note_unknown_words(name, vocabulary, candidates, knowledge, report):
    """Notes words of a bot's candidates and facts that a known vocabulary lacks."""
    texts = [*candidates, *(" ".join(fact) for fact in knowledge)]
    unknown = sorted(set(" ".join(texts).split()).difference(vocabulary.words))
    if unknown:
        report.note(
            f"{name}: --vocabulary_of lacks words of its candidates and facts, so a bot that is "
            f"trained on it reads them as unknown words: {shorten(unknown)}"
        )


def note_unrepeatable_calls(name, dialogs, knowledge, report):
    """Notes the number of calls after which train has other facts than a search finds.

    A bot that makes such a call continues with other facts than in its training dialogs.
    """
    search = functools.cache(functools.partial(find_facts, knowledge))
    unrepeatable = {}
    for turns in dialogs:
        for place, turn in enumerate(turns):
            if turn.speaker != "bot" or not is_call(turn.text):
                continue
            following = itertools.takewhile(lambda turn: turn.speaker == "fact", turns[place + 1 :])
            facts = [fact.text for fact in following]
            # A dialog may end with its call, as in tasks 1 and 2: there is nothing to compare.
            if facts and set(facts) != set(search(turn.text)):
                unrepeatable[turn.text] = facts
    if unrepeatable:
        call, facts = next(iter(unrepeatable.items()))
        report.note(
            f"{name}: {len(unrepeatable):,} calls of train find other facts in the knowledge base, "
            f"such as {call}: {_count(facts)} facts in the dialog, {_count(search(call))} in the "
            "knowledge base"
        )


def _count(facts):
    return 0 if facts == [NO_RESULT] else len(facts)
