"""The page of the OpenAPI document, Swagger UI, under the content policy."""

import pytest
from echo import Echo

from colloquy.serving.models import Served

expect = pytest.importorskip("playwright.sync_api").expect


def test_a_request_is_tried_out(server, open_page):
    facts = {"task": "echo", "examples": [{"title": "A text", "instance": {"text": "abc"}}]}
    model = Served("echo", Echo, facts, Echo)
    assert model.predictor
    server.models = {"echo": model}
    server.stop()
    server.start()
    page = open_page(f"{server.url}docs")
    refused = []
    page.on("console", lambda message: refused.append(message.text))
    operation = page.locator("#operations-echo-predict_echo")
    operation.click()
    operation.get_by_role("button", name="Try it out").click()
    assert '"text": "abc"' in operation.locator("textarea").input_value()
    operation.get_by_role("button", name="Execute").click()
    answer = operation.locator(".live-responses-table")
    expect(answer.locator(".response-col_status").last).to_contain_text("200")
    expect(answer).to_contain_text('"length": 3')
    assert [text for text in refused if "Content Security Policy" in text] == []
