"""The response filter: a bot claims nothing that nobody said.

A trained model scores every candidate, also where the user talks of something it never met; then the best candidate may
call a search, or confirm a booking, with values out of thin air. The rules here leave out what cannot be right: of the
correct responses in 150 training and 150 dev dialogs per task of Dialog bAbI, none of tasks 1 to 5 and 4 per cent
of task 6, whose files lack what a search found; of the embedded sample none.
"""

import collections
import itertools

import numpy as np

from data.corpora.babi_dialog import SILENCE
from data.sequences import stack
from tasks.dialog.prepare import CALL

ALTERNATIVES = 3  # words that may stand in the same places of candidates make these words values


class ResponseFilter:
    """Finds the candidates that may follow a conversation.

    Args:
        world: A `tasks.dialog.data.World`.

    Attributes:
        searched: `{type: values}`, the values that calls name.
    """

    def __init__(self, world):
        type_of = {name: type for name, type, _ in world.entities}
        texts = [text.split() for text in world.candidates]
        self._calls = {text: number for number, text in enumerate(world.candidates) if text.startswith(CALL)}
        called = {word for text in self._calls for word in text.split()[1:] if not word.startswith("R_")}
        pairs = sorted((type_of[word], word) for word in called if word in type_of)
        self.searched = {type: [word for other, word in pairs if other == type] for type, _ in pairs}
        self._values = sorted({*type_of, *called, *_interchangeable(texts, type_of)})
        number_of = {value: number for number, value in enumerate(self._values, 1)}
        named = []
        for words in texts:
            values = number_of.keys() & words
            if words[0] == CALL.strip():
                values &= called
            else:  # three values of one type are named for the user to choose from
                counts = collections.Counter(type_of.get(value) for value in values)
                values = {value for value in values if value not in type_of or counts[type_of[value]] < 3}
            named.append([number_of[value] for value in values])
        self._named = stack(named)  # (C, K), 0 = padding

    def allowed(self, sentences, understood):
        """Candidates that may follow, boolean `(C,)`.

        A call names only values that were named before, and is not made twice before the user says something. Another
        response may name one value that was not named before, which the user may have said in other words; none where
        the user is silent, but for a greeting, or says words that the model does not know.

        Args:
            sentences: What was said and known, `(speaker, text)`, the last one the user's.
            understood: Whether the model knows all words of the last sentence.
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

    At least `ALTERNATIVES` of them take one another's place in two contexts, where texts are equal but for one word.

    Args:
        texts: Lists of words.
        entities: Words that are left out.

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
    counts = collections.Counter(frozenset(words) for words in contexts.values() if len(words) >= ALTERNATIVES)
    found = set()
    for one, other in itertools.combinations_with_replacement(counts, 2):
        if len(one & other) >= ALTERNATIVES and (one != other or counts[one] > 1):
            found |= one & other
    return found
