"""Texts of an index, whose tokens are separated by spaces, as people write them."""

import re

from colloquy.data.tokenizers import TOKENIZERS, WHITESPACE, apply_rules

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
