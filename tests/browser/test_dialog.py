"""Dialog bAbI: a dialog of the benchmark, step by step."""

import pytest

from tests.browser.steps import copied, edit, press, said, say, wait_until_idle

expect = pytest.importorskip("playwright.sync_api").expect

HELLO = "hello\n✓ as in the dialog"


def step(panel):
    """Says the dialog's next sentence, and waits for the response."""
    wait_until_idle(panel)
    before = panel.locator(".talk li[data-who=bot]").count()
    press(panel, "Next")
    expect(panel.locator(".talk li[data-who=bot]:not([aria-busy])")).to_have_count(before + 1)
    wait_until_idle(panel)


def test_a_dialog_is_played_step_by_step_beside_what_it_has(dialog, models):
    wait_until_idle(dialog)
    body = copied(dialog, "JSON", "JSON")  # the request that was answered
    assert '"text": "hi"' in body
    assert "hello" not in body and "SILENCE" not in body
    assert dialog.locator(".lead span").inner_text() == "Its restaurants are invented."
    assert dialog.locator("optgroup").get_attribute("label") == "Task 1"
    expect(dialog.locator(".talk li")).to_have_text(["hi", "hello✓ as in the dialog"])
    expect(dialog.locator("[name=text]")).to_have_value("a table")
    step(dialog)
    facts = dialog.locator(".talk li[data-who=facts]")
    assert said(dialog)[3:] == [
        "how many\nThe dialog has: where",
        "2 facts of the knowledge base",
    ]
    facts.locator("summary").click()
    assert facts.locator("p").all_inner_texts()[1] == "casa R_phone casa_phone"
    step(dialog)  # silence
    history = models["fake-dialog"].asked[-1]["history"]
    assert [turn["text"] for turn in history][3:4] == ["where"]  # as the dialog has it
    assert history[-1] == {"speaker": "user", "text": ""}
    assert said(dialog)[-1] == "api_call rome\n✓ as in the dialog"
    placeholder = dialog.locator("[name=text]").get_attribute("placeholder")
    assert placeholder == "The dialog is over."
    press(dialog, "Next")
    expect(dialog.locator(".error")).to_contain_text("choose another")
    expect(dialog.locator("[name=example]")).to_be_focused()


def test_after_a_changed_sentence_it_continues_with_its_own_responses(dialog):
    wait_until_idle(dialog)
    say(dialog, "rome")
    expect(dialog.locator(".talk li").last).to_have_text("what about casa")
    wait_until_idle(dialog)
    assert said(dialog) == [
        "hi",
        HELLO,
        "rome",
        "ok",
        "1 fact of the knowledge base",
        "(silence)",
        "what about casa",
    ]
    expect(dialog.locator("[name=example]")).to_have_value("")
    edit(dialog, "hi", "good morning")
    expect(dialog.locator(".talk li").last).to_have_text("ok")
    assert said(dialog) == ["good morning", "ok"]
    dialog.page.reload()
    expect(dialog.locator(".talk li")).to_have_text(["good morning", "ok"])


def test_other_tasks_are_a_switch_and_begin_with_a_dialog_of_their_own(dialog, models):
    tasks = dialog.get_by_role("radiogroup", name="Model")
    assert tasks.locator("label").all_inner_texts() == ["Tasks 1 to 5", "Task 6"]
    wait_until_idle(dialog)
    tasks.get_by_text("Task 6").click()
    expect(dialog.locator("optgroup")).to_have_attribute("label", "Task 6")
    expect(dialog.locator("[name=text]")).to_have_value("a table")
    assert models["a-other-dialog"].asked[-1]["history"] == [{"speaker": "user", "text": "hi"}]


def test_candidates_are_shown_and_memory_is_closed_until_opened(dialog, models, monkeypatch):
    step(dialog)
    assert dialog.locator(".ranked li").all_inner_texts() == ["80 %\nhow many", "20 %\nso"]
    assert dialog.locator(".explanation").is_hidden()
    dialog.locator(".fold > summary", has_text="What it remembered").click()
    flat = "Attention is flat here: each of 3 sentences has about 33 %."
    assert dialog.locator(".explanation").inner_text() == flat
    memories = {
        "title": "memories",
        "rows": [f"user: sentence {i}" for i in range(12)],
        "columns": ["hop 1", "hop 2"],
        "weights": [[i / 60, 1 / 12] for i in range(12)],
    }
    monkeypatch.setattr(models["fake-dialog"], "memories", lambda *_: [memories])
    step(dialog)
    bars = dialog.locator(".memories li:visible .hops")
    assert bars.count() == 8
    assert bars.last.get_attribute("aria-label") == "hop 1 18 %, hop 2 8 %"
    press(dialog, "4 more, with smaller weights")
    assert bars.count() == 12
    say(dialog, "xyzzy")
    rule = "A rule of the program answered, not the network."
    expect(dialog.locator(".result")).to_have_text(rule)
