"""OpenAI's chat completions, so that the usual chat windows can talk to models that reply.

    POST /v1/chat/completions   {"model": NAME, "messages": [{"role": "user", "content": "Hello"}]}

`serving.chat_request` has the fields of a request. With `"stream": true` the reply comes as
server-sent events, `data: {...}` with its next word, at last `data: [DONE]`. A whole reply takes a
tenth of a second, in one batch with others, so it is computed before its first word is sent.
"""

import bisect
import itertools
import re
import time
import uuid
from typing import Annotated

from fastapi import APIRouter, Body, Request
from fastapi.responses import Response

from colloquy.engine.helplines import REPLIES as HELPLINE_REPLIES
from colloquy.serving.answers import JSON, OpenAIError, make_json
from colloquy.serving.batching import Job
from colloquy.serving.chat_request import ChatRequest
from colloquy.serving.limits import check_count, wait_for_answer
from colloquy.serving.model_routes import BoundedRoute, find_model

# Even a short line costs a dialog model time. It counts as this many more characters.
LINE_CHARACTERS = 20
# A word of a reply; in Chinese and Japanese, which have no spaces, a character.
WORD = re.compile(r"[\u2e80-\u9fff\uf900-\ufaff]|[^\s\u2e80-\u9fff\uf900-\ufaff]+")
# Header with the number of messages that the model does not read.
SKIPPED = "X-Skipped-Messages"
STREAM_HEADERS = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
ERRORS = {
    "default": {"model": OpenAIError, "description": "The conversation is wrong, or too large."}
}


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

    # The thread of the model calls `read`, and `write` with the answers.
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
    places = [text.index(stop) for stop in body.stops if stop and stop in text]
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
    ends = _word_ends(text)
    if text:
        ends = [*ends[:-1], len(text)]
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
