"""Pick a response: rows, a ranking and what matched."""

import pytest

from tests.browser.steps import COPY, DROP, FOCUSED, press, rank, rows, wait_until_idle

expect = pytest.importorskip("playwright.sync_api").expect

BARS = "all => all.map((each) => parseInt(each.style.getPropertyValue('--p')))"


def test_candidates_are_rows_and_their_order_takes_that_place(ranking):
    assert rows(ranking, "turns") == ["hi", "which table ?"]
    assert rows(ranking, "candidates") == ["the one at the window", "no", "perhaps"]
    ranked = rank(ranking)
    assert ranking.locator(".rows.candidates").is_hidden()
    assert [text.strip() for text in ranked.all_inner_texts()] == [
        "no",
        "perhaps ✓ true response",
        "the one at the window",
    ]
    bars = ranked.locator(".bar").evaluate_all(BARS)
    assert bars[0] == 100 > bars[1] > bars[2] == 0
    press(ranking, "Edit")
    first = ranking.get_by_label("Response 1", exact=True)
    expect(first).to_be_focused()
    first.fill("Which table?")
    echo = "Which table? an echo: repeats a turn"
    assert echo in rank(ranking).nth(2).inner_text()


def test_no_responses_are_a_sentence(ranking):
    page = ranking.page
    page.route("**/v1/models/fake-selection", lambda route: route.fulfill(json={}))  # no index
    page.reload()
    for number in (3, 2, 1):
        ranking.get_by_role("button", name=f"Remove response {number}", exact=True).click()
    assert page.evaluate(FOCUSED) == "Add a response"
    press(ranking, "Rank")
    problem = "There are no responses yet: type some, one per row."
    expect(ranking.locator(".error")).to_have_text(problem)
    assert page.evaluate(FOCUSED) == "Add a response"


def test_five_results_of_the_index_are_shown_and_more_for_twenty(ranking, models):
    expect(ranking.locator("[data-retrieval]")).to_contain_text("the best of 2,345 responses")
    ranked = rank(ranking, "Search the index")
    assert models["fake-selection"].asked[0] == {"turns": ["hi", "which table ?"]}
    assert ranking.locator(".ranked li:visible").count() == 5
    assert ranked.first.inner_text().endswith("response 0\nonce said to: hi / so")
    press(ranking, "15 more")
    assert ranking.locator(".ranked li:visible").count() == 20


def test_rows_are_pasted_in_their_place_and_of_many_lines_the_first(ranking, models):
    page = ranking.page
    press(ranking, "Remove turn 1")
    ranking.get_by_label("Turn 1", exact=True).fill("")
    press(ranking, "Add a turn")
    ranking.get_by_label("Turn 2", exact=True).fill("last")
    page.evaluate(COPY, ["one\ntwo", 1])
    ranking.get_by_label("Turn 1", exact=True).press("Control+v")
    expect(ranking.get_by_label("Turn 3", exact=True)).to_have_value("last")
    assert rows(ranking, "turns") == ["one", "two", "last"]
    page.evaluate(DROP, [".candidate-box", "mine.txt", "so\n" * 1000])
    expect(ranking.locator(".error")).to_have_text(
        "The text has 1,000 lines: the first 200 are here."
    )
    page.evaluate(DROP, [".candidate-box", "mine.txt", "one\n\n two \n"])
    ranking.get_by_label("Response 3", exact=True).wait_for(state="detached")
    rank(ranking)
    assert models["fake-selection"].asked[0] == {
        "turns": ["one", "two", "last"],
        "candidates": ["one", "two"],
    }


def test_a_chosen_response_is_explained_once_one_looks(ranking, models, monkeypatch):
    model = models["fake-selection"]
    ranked = rank(ranking)
    ranking.locator(".fold > summary").click()
    ranking.locator(".explanation .legend").wait_for()
    model.held.add("attention")
    ranked.nth(1).click()
    expect(ranking.locator(".explanation")).to_have_attribute("aria-busy", "true")
    model.held.clear()
    ranking.get_by_role("button", name="matches of perhaps").wait_for()
    damaged = {"title": "", "rows": [], "columns": [], "weights": [float("nan")]}
    monkeypatch.setattr(model, "matches", lambda *_: [damaged])
    ranked.nth(2).click()
    error = ranking.locator(".explanation").get_by_role("alert")
    expect(error).to_contain_text("infinity or NaN")
    assert ranked.count() == 3


def test_another_example_stops_what_is_under_way(ranking, models):
    models["fake-selection"].held.add("answer")
    press(ranking, "Rank")
    ranking.get_by_label("Example").select_option("Weather")
    models["fake-selection"].held.clear()
    assert rows(ranking, "turns") == ["is it cold ?"]
    assert rank(ranking).count() == 2  # no late answer
    wait_until_idle(ranking)
