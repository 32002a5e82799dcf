"""Cleans the pairs of an index, once, when it is built.

A response is left out if it

- has a placeholder, an insult or a command to a bot;
- names a person, or has an unknown word that is probably a name;
- has only common words.

Names and common words are found by their frequencies, not by lists.
"""

import collections
import re

from colloquy.data.tokenizers import spoken_words
from colloquy.data.vocabulary import SPECIALS

MIN_TEXTS = 10_000
"""With fewer distinct texts, no word counts as common or as a name."""
COMMON_FRACTION = 0.005
"""A word is common if at least this fraction of all texts has it."""
RARE_FRACTION = 0.0005
"""A word is rare if at most this fraction of all texts has it."""
NAME_FRACTION = 0.2
"""A rare word is a name if at least this fraction of its texts address somebody by it."""
SHORT_LENGTH = 4
"""A response of at most this many tokens, punctuation included, is short."""
PLACEHOLDER = re.compile(rf"__[a-z]+__|{SPECIALS[1].lower()}")
"""A lower-case word in place of a removed path, an address or an unknown word."""
BOT_COMMAND = re.compile(r"^! \w|\B! \S+(?: \S+)? [|>] ")
"""A command to a bot, such as `! wifi`, or one whose reply the bot sends to somebody:
`! info wifi | bob`. Tokens are joined by spaces."""
CRUDE_WORD = re.compile(
    r"(?:bull|dip|horse)?shit(?:s|ty|head)?|(?:mother)?f[u*]ck\w*|wtf|stfu|gtfo|(?:dumb|jack)?ass"
    r"|assholes?|arseholes?|bastards?|bitch(?:es|y|ing)?|cocksuckers?|cunts?|dickheads?"
    r"|fag(?:got)?s?|idiots?|morons?|nigg\w+|pricks?|pussy|retard(?:s|ed)?"
    r"|sluts?|twats?|wankers?|whores?"
)
"""An insult. Its frequency does not reveal it, so this is the only list of words here."""


def clean_pairs(pairs, words_by_text, known_words):
    """Returns the pairs whose response fits other conversations, too.

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
    """Returns the common words, then the names, in lower case; both sets are empty with fewer than
    `MIN_TEXTS` texts.
    """
    num_texts = len(words_by_text)
    if num_texts < MIN_TEXTS:
        return set(), set()
    # The number of texts that have a word, and of those that address somebody by it.
    texts_with = collections.Counter()
    texts_addressing = collections.Counter()
    for words in words_by_text.values():
        lower_words = [word.lower() for word in words]
        texts_with.update(set(lower_words))
        texts_addressing.update(set(_addressed_words(lower_words)))
    common_words = set()
    names = set()
    for word, count in texts_with.items():
        if count >= COMMON_FRACTION * num_texts:
            common_words.add(word)
        is_rare = count <= RARE_FRACTION * num_texts
        if is_rare and texts_addressing[word] >= NAME_FRACTION * count:
            names.add(word)
    return common_words, names


def _addressed_words(words):
    """The words by which a text may address somebody.

    They are the first word before a comma or a colon, and the last word after a comma.

    >>> _addressed_words("bob : try it , bill !".split())
    ['bob', 'bill']
    """
    addressed = []
    if len(words) > 2 and words[1] in (",", ":"):
        addressed.append(words[0])
    # Leave out the punctuation at the end.
    while words and not words[-1][:1].isalnum():
        words = words[:-1]
    if len(words) > 2 and words[-2] == ",":
        addressed.append(words[-1])
    return [word for word in addressed if word[:1].isalpha()]


def _is_answer(words, common_words, names, known_words):
    lower_words = [word.lower() for word in words]
    if any(PLACEHOLDER.fullmatch(word) or CRUDE_WORD.fullmatch(word) for word in lower_words):
        return False
    if not names.isdisjoint(lower_words) or BOT_COMMAND.search(" ".join(lower_words)):
        return False
    # An unknown word is probably a name if it comes first or the response is short.
    must_be_known = words if len(words) <= SHORT_LENGTH else words[:1]
    if any(word[:1].isalpha() and word not in known_words for word in must_be_known):
        return False
    # This also leaves out a response without any word, such as `! ! !`.
    return not common_words.issuperset(spoken_words(lower_words))
