"""The Chit-Chat Challenge of BYU (2018): 7,168 conversations by chat, 4,017 with a reply.

The package `chitchat-dataset` contains them in one file, `dataset.json`:

    {ID: {"messages": [[{"text": TEXT, "sender": ID, "timestamp": "2018-05-02T19:38:15Z"}, ...]]}}
"""

import importlib.util
import pathlib

from pydantic import BaseModel

from colloquy.base.files import PathLike, UserError
from colloquy.data.corpora.messages import Conversations, join_messages, keep_exchanges
from colloquy.data.corpora.splits import ALL
from colloquy.data.json_files import read_json
from colloquy.data.report import Report
from colloquy.data.text_files import Files, find_files

TOKENIZER = "terms"
PACKAGE = "chitchat_dataset"


class _Message(BaseModel):
    text: str
    sender: str
    timestamp: str


class _Conversation(BaseModel):
    messages: list[list[_Message]]


def find_splits(directory: PathLike | None = None) -> Files:
    """Finds the file, `{ALL: [file]}`: the corpus has no splits of its own.

    Args:
        directory: Where `dataset.json` is; `None`: in the installed package.
    """
    if directory is None:
        # The package is not imported: only its file is read.
        package = importlib.util.find_spec(PACKAGE)
        if package is None or package.origin is None:
            raise UserError("--corpus=chitchat needs a package: pip install chitchat-dataset")
        directory = pathlib.Path(package.origin).parent
    files = find_files(directory, ["dataset.json"])
    return {ALL: files}


def read(paths: list[pathlib.Path], split: str, report: Report) -> Conversations:
    """Reads all conversations, each a list of two or more turns."""
    (path,) = paths
    report.add_file(path, "the chats of chitchat, their messages in order of time")
    raw_conversations = read_json(path, dict[str, _Conversation])
    conversations = [_read_turns(conversation) for conversation in raw_conversations.values()]
    return keep_exchanges(path, conversations, report)


def _read_turns(conversation):
    """Returns the turns of a conversation, whose messages are ordered by time."""
    messages = []
    for group in conversation.messages:
        messages += group
    messages.sort(key=lambda message: message.timestamp)
    return join_messages([(message.sender, message.text) for message in messages])
