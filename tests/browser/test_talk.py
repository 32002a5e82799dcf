"""Talk: a model that writes replies."""

import json

import pytest

from tests.browser.fakes import OPENINGS
from tests.browser.steps import (
    copied,
    edit,
    open_menu,
    open_tab,
    press,
    said,
    say,
    wait_until_idle,
)

expect = pytest.importorskip("playwright.sync_api").expect


def test_what_was_attended_to_is_closed_until_opened(page, talk):
    say(talk, "tea ?", "you said: tea ?")
    explanation = talk.locator(".explanation")
    assert explanation.is_hidden()
    talk.locator(".fold > summary", has_text="What it attended to").click()
    press(talk, "attention while writing said:")
    assert explanation.locator(".turns.shown li").last.get_attribute("data-who") == "you"


def test_copy_has_the_request_that_was_answered(page, talk):
    open_menu(talk, "Copy")
    press(talk, "JSON")
    expect(talk.locator(".copied")).to_have_text("Say something first.")
    page.keyboard.press("Escape")
    say(talk, "tea ?", "you said: tea ?")
    body = json.loads(copied(talk, "JSON", "JSON"))
    assert body["instances"][0]["turns"] == ["tea ?"]


def test_four_openings_begin_a_conversation(page, talk, models):
    openings = talk.locator(".opening")
    assert openings.all_inner_texts() == OPENINGS
    openings.nth(1).click()
    talk.locator(".talk li", has_text="you said: hi").wait_for()
    assert talk.locator(".openings").is_hidden()
    assert models["fake-generation"].asked[-1] == {
        "turns": ["hi"],
        "decode": "",  # the model's own search
    }
    wait_until_idle(talk)
    press(talk, "Start again")
    assert openings.first.is_visible() and said(talk) == []


def test_replies_have_per_cent_relative_among_those_shown(page, talk):
    say(talk, "tea ?", "you said: tea ?")
    replies = talk.locator(".ranked li").all_inner_texts()
    assert replies == ["82 %\nyou said: tea ?", "18 %\nsomething else"]
    assert "Per cent: of the replies shown" in talk.inner_text()


def test_the_words_of_a_reply_are_shown_as_they_come(page, talk, models):
    models["fake-generation"].held.add("attention")
    say(talk, "tea with milk")
    page.wait_for_timeout(200)
    assert talk.locator(".talk li").last.get_attribute("aria-busy") == "true"
    assert talk.locator(".spinner").is_visible()
    page.keyboard.press("Tab")
    models["fake-generation"].held.clear()
    talk.locator(".talk li", has_text="you said: tea with milk").wait_for()
    shown = []
    page.expose_function("note", lambda text: shown.append(text))
    page.evaluate("""() => new MutationObserver(() => {
        note(document.querySelector('#panel-generation .talk li:last-child').textContent);
    }).observe(document.querySelector('#panel-generation .talk'), {subtree: true, childList: true})
    """)
    say(talk, "one two three", "you said: one two three")
    assert {"you", "you said:", "you said: one"} <= {text.strip() for text in shown}


def test_the_language_is_a_switch_above_the_conversation(page, talk, models):
    languages = talk.get_by_role("radiogroup", name="Model")
    assert languages.inner_text().split() == ["English", "中文"]
    top = languages.bounding_box()["y"]
    assert top < talk.locator(".talk").bounding_box()["y"]
    expect(talk.get_by_label("English")).to_be_checked()
    languages.get_by_text("中文").click()
    expect(talk.locator(".about")).to_contain_text("fake, trained")
    say(talk, "hi", "you said: hi")
    assert models["a-other-talk"].asked[-1]["turns"] == ["hi"]


def test_an_earlier_sentence_is_edited_and_the_talk_continues_from_it(page, talk, models):
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


def test_starting_again_stops_what_is_under_way_and_a_stopped_sentence_is_kept(talk, models):
    models["fake-generation"].held.add("answer")
    say(talk, "no")
    press(talk, "Start again")
    assert talk.locator(".talk li").count() == 0
    assert talk.locator(".spinner").is_hidden()
    say(talk, "stop this")
    press(talk, "Stop")
    expect(talk.locator("[name=text]")).to_have_value("stop this")
    models["fake-generation"].held.clear()
    press(talk, "Say")
    talk.locator(".talk li", has_text="you said: stop this").wait_for()
    assert said(talk) == ["stop this", "you said: stop this"]


def test_an_input_method_may_compose_with_enter(talk):
    field = talk.locator("[name=text]")
    field.fill("hi")
    for composing, count in (({"isComposing": True}, 0), ({"keyCode": 229}, 0), ({}, 2)):
        field.dispatch_event("keydown", {"key": "Enter", **composing})
        assert talk.locator(".talk li").count() == count


def test_settings_of_the_search_are_sent_and_a_second_model_replies_too(page, talk, models):
    open_menu(talk, "Settings")
    assert talk.get_by_label("Temperature").is_disabled()
    talk.get_by_label("How it writes").select_option("sample")
    talk.get_by_label("Compare with").select_option("a-other-talk")
    page.keyboard.press("Escape")
    say(talk, "tea ?", "you said: tea ?")
    other = talk.get_by_role("region", name="Reply of Title of a-other-talk")
    expect(other.locator(".bubble")).to_have_text("you said: tea ?")
    decode = models["fake-generation"].asked[-1]["decode"]
    assert decode == "sample=true,temperature=0.8,top_p=0.9"
    open_menu(talk, "Settings")
    talk.get_by_label("Temperature").fill("5")
    page.keyboard.press("Escape")
    say(talk, "milk")
    expect(talk.locator(".error")).to_have_text("Temperature is a number from 0.1 to 2.")
    expect(talk.get_by_label("Temperature")).to_be_focused()


def test_back_returns_to_a_talk_with_the_reply_that_came_meanwhile(page, talk, models):
    models["fake-generation"].held.add("answer")
    say(talk, "tea ?")
    open_tab(page, "Ask a text")
    models["fake-generation"].held.clear()
    reply = page.locator("#panel-generation .talk li", has_text="you said: tea ?")
    reply.wait_for(state="attached")
    page.go_back()
    talk.locator(".result .ranked").wait_for()
    assert said(talk) == ["tea ?", "you said: tea ?"]
    page.reload()
    expect(page.locator("#panel-generation .talk li")).to_have_text(["tea ?", "you said: tea ?"])


HOSTILE = [
    "<img src=x onerror=alert(1)><script>alert(2)</script>",
    "\u202eright to left\u202c שלום عالم",
    "👩‍👩‍👧‍👦 🏳️‍🌈 e\u0301\u0301\u0301",
    "x" * 50_000,
]


def test_hostile_text_stays_text(page, talk):
    for text in HOSTILE:
        press(talk, "Start again")
        say(talk, text)
        talk.locator(".talk li[data-who=bot]:not([aria-busy])").wait_for()
        wait_until_idle(talk)
        assert talk.locator(".talk li[data-who=you]").inner_text() == text
        assert talk.locator(".talk img, .talk script").count() == 0
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
