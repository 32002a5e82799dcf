"""The request of a chat completion: the fields that OpenAI describes, and what the models read."""

import itertools
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag, model_validator

from colloquy.base.config import Config, Positive
from colloquy.serving.answers import RequestError

# Most tokens of a reply. A larger `max_tokens` is lowered to this.
MAX_TOKENS = 100
# `Decoding` accepts no lower values.
MIN_TEMPERATURE = 0.01
MIN_TOP_P = 1e-6
# The roles that the models read, and the speakers that they stand for.
SPEAKERS = {"user": "user", "assistant": "bot"}
# Fields that change no reply, whatever their value.
WITHOUT_EFFECT = {"metadata", "prompt_cache_key", "safety_identifier", "store", "user"}
# Fields that no model here supports, with the values that ask for nothing.
NEUTRAL_VALUES = {
    "frequency_penalty": [0],
    "logit_bias": [{}],
    "logprobs": [False],
    "parallel_tool_calls": [True, False],
    "presence_penalty": [0],
    "response_format": [{"type": "text"}],
    "tool_choice": ["none", "auto"],
    "tools": [[]],
    "top_logprobs": [0],
}


def text_or_list(value):
    """The tag of the type that a value is checked by, so that an error is about that one alone."""
    return "text" if isinstance(value, str) else "list"


class Part(Config):
    """Part of a message."""

    type: Literal["text"]
    text: str


Text = Annotated[str, Tag("text")]
Parts = Annotated[list[Part], Tag("list")]
Stops = Annotated[list[str], Field(max_length=4), Tag("list")]
TextOrList = Discriminator(text_or_list)
"""Chooses between `Text` and a list."""


class ClientFields(Config):
    """Fields that a client sends. One that cannot be honoured is refused by its name."""

    @model_validator(mode="before")
    @classmethod
    def drop_neutral_fields(cls, values):
        """Drops fields that change no reply, and refuses the other unknown fields."""
        if not isinstance(values, dict):
            return values
        kept = {}
        for name, value in values.items():
            if name in cls.model_fields:
                kept[name] = value
                continue
            is_neutral = (
                value is None or name in WITHOUT_EFFECT or value in NEUTRAL_VALUES.get(name, [])
            )
            if not is_neutral:
                raise RequestError(400, f"{name[:100]} is not supported", field=name[:100])
        return kept


class Message(ClientFields):
    """One message of the conversation."""

    role: Literal["system", "developer", "user", "assistant", "tool"]
    """The models read what `user` and `assistant` said. The header `X-Skipped-Messages` of an
    answer counts the other messages."""
    content: Annotated[Text | Parts, TextOrList] | None = None
    name: str | None = None
    """Accepted, but not read."""
    tool_calls: list[Any] | None = None
    """Accepted, but not read."""
    tool_call_id: str | None = None
    """Accepted, but not read."""

    def text(self):
        if isinstance(self.content, str):
            return self.content
        return "".join(part.text for part in self.content or [])


class StreamOptions(Config):
    """Options of a stream."""

    include_usage: bool = False
    """Send `usage` in a chunk of its own before `[DONE]`."""


class ChatRequest(ClientFields):
    """A conversation."""

    model: str
    """Name of a model that replies: generation, selection with an index, or dialog."""
    messages: Annotated[list[Message], Field(min_length=1)]
    """The conversation, the oldest message first. The last message that is read must be the
    user's. Messages of one speaker in a row are read as one."""
    stream: bool | None = False
    """Send the reply word by word as server-sent events."""
    stream_options: StreamOptions | None = None
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    """Temperature at which words are drawn. With 0, or without `temperature` and `top_p`, the run's
    own search writes the reply. Models of selection and dialog ignore both fields: they choose the
    best whole response."""
    top_p: Annotated[float, Field(gt=0, le=1)] | None = None
    """Draw among the fewest words that together have this probability. Without `temperature`, the
    temperature is 1."""
    seed: Annotated[int, Field(ge=0, lt=2**63)] | None = None
    """With a temperature, the same seed and conversation give the same reply."""
    max_completion_tokens: Positive | None = None
    """Most tokens of the reply; more than 100 count as 100."""
    max_tokens: Positive | None = None
    """Older name of `max_completion_tokens`."""
    stop: Annotated[Text | Stops, TextOrList] | None = None
    """The reply ends before the first of these texts."""
    n: Literal[1] | None = 1
    """One reply per request."""

    @property
    def token_limit(self):
        requested = self.max_completion_tokens or self.max_tokens or MAX_TOKENS
        return min(requested, MAX_TOKENS)

    @property
    def stops(self):
        """The texts of `stop`."""
        if isinstance(self.stop, str):
            return [self.stop]
        return self.stop or []

    @property
    def read_messages(self):
        return [message for message in self.messages if message.role in SPEAKERS]

    def turns(self):
        """The conversation as `(speaker, text)`, without the messages that are not read.

        Messages of one speaker in a row are one turn, a line each: in some models, every second
        turn is the user's.
        """
        # Without any message that is read, the error names the role of another one.
        last = (self.read_messages or self.messages)[-1]
        if last.role != "user":
            message = f"messages: expected the last one to be the user's. Received: {last.role}"
            raise RequestError(400, message, field="messages")
        turns = []
        by_role = itertools.groupby(self.read_messages, key=lambda message: message.role)
        for role, messages in by_role:
            text = "\n".join(message.text() for message in messages)
            turns.append((SPEAKERS[role], text))
        return turns

    def search(self):
        """The search settings, as text for the field `decode` of an instance.

        An empty text selects the run's own settings.
        """
        temperature = self.temperature
        if temperature is None and self.top_p is not None:
            temperature = 1.0
        if not temperature:  # 0, too: then nothing is drawn
            return ""
        temperature = max(temperature, MIN_TEMPERATURE)
        top_p = max(self.top_p or 1, MIN_TOP_P)
        return f"sample=true,temperature={temperature},top_p={top_p}"
