"""Ask a text: the first tab, whose first example is answered already."""

import pytest

from tests.browser.steps import COPY, DROP, ask, open_menu, press

expect = pytest.importorskip("playwright.sync_api").expect

OPACITIES = """all => all.map((each) => {
    const colour = getComputedStyle(each).backgroundColor;
    return Number(colour.match(/[\\d.]+/g)[3] ?? 1);
})"""
COLOUR = "each => getComputedStyle(each).color"
WEIGHT = "each => each.style.getPropertyValue('--w')"


def test_the_first_example_is_answered_and_a_card_says_what_the_model_cannot_do(reading):
    page = reading.page
    assert page.title() == "Ask a text - Colloquy"
    assert page.locator("header img").evaluate("each => each.naturalWidth > 0")
    expect(reading.locator("mark")).to_have_text("Paris")
    expect(reading.locator(".answer")).to_have_text("Paris ✓ correct")
    expect(reading.locator(".answer")).to_be_in_viewport()
    press(reading, "About this model")
    card = page.get_by_role("dialog")
    assert card.locator("h1").inner_text() == "A card"
    assert card.locator("strong").inner_text() == "cannot"
    assert "<script>alert(1)</script>" in card.inner_text()
    page.keyboard.press("Escape")
    open_menu(reading, "Settings")
    assert reading.locator(".about").inner_text() == "fake, trained on a test; dev: R10@1 0.500."


def test_the_text_stands_once_and_is_edited_in_its_place_and_asked_again(reading, models):
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
    field.press("Control+Enter")
    expect(reading.locator("mark")).to_have_text("Paris")
    reading.get_by_label("Question", exact=True).fill("Who lives in Rome")
    reading.get_by_label("Question", exact=True).press("Enter")
    expect(reading.locator("mark")).to_have_text("Rome")
    assert len(models["fake-reading_comprehension"].asked) == 3
    ask(reading, "Who lives in Rome?", "👩 Ann lives in Rome. Bob lives in Paris.")
    assert reading.locator("mark").inner_text() == "Rome"  # after a character of two UTF-16 units


def test_confidence_is_a_word_with_the_per_cent_behind_it_and_red_is_for_errors(reading):
    verdict = reading.locator(".verdict")
    expect(verdict).to_have_text("likely")
    title = verdict.get_attribute("title")
    assert title.startswith("Of 100 answers with this score about 75 are right")
    assert "%" not in reading.locator(".result").inner_text().replace("12.5 % of the words", "")
    question = reading.get_by_label("Question", exact=True)
    question.fill("what is xyzzy?")
    press(reading, "Ask")
    doubt = reading.locator(".doubtful .verdict")
    expect(doubt).to_have_text("probably not in this text")
    assert doubt.evaluate(COLOUR) == "rgb(138, 90, 0)"
    expect(reading.locator("[name=example]")).to_have_value("")  # the question is one's own
    question.fill("")
    press(reading, "Ask")
    expect(reading.locator(".error")).to_have_text("Ask a question first.")
    expect(question).to_be_focused()
    assert reading.locator(".error").evaluate(COLOUR) == "rgb(179, 38, 30)"


def test_an_alternative_is_marked_and_of_a_long_text_the_part_that_answered_is_shown(
    reading, models, monkeypatch
):
    reading.locator(".ranked button", has_text="Ann").click()
    expect(reading.locator("mark")).to_have_text("Ann")
    pressed = reading.locator(".ranked button[aria-pressed=true]")
    assert pressed.inner_text().strip() == "Ann"

    model = models["fake-reading_comprehension"]
    first = "Ann lives in Rome. " * 100
    text = f"{first}Bob lives in Bonn. {first}"
    answer = model.answer
    window = {"window_start": len(first), "window_end": len(first) + 18, "remark": "Not English."}
    monkeypatch.setattr(model, "answer", lambda instance: {**answer(instance), **window})
    ask(reading, "Who lives in Bonn", text)
    where = reading.locator(".where")
    expect(where).to_have_text("Words 401 to 404 of 804 answered; the rest is grey.")
    expect(reading.locator("mark")).to_be_in_viewport()
    assert reading.locator(".unread").first.inner_text() == first
    assert reading.locator(".passage").inner_text() == text
    expect(reading.locator(".remark")).to_have_text("Not English.")


def test_words_are_shaded_once_one_looks_and_a_uniform_map_is_pale(reading):
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


def test_a_text_is_dropped_pasted_or_chosen_unless_it_is_too_long(reading):
    page = reading.page
    press(reading, "Edit")
    field = reading.locator("[name=passage]")
    page.evaluate(DROP, [".text", "notes.txt", "x" * 100_001])
    expect(reading.locator(".error")).to_contain_text("The text is too long")
    expect(reading.locator("[name=example]")).to_have_value("0")  # the text is still the example's
    page.evaluate(DROP, [".text", "notes.txt", "Eve lives in Bonn."])
    expect(field).to_have_value("Eve lives in Bonn.")
    expect(reading.locator("[name=example]")).to_have_value("")  # the text is one's own
    length = len(field.input_value())
    page.evaluate(COPY, ["x", 100_000])
    field.press("Control+v")
    press(reading, "Ask")
    problem = "The text is too long: 100,000 characters at most, this one has"
    expect(reading.locator(".error")).to_have_text(f"{problem} {100_000 + length:,}.")
    expect(field).to_be_focused()
    page.evaluate(DROP, [".text", "notes.txt", "x" * 100_001])
    expect(reading.locator(".error")).to_have_text(f"{problem} 100,001.")
    assert len(field.input_value()) == 100_000 + length
    bob = {"name": "b.txt", "mimeType": "text/plain", "buffer": b"Bob."}
    reading.locator("input[type=file]").set_input_files(bob)
    expect(field).to_have_value("Bob.")


def test_an_error_goes_when_the_text_is_mended_and_the_servers_are_in_words_of_the_page(reading):
    error = reading.locator(".error")
    press(reading, "Edit")
    field = reading.locator("[name=passage]")
    field.fill("")
    press(reading, "Ask")
    expect(error).to_contain_text("There is no text to ask")
    field.fill("Ann lives in Paris.")
    expect(error).to_have_text("")
    answers = {
        "instance 0, question: expected at most 300 words. Received: 301": (
            "Question: expected at most 300 words. Received: 301."
        ),
        "a request may have 300 rows at most. Received: 301": (
            "That is too much for one request. Make it shorter."
        ),
        "instance 0 may have 100,000 characters at most. Received: 100,001": (
            "A text is too long. Make it shorter."
        ),
    }
    refusals = list(answers)
    reading.page.route(
        "**:explain", lambda route: route.fulfill(status=400, json={"error": refusals.pop(0)})
    )
    for words in answers.values():
        press(reading, "Ask")
        expect(error).to_have_text(words)
