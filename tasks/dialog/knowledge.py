"""The knowledge base of a dialog bot, and the calls that search it."""

import collections

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
