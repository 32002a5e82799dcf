"""What holds for every tab: places, menus, errors, loading, links, keyboard, barriers."""

import pathlib
import re
import urllib.parse

import pytest

from tests.browser.conftest import PHONE, WIDE
from tests.browser.steps import (
    TABS,
    copied,
    open_menu,
    open_tab,
    press,
    rank,
    rows,
    say,
    wait_until_idle,
)

expect = pytest.importorskip("playwright.sync_api").expect

PLACES = ".tools, .said, .composer, .rows.turns, .titles"
RUN_AXE = "axe.run(document, {resultTypes: ['violations']})"


def places(panel):
    tops = "all => all.map((each) => Math.round(each.getBoundingClientRect().top + scrollY))"
    return panel.locator(PLACES).evaluate_all(tops)


def use(panel, tab):
    """Uses a tab once, so that it shows an answer."""
    if tab == "Talk":
        say(panel, "tea ?", "you said: tea ?")
    elif tab == "Dialog bAbI":
        panel.locator(".talk .verdict").first.wait_for()
    elif tab == "Pick a response":
        rank(panel)
    wait_until_idle(panel)


def test_panels_keep_their_places_when_a_list_is_empty(page):
    for tab in ("Talk", "Pick a response"):
        panel = open_tab(page, tab)
        before = places(panel)
        use(panel, tab)
        assert places(panel) == before and before


def test_the_first_tab_is_a_tool_and_the_others_are_research_demos(server, open_page, models):
    demos = {name: model for name, model in models.items() if model.task != "selection"}
    server.stop()
    server.models = demos
    server.start()
    page = open_page(server.url)
    page.locator("mark").wait_for()
    assert page.title() == "Ask a text - Colloquy"
    assert page.get_by_role("tab").all_inner_texts() == list(TABS[:3])  # one has no model
    assert page.locator(".demos").inner_text().split("\n")[0] == "Research demos"
    tops = set()
    for tab in TABS[1:3]:
        panel = open_tab(page, tab)
        assert page.title() == f"{tab} - Colloquy"
        assert panel.locator(".explanation").is_hidden()
        assert len(panel.locator(".lead span").inner_text()) > 20
        tops.add(str(panel.locator(".lead").bounding_box()["x"]))
    assert len(tops) == 1


def test_copy_is_one_menu_of_a_link_and_requests(page, ranking, server, open_page):
    ranking.get_by_label("Turn 2", exact=True).fill('what\'s "here"?')
    link = copied(ranking, "Link to this", "link")
    found = {kind: copied(ranking, kind, kind) for kind in ("curl", "Python", "JSON")}
    assert "Authorization" not in str(found)
    assert f"{server.url}v1/models/fake-selection:predict" in found["curl"]
    assert r"what'\''s" in found["curl"]
    names = {}
    exec(found["Python"].split("request = ")[0], names)
    assert names["body"]["instances"][0]["turns"] == ["hi", 'what\'s "here"?']
    assert ranking.locator(".menu[open]").count() == 0
    other = open_page(link)
    other.get_by_label("Turn 2", exact=True).wait_for()
    assert rows(other.get_by_role("tabpanel"), "turns") == ["hi", 'what\'s "here"?']
    ranking.get_by_label("Turn 2", exact=True).fill("long " * 2000)
    page.wait_for_url(lambda url: "input=" not in url)  # the history keeps it
    page.reload()
    page.get_by_label("Turn 2", exact=True).wait_for()
    assert rows(ranking, "turns")[1].startswith("long long")


def test_an_error_is_in_the_pages_words_and_goes_when_the_text_is_mended(page, reading):
    press(reading, "Edit")
    text = reading.locator("[name=passage]")
    text.fill("z" * 100_001)
    press(reading, "Ask")
    error = reading.locator(".error")
    expect(text).to_be_focused()
    expected = "The text is too long: 100,000 characters at most, this one has 100,001."
    expect(error).to_have_text(expected)
    assert reading.locator("mark").count() == 0
    text.fill("Ann lives in Paris.")
    expect(error).to_have_text("")
    page.route("**:explain", lambda route: route.fulfill(status=400, json={"error": WRONG}))
    press(reading, "Ask")
    expect(error).to_have_text("The question is too long: 300 words at most.")


WRONG = "instance 0, question: expected at most 300 words. Received: 301"


def test_compare_with_offers_other_models_only(page, talk):
    open_menu(talk, "Settings")
    compare = talk.locator("[name=compare] option")
    titles = ["Title of fake-generation", "Title of a-other-talk"]
    assert talk.locator("[name=model] option").all_inner_texts() == titles
    assert compare.all_inner_texts() == ["no other", titles[1]]
    talk.locator("[name=model]").select_option("a-other-talk")
    assert compare.all_inner_texts() == ["no other", titles[0]]
    page.keyboard.press("Escape")
    reading = open_tab(page, "Ask a text")
    open_menu(reading, "Settings")
    assert reading.get_by_label("Compare with").is_hidden()  # there is one model


def test_pressing_ask_while_a_model_loads_waits(server, open_page, models):
    model = models["fake-reading_comprehension"]
    model.held.add("loading")
    page = open_page(server.url)
    panel = page.get_by_role("tabpanel")
    expect(panel.locator("[name=passage]")).to_have_value("Ann lives in Rome. Bob lives in Paris.")
    panel.get_by_text("Loading the model…").wait_for()
    panel.get_by_label("Question", exact=True).fill("Who lives in Rome")
    press(panel, "Ask")
    assert panel.locator(".spinner").is_visible()
    assert model.asked == []
    model.held.clear()
    expect(panel.locator("mark")).to_have_text("Rome")
    assert [instance["question"] for instance in model.asked] == ["Who lives in Rome"]


def test_what_is_typed_and_said_before_the_examples_are_there_is_answered(page, models):
    model = models["fake-generation"]
    model.held.add("card")
    page.get_by_role("tab", name="Talk").click()
    panel = page.get_by_role("tabpanel")
    panel.locator("[name=text]").fill("tea ?")
    model.held.clear()
    expect(panel.locator(".opening")).to_have_count(4)
    expect(panel.locator("[name=text]")).to_have_value("tea ?")
    model = models["fake-dialog"]
    model.held.add("card")
    page.get_by_role("tab", name="Dialog bAbI").click()
    say(panel, "xyzzy")
    model.held.clear()
    expect(panel.locator(".talk li")).to_have_text(["xyzzy", "ok"])


def test_a_model_that_cannot_be_loaded_says_why_and_asking_tries_again(server, open_page, models):
    model = models["fake-reading_comprehension"]
    model.damage = "it is damaged"
    page = open_page(server.url)
    panel = page.get_by_role("tabpanel")
    expect(panel.locator(".error")).to_have_text("It is damaged.")
    model.damage = ""
    press(panel, "Ask")
    expect(panel.locator("mark")).to_have_text("Paris")


def test_the_mark_is_in_the_header_and_the_tab_of_the_browser(page, server):
    icon = page.locator("link[rel=icon]").get_attribute("href")
    answer = page.request.get(f"{server.url}{icon}")
    assert answer.headers["content-type"].startswith("image/svg+xml")
    assert page.locator("header img").evaluate("each => each.naturalWidth > 0")
    assert page.get_by_role("heading", name="Colloquy").is_visible()


def test_few_sizes_of_type_and_two_accents(page):
    script = """() => {
        const sizes = new Set();
        for (const each of document.querySelectorAll('body *')) {
            if (each.getClientRects().length) sizes.add(getComputedStyle(each).fontSize);
        }
        return [...sizes];
    }"""
    for tab in TABS:
        open_tab(page, tab)
        assert set(page.evaluate(script)) <= {"14px", "16px", "20px"}
    style = page.request.get(f"{page.url.split('#')[0]}pages/style.css").text()
    light = style.split("@media")[0]
    assert set(re.findall(r"--(blue|amber|red|green|mark|good|accent):", light)) == {
        "blue",
        "amber",
        "mark",
        "red",
    }


# === The address bar, the key, the connection ===


def test_back_returns_to_what_was_typed(page, ranking, models, server, open_page):
    ranking.get_by_label("Example").select_option("Weather")
    ranking.get_by_label("Response 1", exact=True).fill("a bit")
    page.wait_for_url("**a+bit**")
    open_tab(page, "Talk")
    open_tab(page, "Talk")  # nothing changes
    page.go_back()
    page.locator("#panel-selection").wait_for()
    expect(ranking.get_by_label("Response 1", exact=True)).to_have_value("a bit")
    damaged = 'selection?model=fake-selection&example=0&input={"turns":[null]}'
    other = open_page(f"{server.url}#{damaged}").get_by_role("tabpanel")
    other.get_by_label("Turn 1", exact=True).wait_for()
    assert rows(other, "turns") == ["hi", "which table ?"]  # the example


def test_the_page_asks_for_the_key_once(page, ranking, server):
    server.stop()
    server.start("schlüssel")
    press(ranking, "Rank")
    for key, button in (("typed", "Cancel"), ("wrong", "Continue"), ("schlüssel", "Continue")):
        page.get_by_label("Key", exact=True).fill(key)
        page.get_by_role("button", name=button).click()
        if button == "Cancel":
            ranking.get_by_text("Expected the server's key.").wait_for()
            assert page.evaluate("sessionStorage.length") == 0
            press(ranking, "Rank")
    ranking.locator(".ranked").wait_for()
    stored = page.evaluate("[localStorage.length, ...Object.values(sessionStorage)]")
    assert stored == [0, "schlüssel"]
    say(open_tab(page, "Talk"), "hi", "you said: hi")
    assert page.get_by_role("dialog").count() == 0
    assert "schl" not in urllib.parse.unquote(page.url)


def test_copies_have_the_place_of_the_key(server, open_page):
    server.stop()
    server.start("secret")
    login = {"username": "", "password": "secret"}
    page = open_page(server.url, http_credentials=login)
    page.locator("mark").wait_for()  # the browser has the key
    panel = page.get_by_role("tabpanel")
    curl = copied(panel, "curl", "curl")
    program = copied(panel, "Python", "Python")
    assert '-H "Authorization: Bearer $COLLOQUY_API_KEY"' in curl
    assert 'os.environ["COLLOQUY_API_KEY"]' in program
    assert "secret" not in curl + program


def test_the_server_goes_and_comes_back(page, talk, server):
    server.stop()
    say(talk, "tea ?")
    expect(talk.locator(".error")).to_have_text("The server does not answer.")
    assert page.locator("#notice").is_visible()
    expect(talk.locator("[name=text]")).to_have_value("tea ?")
    server.start()
    expect(page.locator("#notice")).to_have_text("")
    press(talk, "Say")
    talk.locator(".talk li", has_text="you said: tea ?").wait_for()
    page.route("**/chat/completions", lambda route: route.fulfill(status=502, body="<html>"))
    say(talk, "milk")
    expect(talk.locator(".error")).to_have_text("The server answered with status 502.")


# === Keyboard and barriers ===


def test_tabs_are_reached_by_keyboard(page):
    page.get_by_role("tab", name="Ask a text").focus()
    moves = (("ArrowRight", "Talk"), ("End", "Pick a response"), ("ArrowRight", "Ask a text"))
    for key, name in moves:
        page.keyboard.press(key)
        tab = page.get_by_role("tab", name=name)
        expect(tab).to_have_attribute("aria-selected", "true")
        expect(tab).to_be_focused()
        assert page.get_by_role("tabpanel").count() == 1


TOP = "each => each.getBoundingClientRect().top"


def test_no_text_is_wider_than_a_phone_and_conversations_begin_in_its_upper_quarter(
    server, open_page
):
    for size in (PHONE, {"width": 320, "height": 568}):
        page = open_page(server.url, viewport=size)
        for tab in TABS:
            panel = open_tab(page, tab)
            if size == PHONE and tab != "Ask a text":
                assert panel.locator(".said, .rows.turns").evaluate(TOP) < PHONE["height"] / 4
            use(panel, tab)
            assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), tab


@pytest.mark.parametrize(("size", "scheme"), [(WIDE, "light"), (PHONE, "dark")])
def test_axe_finds_nothing(server, open_page, size, scheme):
    package = pytest.importorskip("axe_playwright_python")
    axe = pathlib.Path(package.__file__).parent / "axe.min.js"
    # With bypass_csp, axe is evaluated as a script of the test, not of the page.
    page = open_page(server.url, viewport=size, color_scheme=scheme, bypass_csp=True)
    page.locator("mark").wait_for()
    page.evaluate(f"{axe.read_text(encoding='utf-8')}; 0")
    for tab in TABS:
        panel = open_tab(page, tab)
        use(panel, tab)
        for fold in panel.locator("details").all():
            fold.evaluate("fold => { fold.open = true; }")
        page.wait_for_timeout(100)
        findings = []
        for violation in page.evaluate(RUN_AXE)["violations"]:
            nodes = [node["html"][:200] for node in violation["nodes"]]
            findings.append((violation["id"], nodes[:3]))
        assert findings == [], tab
