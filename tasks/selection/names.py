"""Which answers address somebody by name? They are right for one person alone, and the user is another.

No list of names is needed: in conversations a name stands where somebody is called, at the beginning of an utterance in
front of a comma or a colon, at its end after a comma or a greeting, and hardly anywhere else.
"""

import numpy as np

PART = 20_000
"""Utterances that are looked at at once."""
FRACTION = 0.2
"""A word is a name where this fraction of the utterances that have it call somebody by it."""
SHORT = 4
"""An utterance of at most so many words is no answer if the model does not know one of them."""
GREETINGS = frozenset(("hi", "hello", "hey", "bye", "thanks", "thx", "welcome"))
NO_NAMES = frozenset(
    """a ah ahh aha alright also alternatively and anyhow anyway aw aww aye bah basically besides btw but bye c'mon
    cheers cool correct damn dang darn dude dunno eh er err exactly fair fine first firstly frankly fwiw gee geez good
    goodbye goodnight gosh great ha haha hah heh hehe hello hey hi hm hmm hmmm howdy however hrm huh hum imho imo indeed
    jeez k lol look ma'am madam man maybe meh mm mmm nah naw nay nice no nope not np now obviously oh ohh ok okay oki
    ooh oops or ouch perhaps phew please pls right see seriously sir so sorry sry still sure thank thanks then therefore
    thx true uh uhm um unfortunately wait well whatever whoa why wow ya yah yay yea yeah yeh yep yes yo yup""".split()
)
"""Interjections and the like, which stand where names do."""


def addressing(texts, words, known):
    """Which utterances call somebody by name.

    Args:
        texts: Utterances, `data.sequences.Sequences` of the places of their words in `words`.
        words: Lower-case words.
        known: Function of a word: does the model know it? An unknown word that an utterance begins with is taken for a
            name, as `kesroesweyth you could try dpkg`, and so is one in a short utterance, as `hello mernilio`.

    Returns:
        bool `(texts,)`.
    """
    kinds = _kinds(words)
    counts, called = np.zeros(len(words), np.int64), np.zeros(len(words), np.int64)
    for part in texts.parts(PART):
        for ids, total in ((part.ids, counts), (np.where(_calls(part, kinds), part.ids, -1), called)):
            text = np.repeat(np.arange(len(part)), part.lengths)[ids >= 0]
            distinct = np.unique(text * len(words) + ids[ids >= 0])
            total += np.bincount(distinct % len(words), minlength=len(words))
    never = np.array([word in NO_NAMES for word in words], bool)
    names = (called > 0) & (called >= FRACTION * counts) & ~never
    strange = kinds["alphabetic"] & ~np.array([known(word) for word in words], bool)
    found = [
        _any(part, strange[part.ids] & ((_places(part) == 0) | (part.lengths <= SHORT).repeat(part.lengths)))
        | _any(part, names[part.ids] & _calls(part, kinds, inside=True))
        for part in texts.parts(PART)
    ]
    return np.concatenate([np.zeros(0, bool), *found])


def _kinds(words):
    """What each word is: `{kind: bool (words,)}`."""
    return {
        "alphabetic": np.array([word[:1].isalpha() for word in words], bool),
        "alphanumeric": np.array([word[:1].isalnum() for word in words], bool),
        "comma": np.array([word == "," for word in words], bool),
        "colon": np.array([word == ":" for word in words], bool),
        "greeting": np.array([word in GREETINGS for word in words], bool),
    }


def _calls(part, kinds, inside=False):
    """The words by which somebody may be called, bool as `part.ids`.

    Args:
        inside: Also between two commas; in an enumeration something else stands there.
    """
    place, length = _places(part), part.lengths.repeat(part.lengths)
    is_ = {kind: flags[part.ids] for kind, flags in kinds.items()}
    before = {kind: np.roll(flags, 1) & (place > 0) for kind, flags in is_.items()}
    after = {kind: np.roll(flags, -1) & (place < length - 1) for kind, flags in is_.items()}
    ends = np.zeros(len(part), np.int64)  # after the last word that is no sign
    text = np.repeat(np.arange(len(part)), part.lengths)
    np.maximum.at(ends, text[is_["alphanumeric"]], place[is_["alphanumeric"]] + 1)
    end = ends[text]
    first = (place == 0) & (length > 2) & (after["comma"] | after["colon"])
    last = (place > 1) & before["comma"] & ((place == end - 1) | (inside & (place < end) & after["comma"]))
    greeted = (place == 1) & (end == 2) & before["greeting"]
    return is_["alphabetic"] & (first | last | greeted)


def _places(part):
    """The place of each word in its utterance."""
    return np.arange(len(part.ids)) - (np.cumsum(part.lengths) - part.lengths).repeat(part.lengths)


def _any(part, flags):
    """Whether a flag is set in each utterance."""
    return np.bincount(np.repeat(np.arange(len(part)), part.lengths)[flags], minlength=len(part)) > 0
