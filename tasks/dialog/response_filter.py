"""What a bot may say in view of a conversation: it claims nothing that nobody said.

A trained model scores every candidate, also where the user talks of something it never met; then the best candidate may
call a search, or confirm a booking, with values out of thin air. The rules here leave out what cannot be right: of the
correct responses in 150 training and 150 dev dialogs per task of Dialog bAbI, none of tasks 1 to 5 and 4 per cent
of task 6, whose files lack what a search found; of the embedded sample none.
"""

import collections

import numpy as np

from data.corpora.babi_dialog import SILENCE
from data.sequences import stack

CALL = "api_call "
ALTERNATIVES = 3  # words that may stand in the same places of candidates make these words values


class Claims:
    """The values that candidates name.

    Args:
        world: A `tasks.dialog.dataset.World`.
    """

    def __init__(self, world):
        texts = [text.split() for text in world.candidates]
        type_of = {name: type for name, type, _ in world.entities}
        self._calls = {text: number for number, text in enumerate(world.candidates) if text.startswith(CALL)}
        called = {word for text in self._calls for word in text.split()[1:] if not word.startswith("R_")}
        self.searched = {
            type: sorted(word for word in called if type_of.get(word) == type)
            for type in sorted({type_of[word] for word in called if word in type_of})
        }
        """The values that calls name, by their type."""
        others = _interchangeable(texts, type_of)
        self._values = sorted({*type_of, *others, *called})
        number = {value: place for place, value in enumerate(self._values, 1)}
        named = []
        for words in texts:
            by_type = collections.defaultdict(set)
            for word in words:
                by_type[type_of.get(word), word in type_of or word].add(word)
            if words[0] == CALL.strip():
                found = called.intersection(words)
            else:  # three values of one type are named for the user to choose from
                found = {word for same in by_type.values() if len(same) < 3 for word in same}
            named.append([number[word] for word in sorted(found & number.keys())])
        self._named = stack(named)  # (C, K), 0 = padding

    def allowed(self, sentences, understood):
        """Which candidates may follow.

        A call names only values that were named before, and is not made twice before the user says something. Another
        response may name one value that was not named before, which the user may have said in other words; none where
        the user is silent, but for a greeting, or says words that the model does not know.

        Args:
            sentences: What was said and known, `(speaker, text)`, the last one the user's.
            understood: Whether the model knows all words of the last sentence.

        Returns:
            Boolean `(C,)`.
        """
        said = "".join(f"_{word.lower()}" for _, text in sentences for word in text.split())
        known = np.array([True, *(f"_{value.lower()}" in said for value in self._values)])
        unnamed = (~known[self._named]).sum(axis=1)
        silent = len(sentences) > 1 and sentences[-1][1] == SILENCE
        allowed = unnamed <= (0 if silent or not understood else 1)
        calls = list(self._calls.values())
        allowed[calls] = unnamed[calls] == 0
        for speaker, text in reversed(sentences):
            if speaker == "user" and text != SILENCE:
                break
            if speaker == "bot" and text in self._calls:
                allowed[self._calls[text]] = False
        return allowed


def _interchangeable(texts, entities):
    """Words that stand for values without being entities, as days or numbers of people.

    Args:
        texts: Lists of words.
        entities: Words that are left out.

    Returns:
        The words of which at least `ALTERNATIVES` take one another's place in two contexts: what is equal in some texts
        but for one word.

    >>> texts = [f"{day} , noted" for day in ("monday", "friday", "sunday")]
    >>> texts += [f"on {day} at {hour} ?" for day in ("friday", "monday", "sunday") for hour in ("noon", "six")]
    >>> sorted(_interchangeable([text.split() for text in texts], ()))
    ['friday', 'monday', 'sunday']
    """
    contexts = collections.defaultdict(set)
    for words in texts:
        for place, word in enumerate(words):
            if word not in entities:
                contexts[*words[:place], None, *words[place + 1 :]].add(word)
    counts = collections.Counter(frozenset(fills) for fills in contexts.values() if len(fills) >= ALTERNATIVES)
    found = set()
    for fills, count in counts.items():
        for other in counts:
            common = fills & other
            if len(common) >= ALTERNATIVES and (fills != other or count > 1):
                found |= common
    return found
