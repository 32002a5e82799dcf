"""OpenAI's chat completions, so that the usual chat windows can talk to models that reply.

    POST /v1/chat/completions   {"model": NAME, "messages": [{"role": "user", "content": "Hello"}]}

With `"stream": true` the reply comes as server-sent events, `data: {...}` with its next word, at
last `data: [DONE]`. A whole reply takes a tenth of a second, in one batch with others, so it is
computed before its first word is sent.
"""

import re
import time
import uuid
from typing import Annotated, Literal, NamedTuple

from fastapi import APIRouter, Request
from fastapi.responses import StreamingResponse
from pydantic import Field, model_validator

from colloquy.base.config import Config, Positive
from colloquy.base.files import UserError
from colloquy.engine.helplines import REPLIES as HELPLINE_REPLIES
from colloquy.serving.limits import (
    check_count,
    find_model,
    make_json,
    read_body,
    respond,
    wait_for_answer,
)

MAX_TOKENS = 100  # of a reply, whatever `max_tokens` says
MIN_TEMPERATURE = 0.01
SPEAKERS = {"user": "user", "assistant": "bot"}
STREAM_HEADERS = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
# Fields that no model here can honour, unless they say nothing.
REFUSED = (
    "audio",
    "frequency_penalty",
    "function_call",
    "functions",
    "logit_bias",
    "logprobs",
    "modalities",
    "presence_penalty",
    "response_format",
    "tool_choice",
    "tools",
    "top_logprobs",
)
SAYS_NOTHING = (None, False, 0, [], {}, ["text"], {"type": "text"}, "none", "auto")
router = APIRouter()


class Part(Config, extra="ignore"):
    """Part of a message."""

    type: Literal["text"]
    text: str


class Message(Config, extra="ignore"):
    """One message of the conversation."""

    role: Literal["system", "developer", "user", "assistant", "tool"]
    """The models read what `user` and `assistant` said, nothing else."""
    content: str | list[Part] | None = None

    def text(self):
        if isinstance(self.content, str):
            return self.content
        return "".join(part.text for part in self.content or [])


class StreamOptions(Config, extra="ignore"):
    """Options of a stream."""

    include_usage: bool = False
    """Send `usage` in a chunk of its own before `[DONE]`."""


class ChatRequest(Config, extra="allow"):
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
    stop: str | Annotated[list[str], Field(max_length=4)] | None = None
    """Texts before which the reply ends."""
    n: Literal[1] | None = 1
    """One reply per request."""
    decode: str = ""
    """Not OpenAI's: the search as `:predict` takes it, `beam=5,length_penalty=1`, in place of
    `temperature`, `top_p` and `max_tokens`."""
    explain: bool = False
    """Not OpenAI's: the last chunk, or the completion, has the answer of the model with its
    attention maps as `explanation`."""

    @model_validator(mode="after")
    def check(self):
        for name in REFUSED:
            if (self.model_extra or {}).get(name) not in SAYS_NOTHING:
                raise ValueError(f"{name} is not supported")
        return self

    @property
    def token_limit(self):
        return min(self.max_completion_tokens or self.max_tokens or MAX_TOKENS, MAX_TOKENS)

    def turns(self):
        """The conversation as `(speaker, text)`."""
        last = self.messages[-1].role
        if last != "user":
            raise UserError(f"messages: expected the last one to be the user's. Received: {last}")
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


class Reply(NamedTuple):
    """A reply of a model."""

    text: str
    finish_reason: str
    usage: dict
    answer: dict


@router.post("/v1/chat/completions")
async def chat(request: Request):
    """Replies to a conversation."""
    body = await read_body(request, ChatRequest)
    model = find_model(request, body.model)
    turns = body.turns()
    limits = request.app.state.limits
    characters = sum(len(text) for _, text in turns)
    check_count("a conversation", characters, limits.instance_characters, "characters")
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

    answer = model.reply(conversation, write, with_attention=body.explain)
    content = await wait_for_answer(request, answer)
    if not body.stream:
        return respond(request, content)

    async def events():
        for event in content:
            yield event

    return StreamingResponse(events(), media_type="text/event-stream", headers=STREAM_HEADERS)


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
    """Drops the last words of a text until it has at most `token_limit` tokens."""
    while text and predictor.count_tokens(text) > token_limit:
        text = re.sub(r"\s*\S+\s*$", "", text)
    return text


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
    deltas += [{"content": word} for word in re.findall(r"\s*\S+", reply.text)]
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
