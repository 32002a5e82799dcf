"""Talk: a model that writes replies."""

import json

import pytest

from tests.browser.fakes import OPENINGS
from tests.browser.steps import copied, edit, open_menu, open_tab, press, said, say, wait_until_idle

expect = pytest.importorskip("playwright.sync_api").expect


def test_an_opening_begins_a_conversation_whose_request_is_copied(talk, models):
    openings = talk.locator(".opening")
    assert openings.all_inner_texts() == OPENINGS
    open_menu(talk, "Copy")
    press(talk, "JSON")
    expect(talk.locator(".copied")).to_have_text("Say something first.")
    talk.page.keyboard.press("Escape")
    openings.nth(1).click()
    talk.locator(".talk li", has_text="you said: hi").wait_for()
    assert talk.locator(".openings").is_hidden()
    # "" is the model's own search.
    assert models["fake-generation"].asked[-1] == {"turns": ["hi"], "decode": ""}
    wait_until_idle(talk)
    body = json.loads(copied(talk, "JSON", "JSON"))
    assert body["instances"][0]["turns"] == ["hi"]

    # Per cent are relative among the replies shown; what was attended to is closed until opened.
    replies = talk.locator(".ranked li").all_inner_texts()
    assert replies == ["82 %\nyou said: hi", "18 %\nsomething else"]
    explanation = talk.locator(".explanation")
    assert explanation.is_hidden()
    talk.locator(".fold > summary", has_text="What it attended to").click()
    press(talk, "attention while writing said:")
    assert explanation.locator(".turns.shown li").last.get_attribute("data-who") == "you"
    press(talk, "Start again")
    assert openings.first.is_visible() and said(talk) == []


def test_languages_are_a_switch_and_settings_of_the_search_are_sent(talk, models):
    languages = talk.get_by_role("radiogroup", name="Model")
    assert languages.inner_text().split() == ["English", "中文"]
    expect(talk.get_by_label("English")).to_be_checked()
    open_menu(talk, "Settings")
    assert talk.get_by_label("Temperature").is_disabled()
    talk.get_by_label("How it writes").select_option("sample")
    talk.page.keyboard.press("Escape")
    say(talk, "tea ?", "you said: tea ?")
    decode = models["fake-generation"].asked[-1]["decode"]
    assert decode == "sample=true,temperature=0.8,top_p=0.9"
    open_menu(talk, "Settings")
    talk.get_by_label("Temperature").fill("5")
    talk.page.keyboard.press("Escape")
    say(talk, "milk")
    expect(talk.locator(".error")).to_have_text("Temperature is a number from 0.1 to 2.")
    expect(talk.get_by_label("Temperature")).to_be_focused()
    talk.get_by_label("Temperature").fill("1")
    talk.page.keyboard.press("Escape")
    languages.get_by_text("中文").click()
    expect(talk.locator(".talk li")).to_have_count(0)  # a new conversation
    say(talk, "hi", "you said: hi")
    assert models["a-other-talk"].asked[-1]["turns"] == ["hi"]


def test_an_earlier_sentence_is_edited_and_the_talk_continues_from_it(talk, models):
    say(talk, "hi", "you said: hi")
    say(talk, "tea ?", "you said: tea ?")
    press(talk, "Edit “hi”")
    talk.get_by_label("What you said").press("Escape")
    assert said(talk) == ["hi", "you said: hi", "tea ?", "you said: tea ?"]
    models["fake-generation"].held.add("answer")
    edit(talk, "hi", "good evening")
    talk.locator(".talk li", has_text="good evening").wait_for()
    press(talk, "Stop")
    assert talk.get_by_label("What you said").input_value() == "good evening"
    press(talk, "Cancel")
    models["fake-generation"].held.clear()
    edit(talk, "hi", "good morning")
    talk.locator(".talk li", has_text="you said: good morning").wait_for()
    wait_until_idle(talk)
    assert said(talk) == ["good morning", "you said: good morning"]
    say(talk, "and now", "you said: and now")
    turns = ["good morning", "you said: good morning", "and now"]
    assert models["fake-generation"].asked[-1]["turns"] == turns


def test_a_stopped_sentence_is_kept_and_back_returns_to_a_reply_that_came_meanwhile(talk, models):
    page = talk.page
    held = models["fake-generation"].held
    held.add("answer")
    say(talk, "no")
    assert talk.locator(".talk li").last.get_attribute("aria-busy") == "true"
    press(talk, "Start again")
    assert talk.locator(".talk li").count() == 0
    say(talk, "stop this")
    press(talk, "Stop")
    expect(talk.locator("[name=text]")).to_have_value("stop this")
    press(talk, "Say")
    open_tab(page, "Ask a text")
    held.clear()
    reply = page.locator("#panel-generation .talk li", has_text="you said: stop this")
    reply.wait_for(state="attached")
    page.go_back()
    talk.locator(".result .ranked").wait_for()
    assert said(talk) == ["stop this", "you said: stop this"]
    page.reload()
    items = page.locator("#panel-generation .talk li")
    expect(items).to_have_text(["stop this", "you said: stop this"])


HOSTILE = [
    "<img src=x onerror=alert(1)><script>alert(2)</script>",
    "\u202eright to left\u202c שלום عالم",
    "👩‍👩‍👧‍👦 🏳️‍🌈 e\u0301\u0301\u0301",
    "x" * 50_000,
]


def test_hostile_text_stays_text_and_an_input_method_may_compose_with_enter(talk):
    field = talk.locator("[name=text]")
    field.fill("hi")
    for composing, count in (({"isComposing": True}, 0), ({"keyCode": 229}, 0), ({}, 2)):
        field.dispatch_event("keydown", {"key": "Enter", **composing})
        assert talk.locator(".talk li").count() == count
    for text in HOSTILE:
        press(talk, "Start again")
        say(talk, text)
        talk.locator(".talk li[data-who=bot]:not([aria-busy])").wait_for()
        wait_until_idle(talk)
        assert talk.locator(".talk li[data-who=you]").inner_text() == text
        assert talk.locator(".talk img, .talk script").count() == 0
        assert talk.page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    expect(talk.locator(".remark")).to_have_text(
        "This reply may make no sense: it knows no word of it."
    )
