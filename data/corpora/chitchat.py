"""The Chit-Chat Challenge of BYU (2018): 7,168 conversations between two people, by chat.

The package `chitchat-dataset` contains them in one file, `dataset.json`:

    {ID: {"messages": [[{"text": TEXT, "sender": ID, "timestamp": "2018-05-02T19:38:15Z"}, ...]]}}
"""

import importlib.util
import pathlib
import random

from pydantic import BaseModel

from colloquy.base.files import UserError
from colloquy.data.text_files import find_files, read_json

TOKENIZER = "terms"
PACKAGE = "chitchat_dataset"
HELD_OUT = 500
"""Conversations in dev, and in test."""
MIN_TURNS = 4
"""Turns of each conversation in dev and test."""
SEED = 1


class _Message(BaseModel):
    text: str
    sender: str
    timestamp: str


class _Conversation(BaseModel):
    messages: list[list[_Message]]


def find_splits(directory=None):
    """Finds the file of all splits, `{"train": [file], "dev": [file], "test": [file]}`.

    Args:
        directory: Where `dataset.json` is; `None`: in the installed package.
    """
    if directory is None:
        # The package is not imported: only its file is read.
        package = importlib.util.find_spec(PACKAGE)
        if package is None:
            raise UserError("--corpus=chitchat needs a package: pip install chitchat-dataset")
        directory = pathlib.Path(package.origin).parent
    files = find_files(directory, ["dataset.json"], "chitchat")
    return {"train": files, "dev": files, "test": files}


def read(paths, split):
    """Reads the conversations of a split, each a list of two or more turns.

    Dev and test have `HELD_OUT` conversations each, drawn from those with `MIN_TURNS` turns.
    """
    conversations = []
    for path in paths:
        for conversation in read_json(path, dict[str, _Conversation]).values():
            turns = _join_messages(conversation)
            if len(turns) >= 2:
                conversations.append(turns)
    if not conversations:
        raise UserError(f"{paths[0]}: expected conversations. Received: none")
    return _select_split(conversations, split)


def _join_messages(conversation):
    """Returns the turns of a conversation: consecutive messages of one sender are one turn."""
    messages = []
    for group in conversation.messages:
        messages += [message for message in group if message.text.strip()]
    messages.sort(key=lambda message: message.timestamp)

    turns = []
    last_sender = None
    for message in messages:
        text = " ".join(message.text.split())
        if message.sender == last_sender:
            turns[-1] = f"{turns[-1]} {text}"
        else:
            turns.append(text)
        last_sender = message.sender
    return turns


def _select_split(conversations, split):
    long = [number for number, turns in enumerate(conversations) if len(turns) >= MIN_TURNS]
    # A small file is not used up by dev and test.
    size = min(HELD_OUT, len(long) // 4)
    held_out = random.Random(SEED).sample(long, 2 * size)
    if split == "dev":
        numbers = held_out[:size]
    elif split == "test":
        numbers = held_out[size:]
    else:
        numbers = sorted(set(range(len(conversations))) - set(held_out))
    return [conversations[number] for number in numbers]
