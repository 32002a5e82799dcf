"""Each tab by mouse and keyboard, wide and narrow: examples, waiting and stopping, attention,
links, copies, files, a server that goes and comes back, hostile text. With AXE=axe.min.js in the
environment, axe looks for barriers too."""

import json
import os
import pathlib
import re
import urllib.parse

import pytest

from tests.browser.conftest import CHROMIUM, TABS, open_tab, opened

expect = pytest.importorskip("playwright.sync_api").expect

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not CHROMIUM, reason="no Chromium here"),
]

HOSTILE = [
    "<img src=x onerror=alert(1)><script>alert(2)</script>",
    "\u202eright to left\u202c שלום عالم",
    "👩‍👩‍👧‍👦 🏳️‍🌈 e\u0301\u0301\u0301",
    "x" * 100_000,
]
NAMES = ["no", "perhaps ✓ true response", "the one at the window"]
COLOURS = """each => [
    getComputedStyle(each).borderTopColor,
    getComputedStyle(document.body).backgroundColor,
]"""
FOCUSED = "document.activeElement.ariaLabel || document.activeElement.textContent"
DROP = """([selector, name, text]) => {
    const dataTransfer = new DataTransfer();
    if (name) dataTransfer.items.add(new File([text], name, { type: "text/plain" }));
    else dataTransfer.setData("text/plain", text);
    const at = document.querySelector(selector);
    const options = { dataTransfer, bubbles: true };
    for (const type of ["dragover", "drop"]) at.dispatchEvent(new DragEvent(type, options));
}"""
COPY = "([text, count]) => navigator.clipboard.writeText(text.repeat(count))"


def unfold(panel):
    panel.locator(".settings").evaluate("fold => { fold.open = true; }")


def press(panel, name):
    panel.get_by_role("button", name=name, exact=True).click()


def fields(panel, kind):
    return panel.locator(f".give .{kind} textarea").evaluate_all(
        "all => all.map((each) => each.value)"
    )


def say(panel, text, reply=None):
    """Says `text`, or what the field has, and waits until the reply is there and the next thing can
    be said.
    """
    if text is not None:
        panel.locator("[name=text]").fill(text)
    press(panel, "Say")
    if reply:
        panel.locator(".talk li", has_text=reply).wait_for()
        panel.locator(".spinner").wait_for(state="hidden")


def edit(panel, text, new):
    press(panel, f"Edit “{text}”")
    panel.get_by_label("What you said").fill(new)
    press(panel, "Say this instead")


def rank(panel, button="Rank"):
    press(panel, button)
    ranked = panel.locator(".ranked button")
    ranked.first.wait_for()
    return ranked


def ask(reading, question, text=None):
    """Asks a text, or the one that is there, and waits until the answer is marked."""
    if text is not None:
        reading.get_by_label("Text", exact=True).fill(text)
    reading.get_by_label("Question").fill(question)
    press(reading, "Ask")
    mark = reading.locator("mark", has_text=question.split()[-1].strip("?"))
    mark.wait_for()
    return mark


def said(panel):
    return panel.locator(".talk li").all_inner_texts()


def run_before_request(program):
    names = {}
    exec(program.split("request = ")[0], names)
    return names


def copied(panel, kind):
    press(panel, kind)
    panel.get_by_text(f"Copied: {kind}.").wait_for()
    return panel.page.evaluate("navigator.clipboard.readText()")


def light(colour):
    """Relative luminance of `rgb(...)`, plus the .05 of WCAG's contrast ratio."""
    weighted = zip((0.2126, 0.7152, 0.0722), re.findall(r"\d+", colour), strict=False)
    return 0.05 + sum(weight * (int(part) / 255) ** 2.2 for weight, part in weighted)


# === Examples and models ===


def test_the_example_is_ranked_its_true_response_is_marked_and_explained(page, ranking):
    assert "fake, trained on a test; dev: R10@1 0.500." in ranking.locator(".about").text_content()
    assert "ranked first of 10" in ranking.locator(".about abbr").get_attribute("title")
    assert fields(ranking, "turns") == ["hi", "which table ?"]
    assert ranking.locator(".truth").count() == 0
    ranked = rank(ranking)
    softmax = ["99 %", "1 %", "< 1 %"]  # of -2, -7 and -21
    assert [text.split("\n")[0] for text in ranked.all_inner_texts()] == softmax
    assert [text.split("\n")[-1] for text in ranked.all_inner_texts()] == NAMES
    assert ranked.first.get_attribute("aria-pressed") == "true"
    ranked.nth(2).click()
    ranking.get_by_role("button", name="matches of table").wait_for(state="detached")
    ranking.get_by_role("button", name="matches of window").wait_for()
    assert ranked.nth(2).get_attribute("aria-pressed") == "true"
    assert re.fullmatch(r"\d+(\.\d\d)? s", ranking.locator(".took").inner_text())
    top = ranked.first.bounding_box()["y"]
    assert 0 <= top <= page.viewport_size["height"]  # without scrolling by hand
    assert "an index of 2,345 responses is searched" in ranking.inner_text()
    press(ranking, "Ask the index instead")
    expect(ranked).to_have_count(2)
    index = ["> 99 %\ntoo\nonce said to: oh / so", "< 1 %\nof the index\nonce said to: hi"]
    assert ranked.all_inner_texts() == index


def test_turns_and_candidates_are_rows_and_of_many_lines_the_first(page, ranking, models):
    page.evaluate(COPY, ["so\n", 1001])
    press(ranking, "Add a response")
    ranking.get_by_label("Response 4", exact=True).press("Control+v")
    ranking.get_by_text("The text has 1,001 lines: the first 200 are here.").wait_for()
    assert len(fields(ranking, "candidates")) == 3 + 200
    page.evaluate(DROP, [".candidate-box", "mine.txt", "so\n" * 1000])
    ranking.get_by_text("The text has 1,000 lines: the first 200 are here.").wait_for()
    assert len(fields(ranking, "candidates")) == 200
    ranking.get_by_label("Example").select_option("A table")
    ranking.get_by_role("button", name="Remove turn 1").click()
    ranking.get_by_label("Turn 1", exact=True).fill("is there a table ?")
    press(ranking, "Add a response")
    ranking.get_by_label("Response 4", exact=True).fill("there is")
    page.evaluate(DROP, [".candidate-box", "mine.txt", "one\n\n two \n"])
    ranking.get_by_label("Response 3", exact=True).wait_for(state="detached")
    rank(ranking)
    assert models["fake-selection"].asked[0] == {
        "turns": ["is there a table ?"],
        "candidates": ["one", "two"],
    }
    assert ranking.locator(".truth").count() == 0


def test_rows_are_pasted_in_their_place_and_keep_the_focus(page, ranking):
    press(ranking, "Remove turn 1")
    ranking.get_by_label("Turn 1", exact=True).fill("")
    press(ranking, "Add a turn")
    ranking.get_by_label("Turn 2", exact=True).fill("last")
    page.evaluate(COPY, ["one\ntwo", 1])
    ranking.get_by_label("Turn 1", exact=True).press("Control+v")
    expect(ranking.get_by_label("Turn 3", exact=True)).to_have_value("last")
    assert fields(ranking, "turns") == ["one", "two", "last"]
    for key, focused in (("Shift+Tab", "Move turn 2"), ("Tab", "Turn 2"), ("Tab", "Remove turn 2")):
        page.keyboard.press(key)
        assert page.evaluate(FOCUSED) == focused
    for focused in ("Remove turn 2", "Remove turn 1", "Add a turn"):
        page.keyboard.press("Enter")
        assert page.evaluate(FOCUSED) == focused


def test_a_chosen_response_is_explained_or_the_error_is_in_its_place(page, ranking, models):
    models["fake-selection"].held.add("attention")
    ranked = rank(ranking)
    for button, stopped in ((ranked.nth(1), True), (ranked.nth(2), False)):
        button.click()
        expect(ranking.locator(".get")).to_have_attribute("aria-busy", "false")
        expect(ranking.locator(".explanation")).to_have_attribute("aria-busy", "true")
        if stopped:
            press(ranking, "Stop")
            expect(ranking.locator(".explanation")).to_have_attribute("aria-busy", "false")
            assert page.evaluate(FOCUSED) == "Rank"
    models["fake-selection"].held.clear()
    ranking.get_by_role("button", name="matches of window").wait_for()
    assert ranking.locator(".spinner").is_hidden()
    models["fake-selection"].matches = lambda *_: [float("nan")]
    ranked.nth(1).click()
    error = ranking.locator(".explanation").get_by_role("alert")
    expect(error).to_contain_text("infinity or NaN")
    expect(error).to_be_in_viewport()
    assert ranked.count() == 3 and ranking.locator(".explanation section").count() == 0


def test_the_default_model_is_first_and_one_that_cannot_be_loaded_is_not_described(
    page, talk, models
):
    models["a-other-talk"].damage = "it is damaged"
    unfold(talk)
    titles = talk.locator("[name=model] option").all_inner_texts()
    assert titles == ["Title of fake-generation", "Title of a-other-talk"]
    press(talk, "Model card")
    assert (
        page.get_by_role("dialog").locator("pre").inner_text() == "# A card\n\nWhat it cannot do."
    )
    page.keyboard.press("Escape")
    assert page.get_by_role("dialog").count() == 0
    talk.locator("[name=model]").select_option("a-other-talk")
    talk.get_by_text("it is damaged").wait_for()
    assert (
        talk.locator(".about").inner_text() == ""
        and talk.get_by_role("button", name="Model card").is_hidden()
    )


def test_a_model_is_loaded_once_unless_stopped_and_nothing_is_typed_meanwhile(page, models):
    asked, tab = [], page.get_by_role("tab", name="Talk")
    page.on("request", lambda request: asked.append(request.url.rpartition("/models/")[2]))
    models["fake-generation"].held.add("loading")
    tab.click()
    panel = page.get_by_role("tabpanel")
    with page.expect_event("requestfailed"):
        press(panel, "Stop")
    panel.get_by_text("The model is not loaded. Choose the tab again to load it.").wait_for()
    for name in ("Talk", "Talk", "Ask a text", "Talk"):
        page.get_by_role("tab", name=name).click()
    panel.get_by_text("Loading the model…").wait_for()
    assert panel.locator("[inert] [name=text]").count() == 1
    models["fake-generation"].held.clear()
    panel.locator("[name=text]").click()  # as soon as it can be
    page.keyboard.type(" and milk")
    assert panel.locator("[name=text]").input_value() == "tea ? and milk"
    assert asked.count("fake-generation/metadata") == 2  # once before it was stopped, once after
    page.go_back()
    expect(page.get_by_role("tab", name="Ask a text")).to_have_attribute("aria-selected", "true")


def test_while_a_model_loads_another_to_compare_with_and_another_tab_can_be_chosen(
    page, talk, models
):
    models["a-other-talk"].held.add("loading")
    unfold(talk)
    talk.locator("[name=model]").select_option("a-other-talk")
    talk.get_by_label("Compare with").select_option("fake-generation")
    talk.get_by_text("Loading the model…").wait_for()
    assert talk.locator(".get").get_attribute("aria-busy") == "true"
    open_tab(page, "Ask a text")
    entries = page.evaluate("history.length")
    models["a-other-talk"].held.clear()
    page.locator("#panel-generation .get[aria-busy=false]").wait_for(state="attached")
    assert page.evaluate("history.length") == entries


def test_rows_are_dragged_and_moved_by_keyboard(page, ranking):
    first, last = (ranking.get_by_label(f"Move response {i}", exact=True) for i in (1, 3))
    first.hover()
    page.mouse.down()
    last.hover(position={"x": 9, "y": 30})  # past its middle
    page.mouse.up()
    assert fields(ranking, "candidates") == ["no", "perhaps", "the one at the window"]
    ranking.get_by_label("Response 3", exact=True).press("Alt+ArrowUp")
    assert fields(ranking, "candidates") == ["no", "the one at the window", "perhaps"]
    assert page.evaluate("document.activeElement.ariaLabel") == "Response 2"
    assert page.get_by_role("status").first.inner_text() == "Response moved to place 2 of 3."
    ranking.get_by_label("Move turn 2", exact=True).press("ArrowUp")
    ranking.get_by_label("Turn 1", exact=True).press("Alt+ArrowUp")  # it is the first
    assert fields(ranking, "turns") == ["which table ?", "hi"]
    page.wait_for_url("**which+table*hi**")


# === Reading ===


def test_the_answer_is_marked_and_words_are_shaded_where_they_are(reading):
    reading.get_by_label("Question").press("Enter")
    reading.locator("mark").wait_for()
    assert reading.locator("mark").inner_text() == "Paris" and "✓ correct" in reading.inner_text()
    weights = reading.locator(".passage .word").evaluate_all(
        "all => all.map((each) => [each.textContent, each.style.getPropertyValue('--w')])"
    )
    assert dict(map(tuple, weights))["Ann"] == "0.000" and weights[-2:] == [
        ["Paris", "1.000"],
        [".", "1.000"],
    ]
    press(reading, "attention to lives")
    assert (
        reading.locator(".passage .word").first.evaluate(
            "each => each.style.getPropertyValue('--w')"
        )
        == "0.100"
    )
    assert reading.locator(".passage").inner_text() == "Ann lives in Rome. Bob lives in Paris."
    mark = ask(reading, "Who lives in Rome?", "👩 Ann lives in Rome. Bob lives in Paris.")
    assert mark.inner_text() == "Rome"  # after a character of two UTF-16 units


def test_the_window_that_was_read_is_shaded(reading, models):
    window = {
        "rows": ["start", "end"],
        "columns": ["Ann", "lives", "in", "Bonn"],
        "weights": [[0, 0, 0, 1]] * 2,
    }
    models["fake-reading_comprehension"].flow = lambda *_: [{"title": "probabilities", **window}]
    ask(reading, "Who lives in Bonn", "Ann lives in Rome. Ann lives in Bonn.")
    assert reading.locator(".passage .word").all_inner_texts() == window["columns"]
    assert (
        reading.locator(".passage > span").evaluate("each => each.firstChild.textContent")
        == "Ann lives in Rome. "
    )


def test_a_uniform_map_is_pale(reading, models):
    words = "Ann lives near Rome under green hills".split()
    even, peak = [1 / len(words)] * len(words), [float(word == "Rome") for word in words]
    maps = {
        "title": "probabilities",
        "rows": ["start", "end"],
        "columns": words,
        "weights": [peak, even],
    }
    flow = {
        "title": "p to q",
        "rows": words,
        "columns": ["Where"],
        "weights": [[weight / 7] for weight in even],
    }
    models["fake-reading_comprehension"].flow = lambda *_: [maps, flow]
    ask(reading, "Where is Rome", " ".join(words))
    press(reading, "attention to Where")
    shades = """all => all.map((each) => {
        const colour = getComputedStyle(each).backgroundColor;
        return Number(colour.match(/[\\d.]+/g)[3] ?? 1);
    })"""
    first, *rest = reading.locator(".passage .word").evaluate_all(shades)
    assert set(rest) == {first} and 0 < first < 0.15
    scale = reading.locator(".legend .word").evaluate_all(shades)  # of 0, .01, .1, .3 and 1
    assert scale[1] < first < scale[2] < scale[4] / 2


def test_a_doubtful_answer_is_called_so(reading):
    reading.get_by_label("Question").fill("what is xyzzy?")
    press(reading, "Ask")
    reading.get_by_text("The text may not answer this. Its best words: xyzzy").wait_for()
    assert (
        "Confidence 75 %" in reading.inner_text()
        and "does not know 12.5 % of the words" in reading.inner_text()
    )
    assert reading.locator(".ranked li").all_inner_texts() == ["75 %\nxyzzy", "13 %\nAnn"]


def test_a_text_is_dropped_or_pasted_unless_it_would_freeze_the_page(page, reading):
    field, most = (
        reading.locator("[name=passage]"),
        "A text may have 200,000 characters at most. Received:",
    )
    length = len(field.input_value())
    page.evaluate(COPY, ["x", 200_000])
    field.press("Control+v")
    reading.get_by_text(f"{most} {200_000 + length:,}.").wait_for()
    for name, count in (("notes.txt", 200_001), (None, 200_002 - length)):  # a file, a text
        page.evaluate(DROP, ["[name=passage]", name, "x" * count])
        reading.get_by_text(f"{most} {200_001 if name else 200_002:,}.").wait_for()
    assert len(field.input_value()) == length
    page.evaluate(DROP, ["[name=passage]", "notes.txt", "Eve lives in Bonn."])
    expect(reading.locator("[name=passage]")).to_have_value("Eve lives in Bonn.")
    reading.locator("input[type=file]").set_input_files(
        {"name": "b.txt", "mimeType": "text/plain", "buffer": b"Bob."}
    )
    expect(reading.locator("[name=passage]")).to_have_value("Bob.")
    # of a folder
    page.evaluate("() => { File.prototype.text = () => Promise.reject(new DOMException()); }")
    page.evaluate(DROP, ["[name=passage]", "folder", ""])
    reading.get_by_text("This file cannot be read.").wait_for()


# === Conversations ===


def test_talk_continues_and_starts_again(talk, models):
    assert said(talk) == ["hi", "hello"]  # the example's last turn is in the field
    say(talk, None, "you said: tea ?")
    asked = models["fake-generation"].asked
    assert asked[-1] == {
        "turns": ["hi", "hello", "tea ?"],
        "decode": "",
    }
    assert talk.locator(".ranked li").all_inner_texts() == [
        "0.50\nyou said: tea ?",
        "-1.00\nsomething else",
    ]
    press(talk, "attention while writing said:")
    # on its side of the talk
    assert talk.locator(".turns.shown li").last.get_attribute("data-who") == "you"
    assert (
        talk.locator(".turns.shown .word").last.evaluate(
            "each => each.style.getPropertyValue('--w')"
        )
        == "1.000"
    )
    unfold(talk)
    assert talk.get_by_label("Temperature").is_disabled()
    talk.get_by_label("Search").select_option("sample")
    assert talk.get_by_label("Temperature").is_enabled()
    say(talk, "again", "you said: again")
    assert asked[-1]["decode"] == "sample=true,temperature=0.8,top_p=0.9"
    assert asked[-1]["turns"] == ["hi", "hello", "tea ?", "you said: tea ?", "again"]
    press(talk, "Start again")
    assert talk.locator(".talk li").count() == 0
    talk.get_by_label("Temperature").fill("5")
    talk.locator(".settings").evaluate("fold => { fold.open = false; }")
    say(talk, "hi")
    # where it is wrong
    assert talk.get_by_label("Temperature").evaluate("field => field === document.activeElement")


def test_a_silent_reply_stays_in_the_talk(talk, models):
    replies = iter(["", "so", "well"])
    models["fake-generation"].answer = lambda _: {"response": next(replies), "best": []}
    models["fake-generation"].weights = lambda *_: []
    say(talk, None, "(silence)")
    say(talk, "again", "so")
    edit(talk, "again", "anew")
    talk.locator(".talk li", has_text="well").wait_for()
    assert models["fake-generation"].asked[-1]["turns"] == ["hi", "hello", "tea ?", "", "anew"]


def test_an_earlier_sentence_is_edited_and_the_talk_continues_from_it_unless_stopped(
    page, talk, models
):
    models["fake-generation"].held.add("answer")
    edit(talk, "hi", "good evening")
    talk.locator(".talk li", has_text="good evening").wait_for()
    press(talk, "Stop")
    assert talk.get_by_label("What you said").input_value() == "good evening"
    press(talk, "Cancel")
    assert said(talk) == ["hi", "hello"] and talk.locator("[name=text]").input_value() == "tea ?"
    models["fake-generation"].held.clear()
    say(talk, None, "you said: tea ?")
    press(talk, "Edit “hi”")
    talk.get_by_label("What you said").press("Escape")
    assert said(talk) == ["hi", "hello", "tea ?", "you said: tea ?"]
    page.keyboard.press("Enter")  # the focus is on the button again
    talk.get_by_label("What you said").fill("good evening")
    page.keyboard.press("Enter")
    talk.locator(".talk li", has_text="you said: good evening").wait_for()
    talk.locator(".spinner").wait_for(state="hidden")
    assert said(talk) == ["good evening", "you said: good evening"]
    say(talk, "and now", "you said: and now")
    asked = [instance["turns"] for instance in models["fake-generation"].asked[-2:]]
    assert asked == [["good evening"], ["good evening", "you said: good evening", "and now"]]


def test_an_input_method_may_compose_with_enter(talk):
    press(talk, "Edit “hi”")
    for composing, edits, count in (
        ({"isComposing": True}, 1, 2),
        ({"keyCode": 229}, 1, 2),
        ({}, 0, 4),
    ):
        talk.get_by_label("What you said").dispatch_event("keydown", {"key": "Escape", **composing})
        talk.locator("[name=text]").dispatch_event("keydown", {"key": "Enter", **composing})
        assert (talk.get_by_label("What you said").count(), talk.locator(".talk li").count()) == (
            edits,
            count,
        )


def test_a_reply_appears_word_by_word_and_the_page_waits(page, talk, models):
    models["fake-generation"].held.add("answer")
    press(talk, "Start again")
    talk.locator("[name=text]").fill("tea")
    talk.locator("[name=text]").press("Enter")
    assert talk.locator(".talk li").first.inner_text() == "tea"  # at once
    assert (
        talk.locator(".get").get_attribute("aria-busy") == "true"
        and talk.locator(".spinner").is_visible()
    )
    talk.get_by_text("you said:", exact=True).wait_for()  # its last word is missing
    page.keyboard.type("and milk")  # the focus is where it was
    models["fake-generation"].held.clear()
    talk.locator(".talk li", has_text="you said: tea").wait_for()
    talk.locator(".spinner").wait_for(state="hidden")
    assert talk.locator("[name=text]").input_value() == "and milk"
    assert talk.locator(".get").get_attribute("aria-busy") == "false"


def test_starting_again_and_another_example_stop_what_is_under_way(page, models):
    for name in ("fake-generation", "fake-selection"):
        models[name].held.add("answer")
    panel = open_tab(page, "Talk")
    press(panel, "Say")
    press(panel, "Start again")
    assert panel.locator(".talk li").count() == 0 and panel.locator(".spinner").is_hidden()
    say(panel, "stop this")
    press(panel, "Stop")
    models["fake-generation"].held.clear()
    say(panel, None, "you said: stop this")  # it was kept
    assert said(panel) == ["stop this", "you said: stop this"]
    panel = open_tab(page, "Pick a response")
    press(panel, "Rank")
    panel.get_by_label("Example").select_option("Weather")
    models["fake-selection"].held.clear()
    assert fields(panel, "turns") == ["is it cold ?"]
    assert rank(panel).count() == 2  # no late answer


def test_a_table_is_booked_with_the_history_kept_by_the_page(booking, models):
    for text, reply in (
        ("hi", "turn 1: noted"),
        ("", "turn 3: noted"),
        ("search", "what about casa"),
    ):
        say(booking, text, reply)
    assert "api_call italian\n1 fact found" in booking.locator(".talk").inner_text()
    assert booking.locator(".memories tbody tr").count() == 5
    say(booking, "good", "turn 10: noted")
    history = models["fake-dialog"].asked[-1]["history"]
    speakers = ["user", "bot", "user", "bot", "user", "bot", "fact", "user", "bot", "user"]
    assert [each["speaker"] for each in history] == speakers[: len(history)]
    booking.locator(".knowledge summary").click()
    booking.get_by_label("Find").fill("italian")
    booking.get_by_label("Find").press("Enter")  # says nothing
    assert booking.locator(".facts div").all_inner_texts() == ["casa R_cuisine italian"]
    assert (
        models["fake-dialog"].asked[-1]["history"] == history
        and booking.locator(".spinner").is_hidden()
    )
    edit(booking, "search", "wait")
    booking.locator(".talk li", has_text="turn 5: noted").wait_for()
    texts = ["hi", "turn 1: noted", "<SILENCE>", "turn 3: noted", "wait"]
    assert said(booking) == [*texts[:2], "(silence)", *texts[3:], "turn 5: noted"]
    assert [each["text"] for each in models["fake-dialog"].asked[-1]["history"]] == texts


def test_all_that_is_remembered_can_be_shown(page, booking, models):
    maps = {
        "rows": [f"fact {i}" for i in range(12)],
        "columns": ["hop 1"],
        "weights": [[i / 66] for i in range(12)],
    }
    models["fake-dialog"].weights = lambda *_: [{"title": "memories", **maps}]
    say(booking, "hi", "turn 1: noted")
    press(booking, "Show 2 more, with smaller weights")
    assert page.evaluate(FOCUSED) == "Sentences in memory"
    assert booking.locator(".memories tbody th").all_inner_texts() == maps["rows"]


def test_two_models_answer_the_same_and_a_reply_is_kept_if_the_second_fails(page, models):
    panel = open_tab(page, "Talk")
    unfold(panel)
    panel.get_by_label("Compare with").select_option("a-other-talk")
    say(panel, "tea ?")
    other = panel.get_by_role("region", name="Reply of a-other-talk")
    expect(other.locator(".bubble")).to_have_text("you said: tea ?")
    is_beside = other.bounding_box()["x"] > panel.locator(".result").bounding_box()["x"]
    assert is_beside == (page.viewport_size["width"] > 1000)
    models["a-other-talk"].explain = lambda _: {"response": float("nan")}
    say(panel, "milk", "you said: milk")
    panel.locator(".error", has_text="infinity or NaN").wait_for()
    talk, panel = said(panel), open_tab(page, "Ask a text")
    unfold(panel)
    assert panel.get_by_label("Compare with").is_hidden()  # there is one model
    page.go_back()
    page.reload()
    expect(page.locator("#panel-generation .talk li")).to_have_text(talk)  # the reply was kept


# === Address bar and copies ===


def test_a_link_opens_the_same_and_back_returns(page, ranking, browser, server, models):
    ranking.get_by_label("Example").select_option("Weather")
    ranking.get_by_label("Response 1", exact=True).fill("a bit")
    page.wait_for_url("**a+bit**")
    link = copied(ranking, "link")
    page.reload()
    page.get_by_label("Response 1", exact=True).wait_for()
    assert fields(ranking, "candidates") == ["a bit", "yes"]
    ranking.get_by_label("Response 2", exact=True).fill("no")
    models["fake-generation"].held.add("loading")
    # at once: while it is loaded, what was typed last is remembered
    page.get_by_role("tab", name="Talk").click()
    page.wait_for_timeout(400)
    models["fake-generation"].held.clear()
    for _ in range(2):
        open_tab(page, "Talk")  # nothing changes
    page.go_back()
    page.locator("#panel-selection").wait_for()
    expect(ranking.get_by_label("Response 2", exact=True)).to_have_value("no")
    with opened(browser, link) as other:
        assert fields(other.get_by_role("tabpanel"), "candidates") == ["a bit", "yes"]
    with opened(
        browser, f'{server.url}#selection?model=fake-selection&example=0&input={{"turns":[null]}}'
    ) as other:
        # the example
        assert fields(other.get_by_role("tabpanel"), "turns") == ["hi", "which table ?"]


def test_back_returns_to_a_talk_with_the_reply_that_came_meanwhile(page, talk, models):
    models["fake-generation"].held.add("answer")
    press(talk, "Say")
    open_tab(page, "Ask a text")
    models["fake-generation"].held.clear()
    page.locator("#panel-generation .talk li", has_text="you said: tea ?").wait_for(
        state="attached"
    )
    page.go_back()
    talk.locator(".explanation section").wait_for()
    assert said(talk) == ["hi", "hello", "tea ?", "you said: tea ?"]


def test_a_reload_shows_the_silences_of_the_user_and_not_those_in_which_the_bot_continues(
    page, booking, models
):
    turns = [("bot", "i'm on it"), ("user", ""), ("bot", "which food ?")]
    answer = {
        "response": "i'm on it",
        "best": [],
        "said": [{"speaker": by, "text": text} for by, text in turns],
    }
    models["fake-dialog"].answer = lambda _: answer
    for count, text in ((3, "hi"), (6, "")):
        say(booking, text)
        expect(booking.locator(".talk li")).to_have_count(count)
    shown = ["hi", "i'm on it", "which food ?", "(silence)", "i'm on it", "which food ?"]
    assert said(booking) == shown
    booking.locator(".spinner").wait_for(state="hidden")
    page.reload()
    booking.locator(".talk li").first.wait_for()
    assert said(booking) == shown


def test_a_request_is_copied_for_programs(page, ranking, server):
    ranking.get_by_label("Turn 2", exact=True).fill('what\'s "here"?')
    found = {kind: copied(ranking, kind) for kind in ("curl", "Python", "JSON")}
    assert "Authorization" not in str(found)
    body = json.loads(found["JSON"])
    assert body["instances"][0]["turns"] == ["hi", 'what\'s "here"?']
    assert (
        f"{server.url}v1/models/fake-selection:predict" in found["curl"]
        and r"what'\''s" in found["curl"]
    )
    assert run_before_request(found["Python"])["body"] == body  # the literal is Python's
    ranking.get_by_label("Turn 2", exact=True).fill("long " * 2000)
    page.wait_for_url(lambda url: "input=" not in url)  # the history keeps it
    page.reload()
    page.get_by_label("Turn 2", exact=True).wait_for()
    assert fields(ranking, "turns")[1].startswith("long long")


def test_the_page_asks_for_the_key_once(page, ranking, server):
    server.stop()
    server.start("schlüssel")
    press(ranking, "Rank")
    for key, button in (("typed", "Cancel"), ("wrong", "Continue"), ("schlüssel", "Continue")):
        page.get_by_label("Key", exact=True).fill(key)
        page.get_by_role("button", name=button).click()
        if button == "Cancel":
            ranking.get_by_text("expected the server's key").wait_for()
            assert page.evaluate("sessionStorage.length") == 0
            press(ranking, "Rank")
    ranking.locator(".explanation section").wait_for()
    assert page.evaluate("[localStorage.length, ...Object.values(sessionStorage)]") == [
        0,
        "schlüssel",
    ]
    say(open_tab(page, "Talk"), None, "you said: tea ?")
    assert page.get_by_role("dialog").count() == 0 and "schl" not in urllib.parse.unquote(page.url)


def test_copies_have_the_place_of_the_key(browser, server, monkeypatch):
    server.stop()
    server.start("secret")
    monkeypatch.setenv("COLLOQUY_API_KEY", "secret")
    with opened(
        browser, server.url, http_credentials={"username": "", "password": "secret"}
    ) as page:
        panel = page.get_by_role("tabpanel")
        rank(panel)  # the browser has the key
        assert page.get_by_role("dialog").count() == 0
        curl, program = copied(panel, "curl"), copied(panel, "Python")
    assert '-H "Authorization: Bearer $COLLOQUY_API_KEY"' in curl and "secret" not in curl + program
    assert run_before_request(program)["headers"]["Authorization"] == "Bearer secret"


# === Keyboard, sizes, hostile text, errors ===


def test_tabs_are_reached_by_keyboard(page):
    page.get_by_role("tab", name="Pick a response").focus()
    for key, name in (
        ("ArrowRight", "Ask a text"),
        ("End", "Book a table"),
        ("ArrowRight", "Pick a response"),
    ):
        page.keyboard.press(key)
        tab = page.get_by_role("tab", name=name)
        assert tab.get_attribute("aria-selected") == "true"
        assert tab.evaluate("tab => tab === document.activeElement")
        assert page.get_by_role("tabpanel").count() == 1
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.name") == "example"


def test_each_tab_says_what_it_will_show(page):
    for tab, button in TABS.items():
        panel = open_tab(page, tab)
        assert panel.locator(".empty").inner_text().startswith(f"Press {button}")
        press(panel, button)
        panel.locator(".view").first.wait_for()
        assert panel.locator(".empty").is_hidden()


def test_what_comes_back_is_beside_what_one_gives_and_the_map_beside_the_ranking(page, ranking):
    rank(ranking)
    ranking.locator(".explanation section").wait_for()
    names = (".give", ".result", ".explanation")
    give, result, shown = (ranking.locator(name).bounding_box() for name in names)
    is_wide = page.viewport_size["width"] > 1000
    assert (
        give["x"] + give["width"] < result["x"] and result["x"] + result["width"] < shown["x"]
    ) == is_wide
    assert not ranking.locator(".settings").evaluate("fold => fold.open")
    assert (
        ranking.locator("summary").first.inner_text()
        == "Model and settings · Title of fake-selection"
    )
    assert ranking.locator(".explanation .legend .word").all_inner_texts() == [
        "0",
        "0.25",
        "0.5",
        "0.75",
        "1",
    ]
    assert ranking.locator(".explanation .chip.faint").all_inner_texts() == ["no"]
    ranking.get_by_label("Turn 1", exact=True).fill("word " * 60)
    ranking.get_by_label("Response 1", exact=True).fill("y" * 3000)
    rank(ranking).nth(2).click()
    ranking.get_by_role("region", name="What matched").wait_for()
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_borders_of_fields_can_be_seen(page, ranking, scheme):
    page.emulate_media(color_scheme=scheme)
    for name in ("textarea", "select", "[type=submit]"):
        border, paper = map(light, ranking.locator(name).first.evaluate(COLOURS))
        assert max(border / paper, paper / border) >= 3


@pytest.mark.parametrize("text", HOSTILE, ids=["markup", "right-to-left", "emoji", "long"])
def test_hostile_text_stays_text(page, talk, text):
    press(talk, "Start again")
    say(talk, text)
    talk.locator(".talk li[data-who=bot]:not([aria-busy])").wait_for()
    assert talk.locator(".talk li[data-who=you]").inner_text() == text
    assert page.evaluate("document.querySelectorAll('.talk img, .talk script').length") == 0
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def test_an_error_is_one_sentence_and_clears_the_old_result(reading):
    ask(reading, "Who lives in Rome")
    reading.get_by_label("Text", exact=True).fill("z" * 200_001)
    press(reading, "Ask")
    reading.get_by_text("may have 200,000 characters at most").wait_for()
    assert reading.locator("mark").count() == 0


def test_the_server_goes_during_a_reply_and_comes_back(page, talk, server, models):
    models["fake-generation"].held.add("answer")
    press(talk, "Say")
    talk.get_by_text("you said: tea", exact=True).wait_for()
    server.stop()
    talk.locator(".error", has_text="The server does not answer.").wait_for()
    press(talk, "Say")  # it is not reached
    talk.locator(".error", has_text="The server does not answer.").wait_for()
    assert (
        page.locator("#notice").is_visible()
        and talk.locator("[name=text]").input_value() == "tea ?"
    )
    models["fake-generation"].held.clear()
    server.start()
    page.locator("#notice").wait_for(state="hidden")
    say(talk, None, "you said: tea ?")


@pytest.mark.parametrize(
    "status, words", [(502, "answered with status 502."), (200, "does not answer.")]
)
def test_what_a_proxy_answers_is_said_in_words(page, ranking, status, words):
    page.route("**:predict", lambda route: route.fulfill(status=status, body="<html>"))
    press(ranking, "Rank")
    ranking.locator(".error", has_text=f"The server {words}").wait_for()


@pytest.mark.skipif("AXE" not in os.environ, reason="AXE=axe.min.js names no file of axe-core")
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(page, scheme):
    page.emulate_media(color_scheme=scheme)
    for tab, button in TABS.items():
        panel = open_tab(page, tab)
        unfold(panel)
        press(panel, button)
        panel.locator(".explanation section, .passage").first.wait_for()
        panel.locator(".spinner").wait_for(state="hidden")
        for fold in panel.locator("details").all():
            fold.evaluate("fold => { fold.open = true; }")
        page.wait_for_timeout(200)
        page.evaluate(f"{pathlib.Path(os.environ['AXE']).read_text(encoding='utf-8')}; 0")
        found = page.evaluate("axe.run()")["violations"]
        assert [
            (each["id"], [node["html"][:200] for node in each["nodes"]][:3]) for each in found
        ] == [], tab
