"""Which answers address somebody by name? They are right for one person alone, and the user is another.

No list of names is needed: in conversations a name stands where somebody is called, at the beginning of an utterance in
front of a comma or a colon, at its end behind a comma or a greeting, and hardly anywhere else.
"""

import collections

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


def addressing(texts, known):
    """Which utterances call somebody by name.

    Args:
        texts: Utterances as lists of lower-case words; can be iterated twice.
        known: Function of a word: does the model know it? An unknown word that an utterance begins with is taken for a
            name, as `kesroesweyth you could try dpkg`, and so is one in a short utterance, as `hello mernilio`.

    Returns:
        List of booleans.

    >>> texts = ["bob , look", "no , bob !", "yes , a dog", "the dog , and bob , eat", "zork it is", "is zork in ?"]
    >>> addressing([text.split() for text in texts], "bob look no yes a the dog and eat it is".split().__contains__)
    [True, True, False, True, True, True]
    """
    counts, called = collections.Counter(), collections.Counter()
    for words in texts:
        counts.update(set(words))
        called.update({words[place] for place in _calls(words)})
    names = {word for word, n in called.items() if n >= FRACTION * counts[word] and word not in NO_NAMES}

    def addresses(words):
        strange = [word[0].isalpha() and not known(word) for word in words]
        stranger = any(strange[:1] if len(words) > SHORT else strange)
        return stranger or any(words[place] in names for place in _calls(words, inside=True))

    return [addresses(words) for words in texts]


def _calls(words, inside=False):
    """The places where somebody may be called; in an enumeration something else stands between two commas."""
    if len(words) > 2 and words[0][0].isalpha() and words[1] in (",", ":"):
        yield 0
    end = len(words)
    while end and not words[end - 1][0].isalnum():
        end -= 1
    for place in range(2, end) if inside else [end - 1]:
        last = place == end - 1 or words[place + 1] == ","
        if place > 1 and words[place - 1] == "," and words[place][0].isalpha() and last:
            yield place
    if end == 2 and words[0] in GREETINGS and words[1][0].isalpha():
        yield 1
