"""OpenAI's chat completions, so that the usual chat windows can talk to models that reply.

    POST /v1/chat/completions   {"model": NAME, "messages": [{"role": "user", "content": "Hello"}]}

With `"stream": true` the reply comes as server-sent events, `data: {...}` with its next word, at
last `data: [DONE]`. A whole reply takes a tenth of a second, in one batch with others, so it is
computed before its first word is sent.
"""

import bisect
import itertools
import re
import time
import uuid
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Body, Request
from fastapi.responses import Response
from pydantic import Discriminator, Field, Tag, model_validator

from colloquy.base.config import Config, Positive
from colloquy.engine.helplines import REPLIES as HELPLINE_REPLIES
from colloquy.serving.answers import JSON, OpenAIError, RequestError, make_json
from colloquy.serving.batching import Job
from colloquy.serving.limits import check_count, wait_for_answer
from colloquy.serving.model_routes import BoundedRoute, find_model

# Most tokens of a reply. A larger `max_tokens` is lowered to this.
MAX_TOKENS = 100
# `Decoding` accepts no lower values.
MIN_TEMPERATURE = 0.01
MIN_TOP_P = 1e-6
# Even a short line costs a dialog model time. It counts as this many more characters.
LINE_CHARACTERS = 20
# A word of a reply; in Chinese and Japanese, which have no spaces, a character.
WORD = re.compile(r"[\u2e80-\u9fff\uf900-\ufaff]|[^\s\u2e80-\u9fff\uf900-\ufaff]+")
# The roles that the models read, and the speakers that they stand for.
SPEAKERS = {"user": "user", "assistant": "bot"}
# Header with the number of messages that the model does not read.
SKIPPED = "X-Skipped-Messages"
STREAM_HEADERS = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
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
ERRORS = {
    "default": {"model": OpenAIError, "description": "The conversation is wrong, or too large."}
}


def text_or_list(value):
    """The branch of a field that is a text or a list, so that an error names the right one."""
    return "text" if isinstance(value, str) else "list"


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


class Part(Config):
    """Part of a message."""

    type: Literal["text"]
    text: str


class Message(ClientFields):
    """One message of the conversation."""

    role: Literal["system", "developer", "user", "assistant", "tool"]
    """The models read what `user` and `assistant` said. The header `X-Skipped-Messages` of an
    answer counts the other messages."""
    content: (
        Annotated[
            Annotated[str, Tag("text")] | Annotated[list[Part], Tag("list")],
            Discriminator(text_or_list),
        ]
        | None
    ) = None
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
    stop: (
        Annotated[
            Annotated[str, Tag("text")] | Annotated[list[str], Field(max_length=4), Tag("list")],
            Discriminator(text_or_list),
        ]
        | None
    ) = None
    """The reply ends before the first of these texts."""
    n: Literal[1] | None = 1
    """One reply per request."""

    @property
    def token_limit(self):
        requested = self.max_completion_tokens or self.max_tokens or MAX_TOKENS
        return min(requested, MAX_TOKENS)

    @property
    def read_messages(self):
        return [message for message in self.messages if message.role in SPEAKERS]

    def turns(self):
        """The conversation as `(speaker, text)`, without the messages that are not read.

        Messages of one speaker in a row are one turn, a line each: models of two speakers take
        every second turn for the user's.
        """
        read_messages = self.read_messages
        last = read_messages[-1] if read_messages else self.messages[-1]
        if last.role != "user":
            message = f"messages: expected the last one to be the user's. Received: {last.role}"
            raise RequestError(400, message, field="messages")
        turns = []
        for role, messages in itertools.groupby(read_messages, key=lambda message: message.role):
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
        if not temperature:
            return ""
        temperature = max(temperature, MIN_TEMPERATURE)
        top_p = max(self.top_p or 1, MIN_TOP_P)
        return f"sample=true,temperature={temperature},top_p={top_p}"


def make_router(models):
    """Makes the route of chat completions.

    Args:
        models: `serving.models.Served`s. The example in `/docs` names the first one that
            chats. If none does, `/docs` omits the route.
    """
    router = APIRouter(tags=["chat"], responses=ERRORS, route_class=BoundedRoute)
    names = [model.name for model in models if model.chats]
    examples = {}
    if names:
        messages = [{"role": "user", "content": "Hello"}]
        examples["Hello"] = {"value": {"model": names[0], "messages": messages}}
    body_field = Body(openapi_examples=examples)

    @router.post(
        "/v1/chat/completions",
        operation_id="chat",
        include_in_schema=bool(names),
    )
    async def chat(request: Request, body: Annotated[ChatRequest, body_field]):
        """Replies to a conversation; with `stream` as server-sent events."""
        return await _reply(request, body)

    return router


async def _reply(request, body):
    model = find_model(request, body.model)
    turns = body.turns()
    limits = request.app.state.limits
    characters = sum(len(text) for _, text in turns)
    check_count("a conversation", characters, limits.text_characters, "characters")
    lines = sum(max(1, len(text.splitlines())) for _, text in turns)
    check_count("a conversation", lines, limits.lines, "lines")

    def read(predictor):
        instance = predictor.conversation(turns, body.search())
        if body.seed is not None and "seed" in predictor.Instance.model_fields:
            instance["seed"] = body.seed
        return [predictor.make_instance(instance, "the conversation")]

    def write(predictor, answers):
        reply = predictor.reply(answers[0])
        text, finish_reason = _cut_reply(predictor, reply, body)
        usage = _count_usage(predictor, turns, text)
        if body.stream:
            return _write_events(text, finish_reason, usage, body)
        return make_json(_make_completion(text, finish_reason, usage, body))

    job = Job(
        verb="predict",
        count=1,
        read=read,
        write=write,
        characters=characters + LINE_CHARACTERS * lines,
    )
    content = await wait_for_answer(request, model.answer(job))
    headers = STREAM_HEADERS if body.stream else {}
    skipped = len(body.messages) - len(body.read_messages)
    if skipped:
        headers = {**headers, SKIPPED: str(skipped)}
    media_type = "text/event-stream" if body.stream else JSON
    return Response(content, headers=headers, media_type=media_type)


def _cut_reply(predictor, text, body):
    """Cuts a reply at the requested limits; returns it with its finish reason.

    A reply that names helplines is never cut.
    """
    finish_reason = "stop"
    if text in HELPLINE_REPLIES:
        return text, finish_reason
    # A reply with exactly as many tokens as allowed also counts as cut, as with OpenAI.
    if predictor.count_tokens(text) >= body.token_limit:
        finish_reason = "length"
        text = _cut_words(predictor, text, body.token_limit)
    stops = body.stop or []
    if isinstance(stops, str):
        stops = [stops]
    places = [text.index(stop) for stop in stops if stop and stop in text]
    if places:
        finish_reason = "stop"
        text = text[: min(places)]
    return text, finish_reason


def _count_usage(predictor, turns, reply):
    prompt_tokens = sum(predictor.count_tokens(text) for _, text in turns)
    completion_tokens = predictor.count_tokens(reply)
    return {
        "prompt_tokens": prompt_tokens,
        "completion_tokens": completion_tokens,
        "total_tokens": prompt_tokens + completion_tokens,
    }


def _cut_words(predictor, text, token_limit):
    """Returns the longest beginning, in whole words, with at most `token_limit` tokens."""

    def count_tokens_until(end):
        return predictor.count_tokens(text[:end])

    # Bisection: counting the tokens of each beginning would take quadratic time.
    ends = _word_ends(text)
    num_words = bisect.bisect_right(ends, token_limit, key=count_tokens_until)
    if num_words == 0:
        return ""
    return text[: ends[num_words - 1]]


def _word_ends(text):
    return [match.end() for match in WORD.finditer(text)]


def _make_completion(text, finish_reason, usage, body):
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": text, "refusal": None},
        "logprobs": None,
        "finish_reason": finish_reason,
    }
    return {**_make_head(body, "chat.completion"), "choices": [choice], "usage": usage}


def _write_events(text, finish_reason, usage, body):
    """Writes a reply as server-sent events, one per word."""
    head = _make_head(body, "chat.completion.chunk")
    chunks = [_make_chunk(head, {"role": "assistant", "content": ""})]
    # Each piece begins with the white space before its word, and the last one ends with the text.
    ends = [*_word_ends(text)[:-1], len(text)] if text else []
    for start, end in itertools.pairwise([0, *ends]):
        chunks.append(_make_chunk(head, {"content": text[start:end]}))
    chunks.append(_make_chunk(head, {}, finish_reason))
    if body.stream_options and body.stream_options.include_usage:
        chunks.append({**head, "choices": [], "usage": usage})
    lines = [b"data: " + make_json(chunk) for chunk in chunks]
    return b"\n\n".join([*lines, b"data: [DONE]", b""])


def _make_chunk(head, delta, finish_reason=None):
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
    return {**head, "choices": [choice]}


def _make_head(body, object_type):
    return {
        "id": f"chatcmpl-{uuid.uuid4().hex}",
        "object": object_type,
        "created": int(time.time()),
        "model": body.model,
    }
