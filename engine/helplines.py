# ruff: noqa: RUF001 Chinese punctuation
"""The reply to a person who writes of hurting or killing themselves.

Chats give this reply in place of the model's, from the first such text to the end of the
conversation.

A text is recognized by a short list of phrases, so the same thing said in other words is missed.
Phrases in which people exaggerate, such as "this game is killing me", are not in the list.
"""

import re
from collections.abc import Sequence

from colloquy.data.tokenizers import normalize

ENGLISH_REPLY = (
    "What you write sounds serious, and you do not have to be alone with it. I am only a program "
    "and cannot help you, but people can. If you are in danger now, please call your local "
    "emergency number. findahelpline.com lists helplines by country, to call or to write to."
)
CHINESE_REPLY = (
    "您说的话听起来很严重，您不必独自承受。我只是一个程序，帮不了您，但是有人可以。"
    "如果您现在有危险，请拨打急救电话120或报警电话110。在中国大陆可以拨打全国统一心理援助热线12356，"
    "其他国家和地区的热线见 findahelpline.com。"
)
REPLIES = (ENGLISH_REPLY, CHINESE_REPLY)

# Only the last characters of a long text are searched.
SEARCHED_CHARACTERS = 5_000

# === English ===

_ADVERBS = r"(?:(?:also|always|honestly|just|often|only|really|so|sometimes|still) )*"
# Words of an intention, before `_HARM`.
_WANT = (
    r"(?:want to|wanna|going to|gonna|will|should|might|need to|plan to|planning to|ready to"
    r"|about to|feel like|thinking (?:of|about)|think (?:of|about)|thought (?:of|about)"
    r"|thoughts of|urge to|started|keep)"
)
_HARM = (
    r"(?:(?:hurt|harm|cut|burn|hang|shoot|drown|starve)(?:ting|ing|ning)? myself"
    r"|slit(?:ting)? my wrists?|(?:take|taking) an overdose|overdos(?:e|ing)"
    r"|jump(?:ing)? off (?:a|the) (?:bridge|building|roof))"
)
# Amounts of `_MEDICINE`: ten or more, or all that there is. "i took two paracetamol" is no alarm.
_TOO_MANY = (
    r"(?:[1-9]\d+|ten|eleven|twelve|(?:thir|four|fif|six|seven|eigh|nine)teen|twenty|thirty|forty"
    r"|fifty|sixty|a hundred|too many|all (?:of )?(?:my|the|his|her)|all those"
    r"|a (?:whole )?(?:bottle|box|bunch|handful|pack|packet) of)"
)
_MEDICINE = (
    r"(?:pills?|tablets?|capsules?|painkillers?|sleeping|antidepressants?|medication|meds|paracetamol"
    r"|tylenol|acetaminophen|ibuprofen|aspirin|advil|xanax|valium|benzos)"
)
# The end of a sentence or of a part of it.
_END = r"(?= *(?:$|[.,;:!?]))"
# Patterns for lower-case text with straight apostrophes, as `normalize` returns it. A repetition
# such as {0,60} has a bound, so that the search of a long text stays fast.
ENGLISH_PHRASES = (
    r"\bkill myself(?! (?:laughing|with laughter))",
    rf"\b{_WANT} (?:be )?killing myself",
    r"\bunalive myself",
    # The last part excludes, for example, "I want to cut myself some slack".
    rf"\bi\b[^.!?]{{0,60}}\b{_WANT} {_HARM}(?! (?:a |off\b|shaving|some slack|short))",
    r"\bi\b[^.!?]{0,60}\bself[- ]harm",
    r"\b(?:i|i'm|im) (?:[a-z]+ ){0,3}suicidal",
    r"\bi\b(?: [a-z']+){0,5} commit suicide",
    r"\b(?:thinking|think|thoughts|thought) (?:of|about) suicide",
    rf"(?:^|\bi ){_ADVERBS}(?:want to|wanna) die(?! (?:for|laughing|my|of)\b)",
    r"\b(?:i|just) wish (?:i|that i) (?:was|were) dead",
    rf"\b(?:i'd|i would) rather (?:be dead|die){_END}",
    r"\bi(?: do not|'d rather not| don't| dont) (?:want to|wanna) "
    r"(?:live|exist|be alive|go on living)"
    rf"(?:{_END}| any ?more| any longer)",
    r"\b(?:end|ending|take|taking) my own life",
    rf"\b(?:end|ending|take|taking) my life{_END}",
    rf"\bi\b[^.!?]{{0,60}}\b{_WANT} end it all",
    rf"\b(?:no reason|nothing|nothing left|not worth) (?:to live|to live for|living){_END}",
    r"\bi(?:'ve| have)?(?: just| already)? (?:took|taken|swallowed|ate|downed) "
    rf"{_TOO_MANY} (?:[a-z]+ )?{_MEDICINE}\b",
    r"\b(?:i'm|i am|i'd be|i would be|everyone is|everyone would be) better off "
    r"(?:dead|without me)",
)

# === Chinese ===

# Patterns for text without spaces. The parts in (?<!...) and (?!...) exclude exaggerations, such as
# 累得想死 (dead tired) and 想死你了 (I miss you).
CHINESE_PHRASES = (
    r"(?<![不没沒得])想(?:去)?死(?![你您他她它我妈爸])",
    r"不想(?:再)?活(?![在成得动動])",
    r"[想要](?:去)?自[杀殺尽盡]",
    r"(?:打算|考虑|考慮|准备|準備)自[杀殺]",
    r"我[^。！？]{0,40}[想要](?:轻生|輕生|割腕|跳楼|跳樓|上吊|自残|自殘)",
    r"我[^。！？]{0,40}(?:自残|自殘)",
    r"(?:轻生|輕生|自[杀殺])的(?:念头|念頭|想法|冲动|衝動)",
    r"[结結]束(?:我的|自己的|我自己的)(?:生命|性命)",
    r"[想要]伤害(?:我)?自己|[想要]傷害(?:我)?自己",
    r"我[^。！？]{0,40}活不下去",
    r"活着(?:真)?没(?:有)?(?:什么)?(?:意思|意义)|活著(?:真)?沒(?:有)?(?:什麼)?(?:意思|意義)",
    r"不如死了|死了算了",
)

# === Replies ===

_ENGLISH = re.compile("|".join(ENGLISH_PHRASES))
_CHINESE = re.compile("|".join(CHINESE_PHRASES))


def helpline_reply(text: str) -> str | None:
    """The reply to a text that has one of the phrases; `None` for any other text.

    >>> helpline_reply("Nobody would care. I want to die!") == ENGLISH_REPLY
    True
    >>> helpline_reply("I'd die for a pizza") is None
    True
    """
    text = normalize(text[-SEARCHED_CHARACTERS:])
    if _ENGLISH.search(text):
        return ENGLISH_REPLY
    if _CHINESE.search(text.replace(" ", "")):
        return CHINESE_REPLY
    return None


def helpline_of_conversation(
    user_texts: Sequence[str], bot_texts: Sequence[str] = ()
) -> str | None:
    """The reply to a conversation in which any text of the user has one of the phrases.

    Args:
        user_texts: The texts of the user, the oldest first. The newest with a phrase decides the
            language of the reply.
        bot_texts: The texts of the bot. The first that is in `REPLIES` is repeated.

    Returns:
        The reply; `None` for any other conversation.

    >>> helpline_of_conversation(["I want to die", "i mean it, tonight"]) == ENGLISH_REPLY
    True
    """
    for text in bot_texts:
        if text in REPLIES:
            return text
    for text in reversed(user_texts):
        reply = helpline_reply(text)
        if reply is not None:
            return reply
    return None


def helpline_of_turns(turns: Sequence[str]) -> str | None:
    """Like `helpline_of_conversation`, for turns of two speakers; the last one is the user's.

    Empty turns at the end are padding or were sent by the user: both readings count.
    """
    without_padding = list(turns)
    while len(without_padding) > 1 and not normalize(without_padding[-1]).strip():
        without_padding.pop()
    user_texts = [*_every_second(turns), *_every_second(without_padding)]
    # One of `REPLIES` counts in any turn before the last, also in one of the user's.
    return helpline_of_conversation(user_texts, bot_texts=turns[:-1])


def _every_second(turns):
    """The last turn and every second one before it, in their order."""
    return turns[(len(turns) - 1) % 2 :: 2]
