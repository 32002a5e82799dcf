"""What the user wishes, and restaurants as fields: what a page shows of a conversation."""

from colloquy.base.config import Config


class Mention(Config):
    """A sentence in which the user named a value."""

    sentence: int
    """Its place in the history."""
    without: str
    """Its words without the value, as the model reads them."""


class Wish(Config):
    """The value that the user named last for a slot."""

    slot: str
    """A type of values that the bot searches by, such as `cuisine`."""
    value: str
    mentions: list[Mention]
    """The sentences that name the value, since another one was named."""


class Restaurant(Config):
    """A restaurant of the knowledge base; what it does not say is left out."""

    name: str
    cuisine: str | None = None
    location: str | None = None
    number: str | None = None
    """Number of people."""
    price: str | None = None
    rating: int | None = None
    """Number of stars."""
    address: str | None = None
    phone: str | None = None
    post_code: str | None = None


def find_wishes(domain, sentences):
    """Finds the user's last wish for each slot, in the order of the slots.

    Args:
        domain: `tasks.dialog.domain.Domain`.
        sentences: `(place in the history, words)` of each sentence of the user.
    """
    wishes = {}
    for place, words in sentences:
        pairs = domain.link(words)
        for number, (_, entities) in enumerate(pairs):
            for slot, value in _named_values(domain, entities):
                _note(wishes, slot, value, place, _join_without(pairs, number))
    return [wishes[slot] for slot in domain.slot_values if slot in wishes]


def _named_values(domain, entities):
    """Yields `(slot, value)` of entities, numbers, that a search can name."""
    for number in entities:
        name, entity_type, _ = domain.entities[number]
        if name in domain.slot_values.get(entity_type, ()):
            yield entity_type, name


def _note(wishes, slot, value, place, without):
    mention = Mention(sentence=place, without=without)
    former = wishes.get(slot)
    mentions = [mention]
    if former is not None and former.value == value:
        mentions = [*former.mentions, mention]
    wishes[slot] = Wish(slot=slot, value=value, mentions=mentions)


def _join_without(pairs, number):
    """The words of a sentence without those of its `number`-th pair from `Domain.link`."""
    words = []
    for i, (words_of_pair, _) in enumerate(pairs):
        if i != number:
            words += words_of_pair
    return " ".join(words)


class Restaurants:
    """The restaurants of a `tasks.dialog.domain.Domain`, found by what sentences name."""

    def __init__(self, domain):
        self.all = make_restaurants(domain.knowledge)
        self._by_name = {restaurant.name: restaurant for restaurant in self.all}
        # A phone number belongs to one restaurant, a cuisine to many.
        self._names_by_value = {}
        for name, relation, value in domain.knowledge:
            is_shared = relation.removeprefix("R_") in {*domain.slot_values, "rating"}
            if not is_shared:
                self._names_by_value.setdefault(value, set()).add(name)

    def named_in(self, texts):
        """The restaurants that texts name, also by an address or the like that is theirs alone."""
        names = {}  # as an ordered set
        for text in texts:
            for word in text.split():
                owners = self._names_by_value.get(word, set())
                if word in self._by_name:
                    names[word] = None
                elif len(owners) == 1:
                    names.update(dict.fromkeys(owners))
        return [self._by_name[name] for name in names]


def make_restaurants(facts):
    """Makes the `Restaurant`s that facts, `(name, relation, value)`, are about, in their order.

    >>> facts = [("prezzo", "R_price", "cheap"), ("prezzo", "R_rating", "4")]
    >>> [restaurant] = make_restaurants(facts)
    >>> restaurant.name, restaurant.price, restaurant.rating
    ('prezzo', 'cheap', 4)
    """
    fields_by_name = {}
    for name, relation, value in facts:
        fields = fields_by_name.setdefault(name, {"name": name})
        field = relation.removeprefix("R_")
        if field == "rating" and not value.isdecimal():
            continue
        if field in Restaurant.model_fields and field != "name":
            fields[field] = int(value) if field == "rating" else value
    return [Restaurant(**fields) for fields in fields_by_name.values()]
