"""Ask a text: the first tab, whose first example is answered already."""

import pytest

from tests.browser.conftest import PHONE
from tests.browser.steps import COPY, DROP, ask, open_menu, press

expect = pytest.importorskip("playwright.sync_api").expect

OPACITIES = """all => all.map((each) => {
    const colour = getComputedStyle(each).backgroundColor;
    return Number(colour.match(/[\\d.]+/g)[3] ?? 1);
})"""
COLOUR = "each => getComputedStyle(each).color"
WEIGHT = "each => each.style.getPropertyValue('--w')"


def test_the_first_screen_has_an_answered_example_a_sentence_and_the_card(sized_page):
    panel = sized_page.get_by_role("tabpanel", name="Ask a text")
    expect(panel.locator("mark")).to_have_text("Paris")
    answer = panel.locator(".answer")
    expect(answer).to_have_text("Paris ✓ correct")
    expect(answer).to_be_in_viewport()
    assert panel.locator(".lead").inner_text().startswith("Paste a text, ask it a question")
    press(panel, "About this model")
    card = sized_page.get_by_role("dialog")
    assert card.locator("h1").inner_text() == "A card"
    assert card.locator("strong").inner_text() == "cannot"
    assert "<script>alert(1)</script>" in card.inner_text()
    sized_page.keyboard.press("Escape")
    open_menu(panel, "Settings")
    assert panel.locator(".about").inner_text() == "fake, trained on a test; dev: R10@1 0.500."


def test_the_text_stands_once_and_edit_returns_to_it(page, reading):
    field = reading.locator("[name=passage]")
    assert field.is_hidden()
    assert reading.inner_text().count("Ann lives in Rome.") == 1
    place = reading.locator(".passage").bounding_box()
    press(reading, "Edit")
    assert reading.locator(".passage").is_hidden()
    expect(field).to_be_focused()
    assert reading.locator(".answer").count() == 0
    box = field.bounding_box()
    assert (box["x"], box["y"], box["width"]) == (place["x"], place["y"], place["width"])
    ask(reading, "Who lives in Rome?", "👩 Ann lives in Rome. Bob lives in Paris.")
    assert reading.locator("mark").inner_text() == "Rome"  # after a character of two UTF-16 units


def test_confidence_is_a_word_with_the_per_cent_behind_it_and_red_is_for_errors(page, reading):
    verdict = reading.locator(".verdict")
    expect(verdict).to_have_text("likely")
    title = verdict.get_attribute("title")
    assert title.startswith("Of 100 answers with this score about 75 are right")
    assert "%" not in reading.locator(".result").inner_text().replace("12.5 % of the words", "")
    reading.get_by_label("Question", exact=True).fill("what is xyzzy?")
    press(reading, "Ask")
    doubt = reading.locator(".doubtful .verdict")
    expect(doubt).to_have_text("probably not in this text")
    assert doubt.evaluate(COLOUR) == "rgb(138, 90, 0)"
    expect(reading.locator("[name=example]")).to_have_value("")  # the question is one's own
    assert reading.locator(".error").inner_text() == ""
    reading.get_by_label("Question", exact=True).fill("")
    press(reading, "Ask")
    expect(reading.locator(".error")).to_have_text("Ask a question first.")
    expect(reading.get_by_label("Question", exact=True)).to_be_focused()
    assert reading.locator(".error").evaluate(COLOUR) == "rgb(179, 38, 30)"


def test_an_alternative_is_marked_in_the_text(page, reading):
    reading.locator(".ranked button", has_text="Ann").click()
    expect(reading.locator("mark")).to_have_text("Ann")
    pressed = reading.locator(".ranked button[aria-pressed=true]")
    assert pressed.inner_text().strip() == "Ann"


def test_a_text_in_another_language_is_said_to_be_one(page, reading, models):
    assert reading.locator(".remark").count() == 0
    model = models["fake-reading_comprehension"]
    answer = model.answer
    model.answer = lambda instance: {**answer(instance), "remark": "Not English."}
    press(reading, "Ask")
    expect(reading.locator(".remark")).to_have_text("Not English.")


def test_ctrl_and_enter_ask_from_any_field(page, reading, models):
    press(reading, "Edit")
    reading.locator("[name=passage]").press("Control+Enter")
    expect(reading.locator("mark")).to_have_text("Paris")
    reading.get_by_label("Question", exact=True).fill("Who lives in Rome")
    reading.get_by_label("Question", exact=True).press("Enter")
    expect(reading.locator("mark")).to_have_text("Rome")
    assert len(models["fake-reading_comprehension"].asked) == 3


def test_a_long_text_shows_which_part_answered(page, reading, models):
    model = models["fake-reading_comprehension"]
    first = "Ann lives in Rome. " * 100
    text = f"{first}Bob lives in Bonn. {first}"
    answer = model.answer
    window = {"window_start": len(first), "window_end": len(first) + 18}
    model.answer = lambda instance: {**answer(instance), **window}
    ask(reading, "Who lives in Bonn", text)
    where = reading.locator(".where")
    expect(where).to_have_text("Words 401 to 404 of 804 answered; the rest is grey.")
    expect(reading.locator("mark")).to_be_in_viewport()
    assert reading.locator(".unread").first.inner_text() == first
    assert reading.locator(".passage").inner_text() == text


def test_words_are_shaded_once_one_looks_and_a_uniform_map_is_pale(page, reading, models):
    assert reading.locator(".passage .word").count() == 0
    reading.locator(".fold > summary").click()
    expect(reading.locator(".chip[aria-pressed=true]")).to_have_text("first and last word")
    assert reading.locator(".passage .word").first.evaluate(WEIGHT) == "0.000"
    assert reading.locator("mark .word").evaluate(WEIGHT) == "1.000"
    press(reading, "attention to lives")
    first, *rest = reading.locator(".passage .word").evaluate_all(OPACITIES)
    assert set(rest) == {first}
    scale = reading.locator(".legend .word").evaluate_all(OPACITIES)  # of 0, .01, .1, .3 and 1
    assert 0 < first <= scale[1] < scale[4] / 2
    assert reading.locator(".passage").inner_text() == "Ann lives in Rome. Bob lives in Paris."


def test_a_text_is_dropped_or_pasted_unless_it_is_too_long(page, reading):
    press(reading, "Edit")
    field = reading.locator("[name=passage]")
    length = len(field.input_value())
    page.evaluate(COPY, ["x", 100_000])
    field.press("Control+v")
    problem = "The text is too long: 100,000 characters at most, this one has"
    expect(reading.locator(".error")).to_have_text(f"{problem} {100_000 + length:,}.")
    page.evaluate(DROP, [".text", "notes.txt", "x" * 100_001])
    expect(reading.locator(".error")).to_have_text(f"{problem} 100,001.")
    assert len(field.input_value()) == length
    page.evaluate(DROP, [".text", "notes.txt", "Eve lives in Bonn."])
    expect(field).to_have_value("Eve lives in Bonn.")
    bob = {"name": "b.txt", "mimeType": "text/plain", "buffer": b"Bob."}
    reading.locator("input[type=file]").set_input_files(bob)
    expect(field).to_have_value("Bob.")


def test_two_models_answer_and_each_can_be_marked_in_the_text(server, open_page, models):
    other = type(models["fake-selection"])(
        "reading_comprehension", models["fake-reading_comprehension"].answer, name="other"
    )
    answer = other.answer
    other.answer = lambda instance: {**answer(instance), "answer": "Ann", "start": 0, "end": 3}
    models["other"] = other
    server.stop()
    server.start()
    page = open_page(server.url, viewport=PHONE)
    panel = page.get_by_role("tabpanel")
    panel.locator("mark").wait_for()
    open_menu(panel, "Settings")
    panel.get_by_label("Compare with").select_option("other")
    page.keyboard.press("Escape")
    press(panel, "Ask")
    expect(panel.locator(".answer")).to_have_count(2)
    views = panel.locator(".view")
    assert views.nth(1).locator("h2").inner_text() == "Title of other"
    views.nth(1).locator(".ranked button").first.click()
    expect(panel.locator("mark")).to_have_text("Ann")
