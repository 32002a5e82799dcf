"""OpenAI's chat completions, so that the usual chat windows can talk to models that reply.

    POST /v1/chat/completions      {"model": NAME, "messages": [{"role": "user", "content":
    "Hello"}]}

With `"stream": true` the reply comes as server-sent events, `data: {...}` with its next words, at
last `data: [DONE]`.
"""

import asyncio
import json
import time
import uuid
from typing import Annotated, Literal

from fastapi import APIRouter, Request
from fastapi.responses import StreamingResponse
from pydantic import Field

from colloquy.base.config import Config, Positive
from colloquy.base.files import UserError
from colloquy.serving.limits import as_json, error_body, find_model, read, while_wanted

LONGEST = 100  # words of a reply at most, whatever `max_tokens` says
SPEAKERS = {"user": "user", "assistant": "bot"}
STREAM = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
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
        return (
            self.content
            if isinstance(self.content, str)
            else "".join(part.text for part in self.content or [])
        )


class ChatRequest(Config, extra="ignore"):
    """A conversation; other fields of OpenAI's are ignored."""

    model: str
    """Name of a model that replies: of generation, of selection with an index, or of dialog."""
    messages: Annotated[list[Message], Field(min_length=1)]
    """The conversation, the oldest message first; the last one is the user's."""
    stream: bool | None = False
    """Send the reply word by word as server-sent events."""
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    """Draw words at this temperature; 0 or nothing: the most probable words. Generation only, as
    the next three.
    """
    top_p: Annotated[float, Field(gt=0, le=1)] | None = None
    """Draw among the fewest words that together have this probability."""
    max_completion_tokens: Positive | None = None
    """Words of the reply, 100 at most."""
    max_tokens: Positive | None = None
    """The same, by its older name."""
    n: Literal[1] | None = 1
    """One reply per request."""
    decode: str = ""
    """Not OpenAI's: the search as `:predict` takes it, `beam=5,length_penalty=1`, in place of the
    four above.
    """
    explain: bool = False
    """Not OpenAI's: the last chunk, or the completion, has the answer of the model as
    `explanation`, of generation with the attention maps of the reply."""

    def said(self):
        """The conversation as `(speaker, text)`."""
        if self.messages[-1].role != "user":
            raise UserError(
                f"messages: expected the last one to be the user's. Received: {self.messages[-1].role}"
            )
        return [
            (SPEAKERS[each.role], each.text()) for each in self.messages if each.role in SPEAKERS
        ]

    def search(self):
        """The settings of the search as `:predict` takes them."""
        settings = {}
        if self.temperature:
            settings |= {
                "sample": "true",
                "temperature": max(self.temperature, 0.01),
                "top_p": self.top_p or 1,
            }
        if most := self.max_completion_tokens or self.max_tokens:
            settings |= {"max_length": min(most, LONGEST)}
        return self.decode or ",".join(f"{name}={value}" for name, value in settings.items())


@router.post("/v1/chat/completions")
async def chat(request: Request):
    """Replies to a conversation."""
    asked = await read(request, ChatRequest)
    model, said = find_model(request, asked.model), asked.said()
    replies = model.talk(said, asked.search(), asked.stream or asked.explain)
    head = {"id": f"chatcmpl-{uuid.uuid4().hex}", "created": int(time.time()), "model": asked.model}
    if asked.stream:  # errors before the first word have their status
        first = await while_wanted(request, anext(replies))
        events = _events(head, asked, first, replies, request.app.state.limits.timeout_seconds)
        return StreamingResponse(events, media_type="text/event-stream", headers=STREAM)
    text, answer = await while_wanted(request, _last(replies))
    message = {"role": "assistant", "content": text, "refusal": None}
    words, written = sum(len(text.split()) for _, text in said), len(text.split())
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}
    usage = {"prompt_tokens": words, "completion_tokens": written, "total_tokens": words + written}
    completion = {**head, "object": "chat.completion", "choices": [choice], "usage": usage}
    return as_json(completion | ({"explanation": answer} if asked.explain else {}))


async def _last(replies):
    return [found async for found in replies][-1]


async def _events(head, asked, found, replies, seconds):
    """The chunks of a reply as server-sent events; an error after the first word ends them."""

    def event(delta, finish=None, **more):
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return _event({**head, "object": "chat.completion.chunk", "choices": [choice], **more})

    yield event({"role": "assistant", "content": ""})
    sent = ""
    try:
        async with asyncio.timeout(seconds):
            while found is not None:
                text, answer = found
                if text.startswith(sent) and text != sent:
                    yield event({"content": text[len(sent) :]})
                    sent = text
                found = await anext(replies, None)
    except (UserError, TimeoutError) as late:
        message = str(late) or f"the reply was not finished within {seconds:g} seconds"
        yield _event(error_body(getattr(late, "status", 504), message, "/v1/chat/"))
        return
    if text != sent:  # the last words joined to the ones before in another way
        yield event({"content": text[len(sent) :]})
    yield event({}, "stop", **({"explanation": answer} if asked.explain else {}))
    yield "data: [DONE]\n\n"


def _event(value):
    return f"data: {json.dumps(value, ensure_ascii=False, allow_nan=False)}\n\n"
