"""Files of conversations in JSON, and of ParlAI, for `data.corpora.conversations`.

{"messages": [{"role": "user", "content": TEXT}, ...]}     OpenAI's chats, one per line
{"dialog": [TEXT, TEXT, ...], ...}                         one per line, as on Hugging Face
[TEXT, TEXT, ...]                                          one per line, as LCCC
[[TEXT, TEXT, ...], ...]                                   a JSON file of all, as LCCC
text:TEXT TAB labels:TEXT TAB episode_done:True            ParlAI
"""

import pathlib
from typing import Annotated

from pydantic import BaseModel, Field

from colloquy.data import text_files
from colloquy.data.corpora.messages import Conversations, join_messages, keep_exchanges
from colloquy.data.report import Report
from colloquy.data.text_files import bad_line, read_json, read_lines

ROLES = ("user", "assistant")
"""The roles that speak; `system`, `developer`, `tool` and `function` do not."""
PARLAI = "text:"
EXPECTED = (
    '{"messages": [{"role": TEXT, "content": TEXT}, ...]}, {"dialog": [TEXT, ...]} or [TEXT, ...]'
)


class _Part(BaseModel):
    type: str
    text: str = ""


class _RoleMessage(BaseModel):
    role: str
    content: str | list[_Part] | None = None

    def text(self):
        if isinstance(self.content, list):
            return " ".join(part.text for part in self.content)
        return self.content or ""


class _Chat(BaseModel):
    """A conversation by roles."""

    messages: list[_RoleMessage]

    def turns(self, report):
        spoken = [message for message in self.messages if message.role in ROLES]
        report.leave_out("messages of other roles", len(self.messages) - len(spoken))
        report.senders.update(message.role for message in spoken)
        return join_messages([(message.role, message.text()) for message in spoken])


class _Dialog(BaseModel):
    """A conversation as a list of texts."""

    dialog: list[str]

    def turns(self, report):
        return _spoken(self.dialog, report)


_Conversation = Annotated[_Chat | _Dialog | list[str], Field(union_mode="left_to_right")]


def read_json_lines(path: pathlib.Path, report: Report) -> Conversations:
    """Reads lines of JSON, a conversation per line."""
    report.add_file(path, "JSON lines, a conversation per line")
    return _keep_turns(path, text_files.read_json_lines(path, _Conversation, EXPECTED), report)


def read_json_file(path: pathlib.Path, report: Report) -> Conversations:
    """Reads a JSON file, a list of conversations."""
    report.add_file(path, "a JSON list of conversations")
    return _keep_turns(path, read_json(path, list[_Conversation]), report)


def _keep_turns(path, conversations, report):
    turns = [_turns(conversation, report) for conversation in conversations]
    return keep_exchanges(path, turns, report)


def _turns(conversation, report):
    if isinstance(conversation, list):
        return _spoken(conversation, report)
    return conversation.turns(report)


def _spoken(texts, report):
    """The texts that are not empty; without an empty one, its neighbours are one conversation."""
    turns = [text.strip() for text in texts if text.strip()]
    report.leave_out("turns without text", len(texts) - len(turns))
    return turns


def read_parlai(path: pathlib.Path, report: Report) -> Conversations:
    """Reads episodes of ParlAI: the text, then the first of the labels, on each line."""
    report.add_file(path, "ParlAI's dialogs; fields used: text, labels, episode_done")
    conversations: Conversations = [[]]
    for number, line in read_lines(path, "conversations"):
        if not line:
            continue
        fields = {}
        for part in line.split("\t"):
            name, colon, value = part.partition(":")
            if not colon:
                raise bad_line(path, number, "fields of ParlAI, as text:... TAB labels:...", line)
            fields[name] = value.replace("\\n", " ").replace("\\t", " ")
        labels = fields.get("labels") or fields.get("eval_labels") or ""
        for text in (fields.get("text", ""), labels.split("|")[0]):
            if text.strip():
                conversations[-1].append(text.strip())
        if fields.get("episode_done") == "True":
            conversations.append([])
    spoken = [turns for turns in conversations if turns]
    return keep_exchanges(path, spoken, report)
