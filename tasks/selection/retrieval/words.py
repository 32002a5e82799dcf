"""Words by which responses are unfit: those without content, and crude ones."""

import re

FILLERS = frozenset(
    """
    a about actually again ah aha ahh ahhh all already alright also always am an and another any
    anything anyway are aren't as at aw aww aye bah be because been being bit but by bye can can't
    cant cheers could couldn't cool cos damn did didn't didnt do does doesn't doesnt doing don't
    done dont dunno eh either er erm ever every everything exactly fair few fine for from get gets
    getting go goes going good got gotcha gotta great ha had hah haha hahaha has hasn't have haven't
    having he heh hehe hello her here hey hi him his hm hmm hmmm how huh i i'd i'll i'm i've id idk
    if ill im in indeed interesting into is isn't isnt it it'll it's its ive just k kinda know like
    lmao lol lot made make many may maybe me mean meh might mine mm mmm more most much must my nah
    neat never nice no noone nope nor not nothing now nvm of off oh ohh ok okay okey oki on one only
    oops or other ouch our out over perhaps please pls possibly pretty probably quite rather really
    right rofl same say see seems shall she should shouldn't so some somehow someone something
    sometimes somewhere sorry sort sry still such sure ta than thank thanks that that's thats the
    their them then there there's theres they they're thing things think this those thought thx tho
    though to too true u uh uhm um up ur us very was wasn't way we we'll we're we've welcome well
    were what what's whatever whats when where which who whoa why will with won't wont would
    wouldn't wow ya yah yay yea yeah yep yes yet yo you you'd you'll you're you've your youre yup
    """.split()
)
"""Interjections, pronouns, auxiliaries and the like, lower-case."""

CRUDE_WORD = re.compile(
    r"(?:bull|dip|horse)?shit(?:s|ty|head)?|(?:mother)?f[u*]ck\w*|wtf|stfu|gtfo|(?:dumb|jack)?ass"
    r"|assholes?|arseholes?|bastards?|bitch(?:es|y|ing)?|cocksuckers?|cunts?|dickheads?"
    r"|fag(?:got)?s?|idiots?|morons?|nigg\w+|pricks?|pussy|retard(?:s|ed)?"
    r"|sluts?|twats?|wankers?|whores?"
)
"""A crude word or an insult, lower-case."""
CRUDE_CHINESE = re.compile("傻[逼屄比]|煞笔|操你|他妈的|他媽的|贱人|賤人|混蛋|王八蛋|狗屎")
"""One in a Chinese text without spaces."""


def has_content(words):
    """Whether a text has a word that is no filler.

    >>> has_content(["ok", "...", "idk"]), has_content(["sudo", "reboot"])
    (False, True)
    """
    for word in words:
        is_word = any(character.isalnum() for character in word)
        if is_word and word.lower() not in FILLERS:
            return True
    return False


def is_crude(words):
    """Whether a text has a crude word or an insult.

    >>> is_crude("you are an Idiot".split()), is_crude("assign it".split())
    (True, False)
    """
    if any(CRUDE_WORD.fullmatch(word.lower()) for word in words):
        return True
    return CRUDE_CHINESE.search("".join(words)) is not None
