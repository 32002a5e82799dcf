"""Each tab by mouse and keyboard, wide and narrow, with a server that goes and comes back, and with hostile text."""

import shutil

import pytest

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


def open_tab(page, name):
    page.get_by_role("tab", name=name).click()
    return page.get_by_role("tabpanel")


def test_the_example_is_ranked_and_explained(page, models):
    panel = page.get_by_role("tabpanel")
    assert "trained on a test; dev: score 0.500" in panel.locator(".about").inner_text()
    assert panel.get_by_label("Conversation, one turn per line").input_value() == "hi\nwhich table ?"
    panel.get_by_role("button", name="Rank").click()
    ranked = panel.locator(".ranked button")
    ranked.first.wait_for()
    assert [text.split("\n")[-1] for text in ranked.all_inner_texts()] == ["no", "perhaps", "the one at the window"]
    assert ranked.first.get_attribute("aria-pressed") == "true"
    panel.locator(".map td").first.wait_for()
    ranked.nth(1).click()
    assert ranked.nth(1).get_attribute("aria-pressed") == "true"
    panel.get_by_label("What it attended to").select_option("1")
    assert panel.locator(".map caption").inner_text() == "level 1"


def test_without_candidates_the_index_is_asked(page, models):
    panel = page.get_by_role("tabpanel")
    assert "the best of an index of 2,345 responses" in panel.inner_text()
    panel.get_by_role("button", name="Ask the index instead").click()
    panel.locator(".ranked button").first.wait_for()
    assert "candidates" not in models["fake-selection"].asked[0]
    assert panel.locator(".ranked button").all_inner_texts() == [
        "-3.00\ntoo\nonce said to: oh / so",
        "-12.00\nof the index\nonce said to: hi",
    ]


def test_a_doubtful_answer_is_called_so(page):
    panel = open_tab(page, "Ask a text")
    panel.get_by_label("Question").fill("what is xyzzy?")
    panel.get_by_role("button", name="Ask").click()
    panel.get_by_text("The text may not answer this. Its best words: xyzzy").wait_for()
    assert (
        "Right with a probability of 75 %, by a scale fitted to dev. The model does not know 12.5 % of the words."
        in panel.inner_text()
    )
    assert panel.locator(".ranked li").all_inner_texts() == ["75 %\nxyzzy", "13 %\nAnn"]


def test_an_example_begins_a_talk(page, models):
    panel = open_tab(page, "Talk")
    panel.get_by_label("Example").select_option("Tea")
    assert panel.locator(".talk li").all_inner_texts() == ["hi", "hello"]
    panel.get_by_role("button", name="Say").click()
    panel.get_by_text("you said: tea ?").wait_for()
    assert models["fake-generation"].asked[-1]["turns"] == ["hi", "hello", "tea ?"]
    panel.get_by_label("Example").select_option("none")
    assert panel.locator(".talk li").count() == 0


def test_the_answer_is_marked_where_it_stands(page):
    panel = open_tab(page, "Ask a text")
    panel.get_by_label("Text").fill("👩 Ann lives in Rome. Bob lives in Paris.")
    panel.get_by_label("Question").fill("Who lives in Rome?")
    panel.get_by_label("Question").press("Enter")
    panel.locator("mark").wait_for()
    assert panel.locator("mark").inner_text() == "Rome"  # after a character of two UTF-16 units


def test_talk_goes_on_and_starts_again(page, models):
    panel = open_tab(page, "Talk")
    for text in ("hello", "and then?"):
        panel.get_by_label("You").fill(text)
        panel.get_by_role("button", name="Say").click()
        panel.get_by_text(f"you said: {text}").wait_for()
    assert models["fake-generation"].asked[-1]["turns"] == ["hello", "you said: hello", "and then?"]
    assert "beam=5" in models["fake-generation"].asked[-1]["decode"]
    panel.get_by_label("Search").select_option("sample")
    panel.get_by_label("You").fill("again")
    panel.get_by_label("You").press("Enter")
    panel.get_by_text("you said: again").wait_for()
    assert models["fake-generation"].asked[-1]["decode"] == "sample=true,temperature=0.8,top_p=0.9"
    panel.get_by_role("button", name="Start again").click()
    assert panel.locator(".talk li").count() == 0


def test_a_table_is_booked_with_the_history_kept_by_the_page(page, models):
    panel = open_tab(page, "Book a table")
    panel.get_by_label("You").fill("hi")
    panel.get_by_role("button", name="Say").click()
    panel.get_by_text("turn 1: noted").wait_for()
    panel.get_by_role("button", name="Say").click()  # silence
    panel.get_by_text("turn 3: noted").wait_for()
    assert models["fake-dialog"].asked[-1]["history"] == [
        {"speaker": "user", "text": "hi"},
        {"speaker": "bot", "text": "turn 1: noted"},
        {"speaker": "user", "text": ""},
    ]
    panel.get_by_label("You").fill("search")
    panel.get_by_label("You").press("Enter")
    panel.get_by_text("turn 8: noted").wait_for()  # the fact that was found, and the silence after it
    history = models["fake-dialog"].asked[-1]["history"]
    assert [each["speaker"] for each in history[4:]] == ["user", "bot", "fact", "user"]
    panel.locator("summary").click()
    panel.get_by_label("Find").fill("italian")
    assert panel.locator(".facts div").all_inner_texts() == ["casa R_cuisine italian"]


def test_a_wide_map_shows_its_strongest_column(page, models):
    wide = {"title": "wide", "rows": ["a"], "columns": [f"word{n}" for n in range(200)]}
    weights = [[1.0 if n == 150 else 0.0 for n in range(200)]]
    reader = models["fake-reading_comprehension"]
    reader.explain = lambda instance: {**reader.answer(instance), "attention": [{**wide, "weights": weights}]}
    panel = open_tab(page, "Ask a text")
    panel.get_by_role("button", name="Ask").click()
    cell = panel.locator(".map tbody td").nth(150)
    cell.wait_for()
    page.wait_for_function("document.querySelector('#panel-reading_comprehension .map').scrollLeft > 0")
    box = cell.bounding_box()
    assert 0 <= box["x"] <= page.viewport_size["width"]
    assert panel.locator(".map caption").inner_text() == "wide"
    weights[0][:] = [0.9] * 100 + [1.0] * 100
    panel.get_by_role("button", name="Ask").click()
    panel.get_by_text("wide: nothing stands out").wait_for()


def test_tabs_are_reached_by_keyboard(page):
    page.get_by_role("tab", name="Pick a response").focus()
    for key, name in (("ArrowRight", "Ask a text"), ("End", "Book a table"), ("ArrowRight", "Pick a response")):
        page.keyboard.press(key)
        tab = page.get_by_role("tab", name=name)
        assert tab.get_attribute("aria-selected") == "true"
        assert tab.evaluate("tab => tab === document.activeElement")
        assert page.get_by_role("tabpanel").count() == 1
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.name") == "model"


def test_nothing_overflows_the_window(page):
    panel = page.get_by_role("tabpanel")
    panel.get_by_label("Conversation, one turn per line").fill("word " * 60)
    panel.get_by_label("Candidate responses").fill("y" * 3000)
    panel.get_by_role("button", name="Rank").click()
    panel.locator(".ranked button").first.wait_for()
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


@pytest.mark.parametrize("text", HOSTILE, ids=["markup", "right-to-left", "emoji", "long"])
def test_hostile_text_stays_text(page, text):
    panel = open_tab(page, "Talk")
    panel.get_by_label("You").fill(text)
    panel.get_by_role("button", name="Say").click()
    panel.locator(".talk li[data-who=bot]").wait_for()
    assert panel.locator(".talk li[data-who=you]").inner_text() == text
    assert page.evaluate("document.querySelectorAll('.talk img, .talk script').length") == 0
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def test_a_request_beyond_the_limits_is_said_in_one_sentence(page):
    panel = open_tab(page, "Ask a text")
    panel.get_by_label("Text").fill("z" * 200_001)
    panel.get_by_label("Question").fill("what?")
    panel.get_by_role("button", name="Ask").click()
    panel.get_by_text("may have 200,000 characters at most").wait_for()


def test_the_server_goes_and_comes_back(page, server):
    panel = page.get_by_role("tabpanel")
    server.stop()
    panel.get_by_role("button", name="Rank").click()
    page.locator("#offline").wait_for(state="visible")
    assert "does not answer" in panel.locator(".error").inner_text()
    server.start()
    page.locator("#offline").wait_for(state="hidden")
    panel.get_by_role("button", name="Rank").click()
    panel.locator(".ranked button").first.wait_for()


def test_dark_and_light_differ(page):
    colors = []
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        colors.append(page.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert colors[0] != colors[1]
