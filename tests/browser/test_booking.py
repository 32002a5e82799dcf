"""Book a table: wishes, restaurants and memory."""

import pytest

from tests.browser.steps import press, said, say, wait_until_idle

expect = pytest.importorskip("playwright.sync_api").expect

SEARCHED = "I looked for italian, rome: 2 restaurants."


def wishes(panel):
    texts = panel.locator(".wish").all_inner_texts()
    return [text.replace("\n", " ").replace("\u00d7", "x") for text in texts]


def test_chips_show_what_the_bot_understood_and_x_takes_it_back(page, booking, models):
    assert wishes(booking) == ["cuisine any", "place any"]
    say(booking, "italian food", "where should it be")
    say(booking, "in rome please", "what about")
    assert wishes(booking) == ["cuisine italian x", "place rome x"]
    press(booking, "Take back cuisine: italian")
    expect(booking.locator(".wish").first).to_have_text("cuisineany")
    wait_until_idle(booking)
    assert wishes(booking) == ["cuisine any", "place rome x"]
    assert said(booking) == ["in rome please", "where should it be"]  # the other wish, said again
    press(booking, "Take back place: rome")
    expect(booking.locator(".wish").nth(1)).to_have_text("placeany")
    say(booking, "italian food in rome", "what about")
    press(booking, "Take back cuisine: italian")
    booking.locator(".talk li", has_text="where should it be").wait_for()
    assert models["fake-dialog"].asked[-1]["history"][-1]["text"] == "food in rome"
    assert booking.locator(".talk s").inner_text() == "italian"
    assert said(booking)[0] == "italian food in rome"


def test_restaurants_are_cards_and_raw_lines_are_behind_details(page, booking):
    say(booking, "italian food in rome", "what about")
    call = booking.locator(".talk li", has_text=SEARCHED)
    best, second = call.locator(".restaurant").all()
    assert best.locator("strong").inner_text() == "La Mirabelle"
    assert second.locator("strong").inner_text() == "Casa 6 Stars"
    assert second.get_by_role("img", name="6 of 8 stars").inner_text() == "★★★★★★☆☆"
    lines = second.locator(".line").all_inner_texts()
    assert lines == ["address\nnot in the data", "phone number\n06 123"]
    assert second.locator(".facts").inner_text() == "italian · rome · cheap"
    shown = booking.inner_text()
    for raw in ("api_call", "casa_6stars", "<SILENCE>", "R_"):
        assert raw not in shown
    call.locator(".raw summary").click()
    assert "api_call italian rome R_price" in booking.inner_text()
    offer = booking.locator(".talk li", has_text="what about Casa 6 Stars")
    assert offer.locator(".restaurant").count() == 1


def test_words_that_are_not_known_are_underlined_in_ones_own_bubble(page, booking):
    say(booking, "Xyzzy, italian xylophone", "where should it be")
    unknown = booking.locator(".talk li[data-who=you] .unknown")
    assert unknown.all_inner_texts() == ["xylophone"]
    assert said(booking)[0] == "Xyzzy, italian xylophone"


def test_silence_is_never_the_word_for_it(page, booking, models):
    booking.locator(".opening", has_text="In Rome").click()
    booking.locator(".talk li", has_text="where should it be").wait_for()
    wait_until_idle(booking)
    press(booking, "Say")
    expect(booking.locator(".talk li").last).to_have_text("where should it be")
    wait_until_idle(booking)
    texts = [turn["text"] for turn in models["fake-dialog"].asked[-1]["history"]]
    assert (texts[0], texts[-1]) == ("", "<SILENCE>")  # the bot went on; the user says nothing
    labels = "all => all.map((each) => each.ariaLabel + each.title).join()"
    assert "SILENCE" not in page.locator("body *").evaluate_all(labels)
    assert "SILENCE" not in page.locator("body").inner_text()
    page.reload()
    expect(booking.locator(".talk li").first).to_have_text("hello")
    expect(booking.locator(".talk li[data-who=you]").last).to_have_text("(silence)")
    assert said(booking)[-1] == "where should it be"
    assert wishes(booking)[1] == "place rome x"


def test_attention_is_bars_beside_the_sentences_and_that_all_are_alike_is_said(
    page, booking, models
):
    say(booking, "hi", "where should it be")
    say(booking, "ho", "where should it be")
    remark = "No memory dominates: each of 3 memories has 33 to 33 per cent."
    assert booking.locator(".remark").inner_text() == remark
    assert booking.locator(".memories .hop").count() == 3
    models["fake-dialog"].memories = lambda *_: [
        {
            "title": "memories",
            "rows": [f"user: sentence {i}" for i in range(12)],
            "columns": ["hop 1", "hop 2"],
            "weights": [[i / 60, 1 / 12] for i in range(12)],
        }
    ]
    say(booking, "ha", "where should it be")
    assert booking.locator(".remark").count() == 0
    bars = booking.locator(".memories li:visible .hops")
    assert bars.count() == 8
    assert bars.last.get_attribute("aria-label") == "hop 1 18 %, hop 2 8 %"
    press(booking, "4 more, with smaller weights")
    assert bars.count() == 12


def test_restaurants_of_the_knowledge_base_are_found_by_words(page, booking):
    booking.locator(".fold > summary", has_text="Restaurants it knows").click()
    found = booking.locator(".facts-found")
    assert "2 restaurants." in found.inner_text()
    booking.get_by_label("Find").fill("paris fr")
    booking.get_by_label("Find").press("Enter")  # says nothing
    assert found.locator("strong").all_inner_texts() == ["La Mirabelle"]
    assert said(booking) == []
