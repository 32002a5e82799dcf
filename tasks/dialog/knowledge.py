"""What an `api_call` of a bot finds in its knowledge base."""

NO_RESULT = "api_call no result"


def search(world, call):
    """What an `api_call` finds: all facts about the subjects that have every value the call names.

    Words that are no value of the knowledge base, as `R_price` for "any price", ask for nothing if they stand for a
    relation; any other makes the search fail.

    Args:
        world: A `tasks.dialog.dataset.World`.
        call: The bot's text.

    Returns:
        List of facts as texts, or `api_call no result` alone.
    """
    wanted = [word for word in call.split()[1:] if not word.startswith("R_")]
    values = {}
    for subject, _, value in world.knowledge:
        values.setdefault(subject, set()).add(value)
    found = {subject for subject, has in values.items() if has.issuperset(wanted)}
    return [" ".join(fact) for fact in world.knowledge if fact[0] in found] or [NO_RESULT]
