"""The responses from which a model answers: those of an index, or a list.

`IndexedResponses` and `ListedResponses` have the same attributes and methods.
"""

import itertools
import re

from colloquy.base.files import UserError
from colloquy.data.tokenizers import TOKENIZERS, WHITESPACE, apply_rules
from colloquy.tasks.selection.retrieval.index import Hit, RetrievalIndex

# Responses of an index that the model ranks. Answers are as good with 25, with 50 and with 100, see
# docs/retrieval.md.
CANDIDATES = 32
# Two texts are near-duplicates if at least this fraction of their words is common to both.
DUPLICATE_FRACTION = 0.8
# Commands, paths and addresses in the logs of #ubuntu: people write no spaces in them.
JOINED_TOKENS = re.compile(
    r"\bppa : \S+ / \S+"  # ppa:ondrej/php5
    r"|(?<!\d)\d+(?: : \d+)+"  # 10:30
    r"|~ / [\w.-]+"  # ~/Desktop
    r"|(?<!\S)/ [\w.-]+(?: / [\w.-]+)+"  # /etc/fstab
    r"|(?<!\S)\S+ @ [\w-]+\.\w+"  # me@ubuntu.com
    r"|\* \. \w+"  # *.deb
    r"|- - [a-z]{2}"  # the beginning of --configure
    r"|& &|\| \|"  # && and ||
)
# Replacements: no spaces inside of <name>, `command` and 'command'.
QUOTES = (
    (r"< ([a-z][\w -]*) >", r"<\1>"),
    (r"(?<!\S)([`']) ([^`']+) \1", r"\1\2\1"),
)


class IndexedResponses:
    """The responses of an index, of which a search finds candidates for a conversation.

    Args:
        path: Directory of the index.
        vocabulary: `data.vocabulary.Vocabulary` of the model.
    """

    def __init__(self, path, vocabulary):
        self.index = RetrievalIndex(path, vocabulary)
        self.num_responses = self.index.size
        self.num_candidates = CANDIDATES

    def find(self, turns):
        """The candidates for a conversation, the first `CANDIDATES` `Hit`s of a search.

        A hit that nearly repeats a better hit or a turn is left out.
        """
        words_of_turns = [self.index.text.words(turn) for turn in turns]
        hits = self.index.search(words_of_turns)
        return list(itertools.islice(without_duplicates(hits, words_of_turns), CANDIDATES))

    def fields(self, hits, tokenizer):
        """The fields of an answer that show hits: texts as people write them."""
        contexts = []
        for hit in hits:
            contexts.append([as_written(turn, tokenizer) for turn in hit.context])
        return {
            "candidates": [as_written(hit.text, tokenizer) for hit in hits],
            "said_to": contexts,
        }


class ListedResponses:
    """Responses from a list of texts, which has at least one."""

    def __init__(self, texts):
        is_list = isinstance(texts, list | tuple) and len(texts) > 0
        if not is_list or not all(isinstance(text, str) and text.strip() for text in texts):
            raise UserError(f"candidates are a list of texts. Received: {texts!r:.80}")
        self._hits = [Hit(text) for text in texts]
        self.num_responses = len(texts)
        self.num_candidates = len(texts)

    def find(self, turns):
        """All responses, for any conversation."""
        return self._hits

    def fields(self, hits, tokenizer):
        """The fields of an answer that show hits: texts as they are."""
        return {"candidates": [hit.text for hit in hits]}


def without_duplicates(hits, words_of_turns):
    """Yields hits that repeat neither a better hit nor a turn of the conversation, nor nearly so.

    The model ranks a near-duplicate as high as the original.

    Args:
        hits: `Hit`s of an index, the best first.
        words_of_turns: The words of each turn of the conversation.

    >>> texts = ("Use apt-get !", "use apt-get .", "hello", "ok")
    >>> hits = [Hit(text, words=frozenset(text.split())) for text in texts]
    >>> [hit.text for hit in without_duplicates(hits, [["Hello", "!"]])]
    ['Use apt-get !', 'ok']
    """
    earlier_parts = [_parts(words) for words in words_of_turns]
    for hit in hits:
        parts = _parts(hit.words)
        if not any(_are_near_duplicates(parts, earlier) for earlier in earlier_parts):
            earlier_parts.append(parts)
            yield hit


def _are_near_duplicates(parts, others):
    num_common = len(parts & others)
    num_all = len(parts) + len(others) - num_common
    return num_common >= DUPLICATE_FRACTION * num_all


def _parts(words):
    """The distinct parts of words between punctuation, in lower case; if there are none, the words.

    An index has `ppa : ondrej / php5`. The bot shows it as `ppa:ondrej/php5`, which is a word of
    the conversation in the next turn. Both have the parts `ppa`, `ondrej` and `php5`.
    """
    parts = set(re.findall(r"[^\W_]+", " ".join(words).lower()))
    return parts or set(words)


# === Texts as people write them ===


def as_written(text, tokenizer):
    """A text without the spaces that its tokenizer put between its tokens.

    >>> as_written("sudo add-apt-repository ppa : ondrej / php5 & & kill - 9 !", "terms")
    'sudo add-apt-repository ppa:ondrej/php5 && kill -9!'
    >>> as_written("try ' dpkg - - configure - a ' , and mail me @ ubuntu.com", "terms")
    "try 'dpkg --configure -a', and mail me@ubuntu.com"
    """
    if tokenizer == WHITESPACE:
        return text
    text = " ".join(text.split())
    text = JOINED_TOKENS.sub(lambda match: match[0].replace(" ", ""), text)
    text = TOKENIZERS[tokenizer].detokenize(text.split())
    return apply_rules(text, QUOTES)
