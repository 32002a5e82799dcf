"""Each tab by mouse and keyboard, wide and narrow: examples, waiting and stopping, attention, links, copies, files, a
server that goes and comes back, hostile text. With AXE=axe.min.js in the environment, axe looks for barriers too."""

import json
import os
import pathlib
import re
import shutil
import urllib.parse

import pytest

expect = pytest.importorskip("playwright.sync_api").expect

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not (shutil.which("chromium") or shutil.which("chromium-browser")), reason="no Chromium here"),
]

HOSTILE = [
    "<img src=x onerror=alert(1)><script>alert(2)</script>",
    "\u202eright to left\u202c שלום عالم",
    "👩‍👩‍👧‍👦 🏳️‍🌈 e\u0301\u0301\u0301",
    "x" * 100_000,
]
NAMES = ["no", "perhaps ✓ true response", "the one at the window"]
DROP = """([selector, name, text]) => {
    const data = new DataTransfer();
    data.items.add(new File([text], name, { type: "text/plain" }));
    const at = document.querySelector(selector);
    for (const kind of ["dragover", "drop"]) at.dispatchEvent(new DragEvent(kind, { dataTransfer: data }));
}"""


def open_tab(page, name):
    page.get_by_role("tab", name=name).click()
    panel = page.get_by_role("tabpanel")
    panel.locator(".about:not(:empty)").wait_for(state="attached")
    return panel


def unfold(panel):
    panel.locator(".settings").evaluate("fold => { fold.open = true; }")


def press(panel, name):
    panel.get_by_role("button", name=name, exact=True).click()


def fields(panel, kind):
    return panel.locator(f".give .{kind} textarea").evaluate_all("all => all.map((each) => each.value)")


def say(panel, text):
    panel.locator("[name=text]").fill(text)
    press(panel, "Say")


# === Examples and models ===


def test_the_example_is_ranked_its_true_response_is_marked_and_explained(page, models):
    panel = page.get_by_role("tabpanel")
    assert "fake, trained on a test; dev: R10@1 0.500." in panel.locator(".about").text_content()
    assert "ranked first of 10" in panel.locator(".about abbr").get_attribute("title")
    assert fields(panel, "turns") == ["hi", "which table ?"]
    assert panel.locator(".truth").count() == 0
    press(panel, "Rank")
    ranked = panel.locator(".ranked button")
    ranked.first.wait_for()
    softmax = ["99 %", "1 %", "< 1 %"]  # of -2, -7 and -21
    assert [text.split("\n")[0] for text in ranked.all_inner_texts()] == softmax
    assert [text.split("\n")[-1] for text in ranked.all_inner_texts()] == NAMES
    assert ranked.first.get_attribute("aria-pressed") == "true"
    ranked.nth(2).click()
    panel.get_by_role("button", name="matches of table").wait_for(state="detached")
    panel.get_by_role("button", name="matches of window").wait_for()
    assert ranked.nth(2).get_attribute("aria-pressed") == "true"
    assert re.fullmatch(r"\d+\.\d\d s", panel.locator(".took").inner_text())
    top = ranked.first.bounding_box()["y"]
    assert 0 <= top <= page.viewport_size["height"]  # without scrolling by hand


def test_turns_and_candidates_are_rows(page, models):
    panel = page.get_by_role("tabpanel")
    panel.get_by_role("button", name="Remove turn 1").click()
    panel.get_by_label("Turn 1", exact=True).fill("is there a table ?")
    press(panel, "Add a response")
    panel.get_by_label("Response 4", exact=True).fill("there is")
    page.evaluate(DROP, [".candidate-box", "mine.txt", "one\n\n two \n"])
    panel.get_by_label("Response 3", exact=True).wait_for(state="detached")
    press(panel, "Rank")
    panel.locator(".ranked button").first.wait_for()
    assert models["fake-selection"].asked[0] == {"turns": ["is there a table ?"], "candidates": ["one", "two"]}
    assert panel.locator(".truth").count() == 0


def test_without_candidates_the_index_is_asked(page, models):
    panel = page.get_by_role("tabpanel")
    assert "the best of an index of 2,345 responses" in panel.inner_text()
    press(panel, "Ask the index instead")
    panel.locator(".ranked button").first.wait_for()
    assert "candidates" not in models["fake-selection"].asked[0]
    assert panel.locator(".ranked button").all_inner_texts() == [
        "> 99 %\ntoo\nonce said to: oh / so",
        "< 1 %\nof the index\nonce said to: hi",
    ]


def test_the_default_model_is_first_and_the_others_are_sorted(page):
    panel = open_tab(page, "Talk")
    unfold(panel)
    titles = panel.locator("[name=model] option").all_inner_texts()
    assert titles == ["Title of fake-generation", "Title of a-other-talk"]
    press(panel, "Model card")
    assert page.get_by_role("dialog").locator("pre").inner_text() == "# A card\n\nWhat it cannot do."
    page.keyboard.press("Escape")
    assert page.get_by_role("dialog").count() == 0


# === Reading ===


def test_the_answer_is_marked_and_words_are_shaded_where_they_are(page):
    panel = open_tab(page, "Ask a text")
    panel.get_by_label("Question").press("Enter")
    panel.locator("mark").wait_for()
    assert panel.locator("mark").inner_text() == "Paris" and "✓ correct" in panel.inner_text()
    weights = panel.locator(".passage .word").evaluate_all(
        "all => all.map((each) => [each.textContent, each.style.getPropertyValue('--w')])"
    )
    assert dict(map(tuple, weights))["Ann"] == "0.000" and weights[-2:] == [["Paris", "1.000"], [".", "1.000"]]
    press(panel, "attention to lives")
    assert panel.locator(".passage .word").first.evaluate("each => each.style.getPropertyValue('--w')") == "0.100"
    assert panel.locator(".passage").inner_text() == "Ann lives in Rome. Bob lives in Paris."
    panel.get_by_label("Text", exact=True).fill("👩 Ann lives in Rome. Bob lives in Paris.")
    panel.get_by_label("Question").fill("Who lives in Rome?")
    press(panel, "Ask")
    panel.locator("mark", has_text="Rome").wait_for()  # after a character of two UTF-16 units
    assert panel.locator("mark").inner_text() == "Rome"


def test_the_window_that_was_read_is_shaded(page, models):
    window = {"rows": ["start", "end"], "columns": ["Ann", "lives", "in", "Bonn"], "weights": [[0, 0, 0, 1]] * 2}
    models["fake-reading_comprehension"].flow = lambda *_: [{"title": "probabilities", **window}]
    panel = open_tab(page, "Ask a text")
    panel.get_by_label("Text", exact=True).fill("Ann lives in Rome. Ann lives in Bonn.")
    panel.get_by_label("Question").fill("Who lives in Bonn")
    press(panel, "Ask")
    panel.locator("mark", has_text="Bonn").wait_for()
    assert panel.locator(".passage .word").all_inner_texts() == window["columns"]
    assert panel.locator(".passage > span").evaluate("each => each.firstChild.textContent") == "Ann lives in Rome. "


def test_a_doubtful_answer_is_called_so(page):
    panel = open_tab(page, "Ask a text")
    panel.get_by_label("Question").fill("what is xyzzy?")
    press(panel, "Ask")
    panel.get_by_text("The text may not answer this. Its best words: xyzzy").wait_for()
    assert "Confidence 75 %" in panel.inner_text() and "does not know 12.5 % of the words" in panel.inner_text()
    assert panel.locator(".ranked li").all_inner_texts() == ["75 %\nxyzzy", "13 %\nAnn"]


def test_a_text_file_is_dropped_onto_the_passage(page):
    panel = open_tab(page, "Ask a text")
    page.evaluate(DROP, ["[name=passage]", "notes.txt", "Eve lives in Bonn."])
    expect(panel.locator("[name=passage]")).to_have_value("Eve lives in Bonn.")
    panel.locator("input[type=file]").set_input_files({"name": "b.txt", "mimeType": "text/plain", "buffer": b"Bob."})
    expect(panel.locator("[name=passage]")).to_have_value("Bob.")


# === Conversations ===


def test_talk_continues_and_starts_again(page, models):
    panel = open_tab(page, "Talk")
    assert panel.locator(".talk li").all_inner_texts() == ["hi", "hello"]  # the example's last turn is in the field
    press(panel, "Say")
    panel.get_by_text("you said: tea ?", exact=True).first.wait_for()
    asked = models["fake-generation"].asked
    assert asked[-1] == {"turns": ["hi", "hello", "tea ?"], "decode": "beam=5,length_penalty=1,block_ngrams=3"}
    press(panel, "attention while writing said:")
    assert panel.locator(".turns.shown .word").last.evaluate("each => each.style.getPropertyValue('--w')") == "1.000"
    unfold(panel)
    assert panel.get_by_label("Temperature").is_disabled()
    panel.get_by_label("Search").select_option("sample")
    assert panel.get_by_label("Temperature").is_enabled()
    say(panel, "again")
    panel.locator(".talk li", has_text="you said: again").wait_for()
    assert asked[-1]["decode"] == "sample=true,temperature=0.8,top_p=0.9"
    assert asked[-1]["turns"] == ["hi", "hello", "tea ?", "you said: tea ?", "again"]
    press(panel, "Start again")
    assert panel.locator(".talk li").count() == 0


def test_a_reply_appears_word_by_word_and_the_page_waits(page, models):
    models["fake-generation"].delay = 0.7
    panel = open_tab(page, "Talk")
    press(panel, "Start again")
    panel.locator("[name=text]").fill("tea")
    panel.locator("[name=text]").press("Enter")
    assert panel.locator(".talk li").first.inner_text() == "tea"  # at once
    assert panel.locator(".get").get_attribute("aria-busy") == "true" and panel.locator(".spinner").is_visible()
    panel.get_by_text("you said:", exact=True).wait_for()  # its last word is missing
    page.keyboard.type("and milk")  # the focus is where it was
    panel.locator(".talk li", has_text="you said: tea").wait_for()
    panel.locator(".spinner").wait_for(state="hidden")
    assert panel.locator("[name=text]").input_value() == "and milk"
    assert panel.locator(".get").get_attribute("aria-busy") == "false"


def test_starting_again_and_another_example_stop_what_is_under_way(page, models):
    models["fake-generation"].delay = models["fake-selection"].delay = 0.5
    panel = open_tab(page, "Talk")
    press(panel, "Say")
    press(panel, "Start again")
    assert panel.locator(".talk li").count() == 0 and panel.locator(".spinner").is_hidden()
    say(panel, "stop this")
    press(panel, "Stop")
    assert panel.locator("[name=text]").input_value() == "stop this"  # to be said again
    panel = open_tab(page, "Pick a response")
    press(panel, "Rank")
    panel.get_by_label("Example").select_option("Weather")
    page.wait_for_timeout(1500)
    assert panel.locator(".talk li, .ranked li").count() == 0  # no late answer
    assert fields(panel, "turns") == ["is it cold ?"]


def test_a_table_is_booked_with_the_history_kept_by_the_page(page, models):
    panel = open_tab(page, "Book a table")
    for text, reply in (("hi", "turn 1: noted"), ("", "turn 3: noted"), ("search", "what about casa")):
        say(panel, text)
        panel.locator(".talk li", has_text=reply).wait_for()
    assert "api_call italian\n1 facts found" in panel.locator(".talk").inner_text()
    assert panel.locator(".memories tbody tr").count() == 5
    say(panel, "good")
    panel.locator(".talk li", has_text="turn 10: noted").wait_for()
    history = models["fake-dialog"].asked[-1]["history"]
    speakers = ["user", "bot", "user", "bot", "user", "bot", "fact", "user", "bot", "user"]
    assert [each["speaker"] for each in history] == speakers[: len(history)]
    panel.locator(".knowledge summary").click()
    panel.get_by_label("Find").fill("italian")
    assert panel.locator(".facts div").all_inner_texts() == ["casa R_cuisine italian"]


def test_two_models_answer_the_same(page, models):
    panel = open_tab(page, "Talk")
    unfold(panel)
    panel.get_by_label("Beside it").select_option("a-other-talk")
    say(panel, "tea ?")
    panel.get_by_role("region", name="Reply of a-other-talk").wait_for()
    assert models["a-other-talk"].asked or "you said: tea ?" in panel.locator(".other").inner_text()
    panel = open_tab(page, "Ask a text")
    unfold(panel)
    assert panel.get_by_label("Beside it").is_hidden()  # there is one model


# === Address bar and copies ===


def test_a_link_opens_the_same_and_back_returns(page, browser, server):
    panel = page.get_by_role("tabpanel")
    panel.get_by_label("Example").select_option("Weather")
    panel.get_by_label("Response 1", exact=True).fill("a bit")
    page.wait_for_url("**a+bit**")
    press(panel, "link")
    panel.get_by_text("Copied: link.").wait_for()
    link = page.evaluate("navigator.clipboard.readText()")
    page.reload()
    page.get_by_label("Response 1", exact=True).wait_for()
    assert fields(panel, "candidates") == ["a bit", "yes"]
    open_tab(page, "Talk")
    page.go_back()
    page.locator("#panel-selection").wait_for()
    assert fields(panel, "candidates") == ["a bit", "yes"]
    other = browser.new_page()
    other.goto(link)
    other.get_by_label("Response 1", exact=True).wait_for()
    assert fields(other.get_by_role("tabpanel"), "candidates") == ["a bit", "yes"]
    other.close()


def test_a_reload_keeps_the_talk(page):
    panel = open_tab(page, "Talk")
    press(panel, "Say")
    panel.locator(".talk li", has_text="you said: tea ?").wait_for()
    panel.locator(".spinner").wait_for(state="hidden")
    page.reload()
    panel.locator(".talk li", has_text="you said: tea ?").wait_for()
    assert panel.locator(".talk li").all_inner_texts() == ["hi", "hello", "tea ?", "you said: tea ?"]


def test_a_request_is_copied_for_programs(page, server):
    panel = page.get_by_role("tabpanel")
    panel.get_by_label("Turn 2", exact=True).fill('what\'s "here"?')
    found = {}
    for kind in ("curl", "Python", "JSON"):
        press(panel, kind)
        panel.get_by_text(f"Copied: {kind}.").wait_for()
        found[kind] = page.evaluate("navigator.clipboard.readText()")
    body = json.loads(found["JSON"])
    assert body["instances"][0]["turns"] == ["hi", 'what\'s "here"?']
    assert f"{server.url}v1/models/fake-selection:predict" in found["curl"] and r"what'\''s" in found["curl"]
    names = {}
    exec(found["Python"].split("request = ")[0], names)  # the literal is Python's
    assert names["body"] == body
    panel.get_by_label("Turn 2", exact=True).fill("long " * 2000)
    page.wait_for_timeout(400)
    assert "long" not in urllib.parse.unquote(page.url)  # the history keeps it
    page.reload()
    page.get_by_label("Turn 2", exact=True).wait_for()
    assert fields(panel, "turns")[1].startswith("long long")


# === Keyboard, sizes, hostile text, errors ===


def test_tabs_are_reached_by_keyboard(page):
    page.get_by_role("tab", name="Pick a response").focus()
    for key, name in (("ArrowRight", "Ask a text"), ("End", "Book a table"), ("ArrowRight", "Pick a response")):
        page.keyboard.press(key)
        tab = page.get_by_role("tab", name=name)
        assert tab.get_attribute("aria-selected") == "true"
        assert tab.evaluate("tab => tab === document.activeElement")
        assert page.get_by_role("tabpanel").count() == 1
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.name") == "example"


def test_nothing_overflows_the_window(page):
    panel = page.get_by_role("tabpanel")
    panel.get_by_label("Turn 1", exact=True).fill("word " * 60)
    panel.get_by_label("Response 1", exact=True).fill("y" * 3000)
    press(panel, "Rank")
    panel.locator(".ranked button").nth(2).click()
    panel.get_by_role("region", name="What matched").wait_for()
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


@pytest.mark.parametrize("text", HOSTILE, ids=["markup", "right-to-left", "emoji", "long"])
def test_hostile_text_stays_text(page, text):
    panel = open_tab(page, "Talk")
    press(panel, "Start again")
    say(panel, text)
    panel.locator(".talk li[data-who=bot]:not(.waiting)").wait_for()
    assert panel.locator(".talk li[data-who=you]").inner_text() == text
    assert page.evaluate("document.querySelectorAll('.talk img, .talk script').length") == 0
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def test_an_error_is_one_sentence_and_clears_the_old_result(page):
    panel = open_tab(page, "Ask a text")
    press(panel, "Ask")
    panel.locator("mark").wait_for()
    panel.get_by_label("Text", exact=True).fill("z" * 200_001)
    press(panel, "Ask")
    panel.get_by_text("may have 200,000 characters at most").wait_for()
    assert panel.locator("mark").count() == 0


def test_the_server_goes_and_comes_back(page, server):
    panel = page.get_by_role("tabpanel")
    server.stop()
    press(panel, "Rank")
    page.locator("#offline").wait_for(state="visible")
    assert "does not answer" in panel.locator(".error").inner_text()
    server.start()
    page.locator("#offline").wait_for(state="hidden")
    press(panel, "Rank")
    panel.locator(".ranked button").first.wait_for()


@pytest.mark.skipif("AXE" not in os.environ, reason="AXE=axe.min.js names no file of axe-core")
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(page, scheme):
    page.emulate_media(color_scheme=scheme)
    for tab, button in (("Pick a response", "Rank"), ("Ask a text", "Ask"), ("Talk", "Say"), ("Book a table", "Say")):
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
        assert [(each["id"], [node["html"][:200] for node in each["nodes"]][:3]) for each in found] == [], tab
