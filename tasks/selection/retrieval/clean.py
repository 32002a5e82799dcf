"""Cleans the pairs of an index, once, when it is built.

Logs of a channel address people, mask addresses and say "ok" ten thousand times. Such a response
suits one person or any question, so it is no answer. It is found by where and how often its words
are said, without lists of names or of empty words.
"""

import collections
import re

from colloquy.data.tokenizers import spoken_words
from colloquy.data.vocabulary import SPECIALS

MANY_TEXTS = 10_000
"""Distinct texts from which the numbers below tell names and common words from others."""
COMMON = 0.005
"""A word is common if at least this fraction of all texts has it."""
NAME = 0.2
"""A rare word is a name if at least this fraction of its texts address somebody by it."""
RARE = 0.0005
"""A word is rare if at most this fraction of all texts has it."""
SHORT = 4
"""In a response of at most this many words, the model must know each of them."""
PLACEHOLDER = re.compile(rf"__[a-z]+__|{SPECIALS[1].lower()}")
"""A word in place of a removed path or address."""
BOT_COMMAND = re.compile(r"^! \w|\B! \S+(?: \S+)? [|>] ")
"""A command to a bot, such as `! wifi`, or to have it address somebody: `! info wifi | bob`."""
CRUDE_WORD = re.compile(
    r"(?:bull|dip|horse)?shit(?:s|ty|head)?|(?:mother)?f[u*]ck\w*|wtf|stfu|gtfo|(?:dumb|jack)?ass"
    r"|assholes?|arseholes?|bastards?|bitch(?:es|y|ing)?|cocksuckers?|cunts?|dickheads?"
    r"|fag(?:got)?s?|idiots?|morons?|nigg\w+|pricks?|pussy|retard(?:s|ed)?"
    r"|sluts?|twats?|wankers?|whores?"
)
"""An insult: the one list, since no number tells it from other words."""


def clean_pairs(pairs, words_by_text, known_words):
    """Returns the pairs whose response can be an answer to somebody else.

    Args:
        pairs: Dicts of `text` and `context`, see `build.read_pairs`.
        words_by_text: `{text: words}` of all turns.
        known_words: The words that the model knows.
    """
    common_words, names = _common_words_and_names(words_by_text)
    responses = {pair["text"] for pair in pairs}
    answers = set()
    for text in responses:
        if _is_answer(words_by_text[text], common_words, names, known_words):
            answers.add(text)
    return [pair for pair in pairs if pair["text"] in answers]


def _common_words_and_names(words_by_text):
    """Two sets of words; both are empty where texts are too few to tell."""
    num_texts = len(words_by_text)
    if num_texts < MANY_TEXTS:
        return set(), set()
    texts_by_word = collections.Counter()
    calls_by_word = collections.Counter()
    for words in words_by_text.values():
        texts_by_word.update(set(words))
        calls_by_word.update(set(addressed_words(words)))
    common_words = set()
    names = set()
    for word, count in texts_by_word.items():
        if count >= COMMON * num_texts:
            common_words.add(word)
        if count <= RARE * num_texts and calls_by_word[word] >= NAME * count:
            names.add(word)
    return common_words, names


def addressed_words(words):
    """The words by which a text may address somebody.

    They are the first word before a comma or a colon, and the last word after a comma.

    >>> addressed_words("bob : try it , bill !".split())
    ['bob', 'bill']
    """
    spoken_places = [place for place, word in enumerate(words) if word[:1].isalnum()]
    addressed = []
    if len(words) > 2 and words[1] in (",", ":"):
        addressed.append(words[0])
    if spoken_places and spoken_places[-1] > 1 and words[spoken_places[-1] - 1] == ",":
        addressed.append(words[spoken_places[-1]])
    return [word for word in addressed if word[:1].isalpha()]


def _is_answer(words, common_words, names, known_words):
    lower_words = [word.lower() for word in words]
    if any(PLACEHOLDER.fullmatch(word) or CRUDE_WORD.fullmatch(word) for word in lower_words):
        return False
    if not names.isdisjoint(lower_words) or BOT_COMMAND.search(" ".join(lower_words)):
        return False
    # The model knows the first word, and all words of a short text. Elsewhere an unknown word is
    # rarely a name.
    exposed = words if len(words) <= SHORT else words[:1]
    if any(word[:1].isalpha() and word not in known_words for word in exposed):
        return False
    return not common_words.issuperset(spoken_words(lower_words))
