"""What holds for every tab: places, menus, loading, links, keyboard, barriers; and /docs."""

import pathlib

import pytest
from echo import Echo, served

from tests.browser.conftest import PHONE, WIDE, Server, opened
from tests.browser.fakes import make_models
from tests.browser.steps import (
    TABS,
    copied,
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


def test_the_first_tab_is_a_tool_and_the_others_are_research_demos(open_page):
    models = make_models()
    del models["fake-selection"]  # its tab has no model
    server = Server(models)
    page = open_page(server.url)
    page.locator("mark").wait_for()
    assert page.get_by_role("tab").all_inner_texts() == list(TABS[:3])
    assert page.locator(".demos").inner_text().split("\n")[0] == "Research demos"
    lefts = set()
    for tab in TABS[1:3]:
        panel = open_tab(page, tab)
        assert page.title() == f"{tab} - Colloquy"
        assert panel.locator(".explanation").is_hidden()
        assert len(panel.locator(".lead span").inner_text()) > 20
        lefts.add(panel.locator(".lead").bounding_box()["x"])
    assert len(lefts) == 1
    server.stop()


def test_tabs_are_reached_by_keyboard_and_their_panels_keep_their_places(reading):
    page = reading.page
    page.get_by_role("tab", name="Ask a text").focus()
    moves = (("ArrowRight", "Talk"), ("End", "Pick a response"), ("ArrowRight", "Ask a text"))
    for key, name in moves:
        page.keyboard.press(key)
        tab = page.get_by_role("tab", name=name)
        expect(tab).to_have_attribute("aria-selected", "true")
        expect(tab).to_be_focused()
        assert page.get_by_role("tabpanel").count() == 1
    for tab in ("Talk", "Pick a response"):
        panel = open_tab(page, tab)
        before = places(panel)
        use(panel, tab)
        assert places(panel) == before and before


def test_copy_is_one_menu_of_a_link_and_requests(ranking, server, open_page):
    page = ranking.page
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


def test_back_returns_to_what_was_typed(ranking, server, open_page):
    page = ranking.page
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


# === Loading, the key, the connection ===


def test_what_is_asked_while_a_model_loads_is_answered_then(own_server, open_page):
    model = own_server.models["fake-reading_comprehension"]
    model.held.add("loading")
    page = open_page(own_server.url)
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

    # What is typed and said before the examples are there stays.
    model = own_server.models["fake-generation"]
    model.held.add("card")
    page.get_by_role("tab", name="Talk").click()
    panel.locator("[name=text]").fill("tea ?")
    model.held.clear()
    expect(panel.locator(".opening")).to_have_count(4)
    expect(panel.locator("[name=text]")).to_have_value("tea ?")
    model = own_server.models["fake-dialog"]
    model.held.add("card")
    page.get_by_role("tab", name="Dialog bAbI").click()
    say(panel, "xyzzy")
    model.held.clear()
    expect(panel.locator(".talk li")).to_have_text(["xyzzy", "ok"])


def test_a_damaged_model_and_a_lost_server_are_said(own_server, open_page):
    model = own_server.models["fake-reading_comprehension"]
    model.damage = "it is damaged"
    page = open_page(own_server.url)
    panel = page.get_by_role("tabpanel")
    expect(panel.locator(".error")).to_have_text("It is damaged.")
    model.damage = ""
    press(panel, "Ask")  # asking tries again
    expect(panel.locator("mark")).to_have_text("Paris")

    talk = open_tab(page, "Talk")
    own_server.stop()
    say(talk, "tea ?")
    expect(talk.locator(".error")).to_have_text("The server does not answer.")
    expect(talk.locator("[name=text]")).to_have_value("tea ?")
    own_server.start()
    press(talk, "Say")
    talk.locator(".talk li", has_text="you said: tea ?").wait_for()
    page.route("**:explain", lambda route: route.fulfill(status=502, body="<html>"))
    say(talk, "milk")
    expect(talk.locator(".error")).to_have_text("The server answered with status 502.")
    page.route("**/v1/models", lambda route: route.abort())
    page.reload()
    expect(page.locator("#notice")).to_have_text("The server does not answer.")


def test_copies_have_the_place_of_the_key(browser, own_server):
    own_server.stop()
    own_server.start("secret")
    login = {"username": "", "password": "secret"}
    context = browser.new_context(http_credentials=login)
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    with opened(context, own_server.url) as page:
        page.locator("mark").wait_for()  # the browser has the key
        panel = page.get_by_role("tabpanel")
        curl = copied(panel, "curl", "curl")
        program = copied(panel, "Python", "Python")
    assert '-H "Authorization: Bearer $COLLOQUY_API_KEY"' in curl
    assert 'os.environ["COLLOQUY_API_KEY"]' in program
    assert "secret" not in curl + program
    context.close()


# === Barriers ===

TOP = "each => each.getBoundingClientRect().top"


def test_no_text_is_wider_than_a_phone_and_conversations_begin_in_its_upper_quarter(
    server, open_page
):
    for size in (PHONE, {"width": 320, "height": 568}):
        page = open_page("about:blank")
        page.set_viewport_size(size)
        page.goto(server.url)
        for tab in TABS:
            panel = open_tab(page, tab)
            if size == PHONE and tab != "Ask a text":
                assert panel.locator(".said, .rows.turns").evaluate(TOP) < PHONE["height"] / 4
            use(panel, tab)
            assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), tab


def test_axe_finds_nothing(browser, server):
    package = pytest.importorskip("axe_playwright_python")
    axe = pathlib.Path(package.__file__).parent / "axe.min.js"
    # With bypass_csp, axe is evaluated as a script of the test, not of the page.
    context = browser.new_context(viewport=WIDE, bypass_csp=True)
    with opened(context, server.url) as page:
        page.locator("mark").wait_for()
        page.evaluate(f"{axe.read_text(encoding='utf-8')}; 0")
        for tab in TABS:
            panel = open_tab(page, tab)
            use(panel, tab)
            for fold in panel.locator("details").all():
                fold.evaluate("fold => { fold.open = true; }")
            for size, scheme in ((WIDE, "light"), (PHONE, "dark")):
                page.set_viewport_size(size)
                page.emulate_media(color_scheme=scheme)
                page.wait_for_timeout(100)
                findings = []
                for violation in page.evaluate(RUN_AXE)["violations"]:
                    nodes = [node["html"][:200] for node in violation["nodes"]]
                    findings.append((violation["id"], nodes[:3]))
                assert findings == [], (tab, scheme)
    context.close()


# === /docs ===

ABC = {"title": "A text", "instance": {"text": "abc"}}


def test_a_request_is_tried_out(open_page):
    server = Server({"echo": served(Echo(), examples=[ABC])})
    page = open_page(f"{server.url}docs")
    refused = []
    page.on("console", lambda message: refused.append(message.text))
    operation = page.locator("#operations-echo-predict_echo")
    operation.click()
    operation.get_by_role("button", name="Try it out").click()
    assert '"text": "abc"' in operation.locator("textarea").input_value()
    operation.get_by_role("button", name="Execute").click()
    answer = operation.locator(".live-responses-table")
    expect(answer.locator(".response-col_status").last).to_contain_text("200")
    expect(answer).to_contain_text('"length": 3')
    assert [text for text in refused if "Content Security Policy" in text] == []
    server.stop()
