"""The knowledge base of a dialog bot, and the calls that search it."""

import collections
import itertools
from typing import NamedTuple

CALL = "api_call "
"""The beginning of a response that searches the knowledge base: `api_call thai west R_price`."""
NO_RESULT = "api_call no result"
"""The fact after a call that finds nothing, as the corpus writes it. It is no call itself."""


def is_call(response):
    return response.startswith(CALL)


def find_facts(knowledge, call):
    """Finds all facts about the subjects that have every value of a call.

    A word `R_price` of the call means any price.

    Returns:
        The facts as texts; `[NO_RESULT]` if there are none.
    """
    wanted = {word for word in call.split()[1:] if not word.startswith("R_")}
    values_by_subject = group_values(knowledge)
    facts = [" ".join(fact) for fact in knowledge if wanted <= values_by_subject[fact.subject]]
    return facts or [NO_RESULT]


def group_values(knowledge):
    """Returns `{subject: values of its facts}`, in the order of the knowledge base."""
    values_by_subject = collections.defaultdict(set)
    for fact in knowledge:
        values_by_subject[fact.subject].add(fact.value)
    return values_by_subject


# === Calls of the training dialogs ===


class FactCounts(NamedTuple):
    """Numbers of facts of a call."""

    in_dialog: int
    found: int


def find_unrepeatable_calls(dialogs, knowledge):
    """Finds the calls after which a dialog has other facts than a search finds.

    A bot that makes such a call goes on with other facts than in its training dialogs.

    Returns:
        `{call: FactCounts}`.
    """
    found_by_call = {}
    unrepeatable = {}
    for turns in dialogs:
        for place, turn in enumerate(turns):
            if turn.speaker != "bot" or not is_call(turn.text):
                continue
            facts = _facts_after(turns, place)
            # A dialog may end with its call, as in tasks 1 and 2: there is nothing to compare.
            if not facts:
                continue
            call = turn.text
            if call not in found_by_call:
                found_by_call[call] = find_facts(knowledge, call)
            found = found_by_call[call]
            if set(facts) != set(found):
                unrepeatable[call] = FactCounts(_count(facts), _count(found))
    return unrepeatable


def _facts_after(turns, place):
    """Returns the facts between the turn at a place and the next sentence of user or bot."""
    following = itertools.takewhile(lambda turn: turn.speaker == "fact", turns[place + 1 :])
    return [turn.text for turn in following]


def _count(facts):
    return 0 if facts == [NO_RESULT] else len(facts)
