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
from typing import Annotated, Any, Literal, NamedTuple

from fastapi import APIRouter, Body, Request
from fastapi.responses import StreamingResponse
from pydantic import Discriminator, Field, Tag, model_validator

from colloquy.base.config import Config, Positive
from colloquy.engine.helplines import REPLIES as HELPLINE_REPLIES
from colloquy.serving.answers import OpenAIError, RequestError, make_json, respond
from colloquy.serving.limits import check_count, wait_for_answer
from colloquy.serving.model_routes import BoundedRoute, find_model

MAX_TOKENS = 100  # of a reply, whatever `max_tokens` says
MIN_TEMPERATURE = 0.01
WORD = re.compile(r"\S+")
SPEAKERS = {"user": "user", "assistant": "bot"}
SKIPPED = "X-Skipped-Messages"  # header that says how many messages the model does not read
STREAM_HEADERS = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
# Fields that change no reply here nor elsewhere.
WITHOUT_EFFECT = {"metadata", "prompt_cache_key", "safety_identifier", "store", "user"}
# Fields that no model here can honour, with the values at which they change nothing.
NEUTRAL_VALUES = {
    "frequency_penalty": [0],
    "function_call": ["none", "auto"],
    "functions": [[]],
    "logit_bias": [{}],
    "logprobs": [False],
    "modalities": [["text"]],
    "parallel_tool_calls": [True, False],
    "presence_penalty": [0],
    "response_format": [{"type": "text"}],
    "service_tier": ["auto", "default"],
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


def drop_neutral_fields(fields, values):
    """Drops what changes no reply; a `ValueError` names another field that is not in `fields`."""
    if not isinstance(values, dict):
        return values
    kept = {}
    for name, value in values.items():
        if name in fields:
            kept[name] = value
        elif name in WITHOUT_EFFECT or value is None:
            continue
        elif value not in NEUTRAL_VALUES.get(name, []):
            raise ValueError(f"{name} is not supported")
    return kept


class Part(Config):
    """Part of a message."""

    type: Literal["text"]
    text: str


class Message(Config):
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
    """It is not read."""

    @model_validator(mode="before")
    @classmethod
    def drop_neutral_fields(cls, values):
        return drop_neutral_fields(cls.model_fields, values)

    def text(self):
        if isinstance(self.content, str):
            return self.content
        return "".join(part.text for part in self.content or [])


class StreamOptions(Config):
    """Options of a stream."""

    include_usage: bool = False
    """Send `usage` in a chunk of its own before `[DONE]`."""
    include_obfuscation: bool = False
    """It changes nothing: the server pads no chunk."""


class ChatRequest(Config):
    """A conversation. A field that cannot be honoured is refused by its name."""

    model: str
    """Name of a model that replies: of generation, of selection with an index, or of dialog."""
    messages: Annotated[list[Message], Field(min_length=1)]
    """The conversation, the oldest message first; the last one is the user's."""
    stream: bool | None = False
    """Send the reply word by word as server-sent events."""
    stream_options: StreamOptions | None = None
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    """Draw words at this temperature; 0 or nothing: the run's own search for replies. Models of
    selection and dialog choose whole responses, the best one at any temperature."""
    top_p: Annotated[float, Field(gt=0, le=1)] | None = None
    """Draw among the fewest words that together have this probability."""
    seed: Annotated[int, Field(ge=0, lt=2**63)] | None = None
    """With a temperature, the same seed and conversation give the same reply."""
    max_completion_tokens: Positive | None = None
    """Tokens of the reply, 100 at most."""
    max_tokens: Positive | None = None
    """The same, by its older name."""
    stop: (
        Annotated[
            Annotated[str, Tag("text")] | Annotated[list[str], Field(max_length=4), Tag("list")],
            Discriminator(text_or_list),
        ]
        | None
    ) = None
    """Texts before which the reply ends."""
    n: Literal[1] | None = 1
    """One reply per request."""
    decode: str = ""
    """Not OpenAI's: the search as `:predict` takes it, `beam=5,length_penalty=1`, in place of
    `temperature`, `top_p` and `max_tokens`."""
    explain: bool = False
    """Not OpenAI's: the last chunk, or the completion, has the answer of the model with its
    attention maps as `explanation`."""

    @model_validator(mode="before")
    @classmethod
    def drop_neutral_fields(cls, values):
        return drop_neutral_fields(cls.model_fields, values)

    @property
    def token_limit(self):
        return min(self.max_completion_tokens or self.max_tokens or MAX_TOKENS, MAX_TOKENS)

    def turns(self):
        """The conversation as `(speaker, text)`, without the messages that are not read."""
        last = self.messages[-1].role
        if last != "user":
            message = f"messages: expected the last one to be the user's. Received: {last}"
            raise RequestError(400, message, field="messages")
        turns = []
        for message in self.messages:
            if message.role in SPEAKERS:
                turns.append((SPEAKERS[message.role], message.text()))
        return turns

    def search(self):
        """The settings of the search for a reply, as the field `decode` of an instance.

        Empty: the run's own.
        """
        if self.decode or not self.temperature:
            return self.decode
        settings = {
            "sample": "true",
            "temperature": max(self.temperature, MIN_TEMPERATURE),
            "top_p": self.top_p or 1,
        }
        if self.max_completion_tokens or self.max_tokens:
            settings["max_length"] = self.token_limit
        return ",".join(f"{name}={value}" for name, value in settings.items())


class Completion(Config):
    """A reply."""

    id: str
    object: Literal["chat.completion"]
    created: int
    model: str
    choices: list[dict[str, Any]]
    usage: dict[str, int]
    explanation: dict[str, Any] = {}


class Reply(NamedTuple):
    """A reply of a model."""

    text: str
    finish_reason: str
    usage: dict
    answer: dict


def make_router(models):
    """Makes the route of chat completions.

    Args:
        models: `serving.batching.BatchedModel`s. The document shows the first one that chats, and
            leaves the route out if none does.
    """
    router = APIRouter(tags=["chat"], responses=ERRORS, route_class=BoundedRoute)
    names = [model.name for model in models if model.chats]
    messages = [{"role": "user", "content": "Hello"}]
    examples = {}
    for name in names[:1]:
        examples["Hello"] = {"value": {"model": name, "messages": messages}}
    body_field = Body(openapi_examples=examples)

    @router.post(
        "/v1/chat/completions",
        operation_id="chat",
        response_model=Completion,
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
    lines = sum(1 + text.count("\n") for _, text in turns)
    check_count("a conversation", lines, limits.lines, "lines")
    decode = body.search()

    def conversation(predictor):
        instance = predictor.conversation(turns, decode)
        fields = predictor.Instance.model_fields
        if body.seed is not None and "seed" in fields:
            instance["seed"] = body.seed
        if not decode and "decode" in fields:
            instance["decode"] = predictor.own_search(body.token_limit)
        return instance

    def write(predictor, answers):
        reply = _make_reply(predictor, answers[0], turns, body)
        if body.stream:
            return _make_events(reply, body)
        return make_json(_make_completion(reply, body))

    headers = {}
    skipped = len(body.messages) - len(turns)
    if skipped:
        headers[SKIPPED] = str(skipped)
    answer = model.reply(conversation, write, characters, with_attention=body.explain)
    content = await wait_for_answer(request, answer)
    if not body.stream:
        return respond(request, content, headers)

    async def events():
        for event in content:
            yield event

    headers = {**STREAM_HEADERS, **headers}
    return StreamingResponse(events(), media_type="text/event-stream", headers=headers)


def _make_reply(predictor, answer, turns, body):
    """Cuts the reply of an answer where the request says; one that names helplines stays whole."""
    text = predictor.reply(answer)
    finish_reason = "stop"
    count = predictor.count_tokens(text)
    if text in HELPLINE_REPLIES:
        return _finished_reply(predictor, text, finish_reason, answer, turns)
    if count >= body.token_limit:
        finish_reason = "length"
        text = _cut_words(predictor, text, body.token_limit)
    stops = [body.stop] if isinstance(body.stop, str) else body.stop or []
    for stop in stops:
        if stop and stop in text:
            text = text[: text.index(stop)]
            finish_reason = "stop"
    return _finished_reply(predictor, text, finish_reason, answer, turns)


def _finished_reply(predictor, text, finish_reason, answer, turns):
    """A `Reply` with its tokens counted."""
    prompt_tokens = sum(predictor.count_tokens(said) for _, said in turns)
    completion_tokens = predictor.count_tokens(text)
    usage = {
        "prompt_tokens": prompt_tokens,
        "completion_tokens": completion_tokens,
        "total_tokens": prompt_tokens + completion_tokens,
    }
    return Reply(text, finish_reason, usage, answer)


def _cut_words(predictor, text, token_limit):
    """The first words of a text that have at most `token_limit` tokens, found by bisection."""
    ends = _word_ends(text)
    fitting = bisect.bisect_right(
        ends, token_limit, key=lambda end: predictor.count_tokens(text[:end])
    )
    return text[: ends[fitting - 1]] if fitting else ""


def _word_ends(text):
    return [match.end() for match in WORD.finditer(text)]


def _make_completion(reply, body):
    message = {"role": "assistant", "content": reply.text, "refusal": None}
    choice = {
        "index": 0,
        "message": message,
        "logprobs": None,
        "finish_reason": reply.finish_reason,
    }
    completion = {
        **_make_head(body, "chat.completion"),
        "choices": [choice],
        "usage": reply.usage,
    }
    if body.explain:
        completion["explanation"] = reply.answer
    return completion


def _make_events(reply, body):
    """Makes the server-sent events of a reply, a word each."""
    head = _make_head(body, "chat.completion.chunk")
    deltas = [{"role": "assistant", "content": ""}]
    for start, end in itertools.pairwise([0, *_word_ends(reply.text)]):
        deltas.append({"content": reply.text[start:end]})
    chunks = []
    for delta in deltas:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": None}
        chunks.append({**head, "choices": [choice]})
    choice = {"index": 0, "delta": {}, "logprobs": None, "finish_reason": reply.finish_reason}
    last = {**head, "choices": [choice]}
    if body.explain:
        last["explanation"] = reply.answer
    chunks.append(last)
    if body.stream_options and body.stream_options.include_usage:
        chunks.append({**head, "choices": [], "usage": reply.usage})
    texts = [make_json(chunk).body.decode("utf-8") for chunk in chunks]
    return [f"data: {text}\n\n" for text in [*texts, "[DONE]"]]


def _make_head(body, object_type):
    return {
        "id": f"chatcmpl-{uuid.uuid4().hex}",
        "object": object_type,
        "created": int(time.time()),
        "model": body.model,
    }
