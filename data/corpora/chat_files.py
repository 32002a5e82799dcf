"""Files of conversations in JSON, and of ParlAI, for `data.corpora.conversations`.

{"messages": [{"role": "user", "content": TEXT}, ...]}     OpenAI's chats, one per line
{"dialog": [TEXT, TEXT, ...], ...}                         one per line, as on Hugging Face
[TEXT, TEXT, ...]                                          one per line, as LCCC
[[TEXT, TEXT, ...], ...]                                   a JSON file of all, as LCCC
text:TEXT TAB labels:TEXT TAB episode_done:True            ParlAI
"""

import pathlib
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from colloquy.base.files import UserError, in_one_line
from colloquy.data import json_files
from colloquy.data.corpora.messages import Conversations, join_messages, keep_exchanges
from colloquy.data.report import Report
from colloquy.data.text_files import bad_line, read_lines

ROLES = ("user", "assistant")
"""The roles that speak; `system`, `developer`, `tool` and `function` do not."""
PARLAI = "text:"
PARLAI_FIELDS = {"text", "labels", "eval_labels", "episode_done"}
EXPECTED = (
    '{"messages": [{"role": TEXT, "content": TEXT}, ...]}, {"dialog": [TEXT, ...]} or [TEXT, ...]'
)


class _Record(BaseModel):
    """An object of a file; further fields are not used, and the report names them."""

    model_config = ConfigDict(extra="allow")


class _Part(BaseModel):
    type: str
    text: str = ""


class _RoleMessage(_Record):
    role: str
    content: str | list[_Part] | None = None

    def text(self, report):
        if isinstance(self.content, list):
            texts = [part.text for part in self.content if part.text.strip()]
            report.leave_out("parts of messages without text", len(self.content) - len(texts))
            return " ".join(texts)
        return self.content or ""


class _Chat(_Record):
    """A conversation by roles."""

    messages: list[_RoleMessage]

    def turns(self, report):
        messages = []
        for message in self.messages:
            if message.role not in ROLES:
                report.leave_out(f"messages of the role {in_one_line(message.role, 20)}")
                continue
            report.senders.add(message.role)
            text = message.text(report)
            report.leave_out("messages without text", int(not text.strip()))
            messages.append((message.role, text))
        return join_messages(messages)


class _Dialog(_Record):
    """A conversation as a list of texts."""

    dialog: list[str]

    def turns(self, report):
        return _spoken(self.dialog, report)


_Conversation = Annotated[_Chat | _Dialog | list[str], Field(union_mode="left_to_right")]


def read_json_lines(path: pathlib.Path, report: Report) -> Conversations:
    """Reads lines of JSON, a conversation per line."""
    conversations = json_files.read_json_lines(path, _Conversation, EXPECTED)
    return _keep_turns(path, "JSON lines, a conversation per line", conversations, report)


def read_json_file(path: pathlib.Path, report: Report) -> Conversations:
    """Reads a JSON file, a list of conversations."""
    return _keep_turns(path, "a JSON list of conversations", _read_list(path), report)


def _read_list(path):
    adapter = TypeAdapter(_Conversation)
    for number, value in enumerate(json_files.read_json(path, list[Any]), 1):
        try:
            yield adapter.validate_python(value)
        except ValidationError as error:
            received = in_one_line(value, 60)
            place = f"{path}, conversation {number:,}"
            raise UserError(f"{place}: expected {EXPECTED}. Received: {received}") from error


def _keep_turns(path, form, conversations, report):
    turns = []
    unused = set()
    for conversation in conversations:
        if isinstance(conversation, list):
            turns.append(_spoken(conversation, report))
        else:
            turns.append(conversation.turns(report))
            for record in (conversation, *getattr(conversation, "messages", ())):
                unused |= record.model_extra.keys()
    report.add_file(path, form, sorted(unused))
    return keep_exchanges(path, turns, report)


def _spoken(texts, report):
    """The texts that are not empty. The turns around an empty one stay in one conversation."""
    turns = [text.strip() for text in texts if text.strip()]
    report.leave_out("turns without text", len(texts) - len(turns))
    return turns


def read_parlai(path: pathlib.Path, report: Report) -> Conversations:
    """Reads episodes of ParlAI: the text, then the first of the labels, on each line."""
    unused = set()
    conversations: Conversations = [[]]
    for number, line in read_lines(path, "conversations"):
        if not line:
            continue
        parts = line.split("\t")
        if not all(":" in part for part in parts):
            raise bad_line(path, number, "fields of ParlAI, as text:... TAB labels:...", line)
        fields = dict(part.split(":", 1) for part in parts)
        unused |= fields.keys() - PARLAI_FIELDS
        labels = (fields.get("labels") or fields.get("eval_labels") or "").split("|")
        report.leave_out("labels after the first one", len(labels) - 1)
        for text in (fields.get("text", ""), labels[0]):
            text = text.replace("\\n", " ").replace("\\t", " ").strip()
            if text:
                conversations[-1].append(text)
            else:
                report.leave_out("turns without text")
        if fields.get("episode_done") == "True":
            conversations.append([])
    form = "ParlAI's dialogs; fields used: text, labels, episode_done"
    report.add_file(path, form, sorted(unused))
    spoken = [turns for turns in conversations if turns]
    return keep_exchanges(path, spoken, report)
