"""What a person does on the pages, for the tests."""

FOCUSED = "document.activeElement.ariaLabel || document.activeElement.textContent"
DROP = """([selector, name, text]) => {
    const dataTransfer = new DataTransfer();
    if (name) dataTransfer.items.add(new File([text], name, { type: "text/plain" }));
    else dataTransfer.setData("text/plain", text);
    const target = document.querySelector(selector);
    const options = { dataTransfer, bubbles: true };
    for (const type of ["dragover", "drop"]) target.dispatchEvent(new DragEvent(type, options));
}"""
COPY = "([text, count]) => navigator.clipboard.writeText(text.repeat(count))"
TABS = ("Ask a text", "Talk", "Dialog bAbI", "Pick a response")


def open_tab(page, name):
    page.get_by_role("tab", name=name).click()
    panel = page.get_by_role("tabpanel")
    panel.locator(".about:not(:empty)").wait_for(state="attached")
    return panel


def open_menu(panel, name):
    panel.locator(".menu > summary", has_text=name).click()


def press(panel, name):
    panel.get_by_role("button", name=name, exact=True).click()


def wait_until_idle(panel):
    panel.locator(".busy[aria-busy=false]").wait_for(state="attached")


def ask(panel, question, text=None):
    """Asks a text, or the one that is there."""
    if text is not None:
        if panel.locator("[name=passage]").is_hidden():
            press(panel, "Edit")
        panel.locator("[name=passage]").fill(text)
    panel.get_by_label("Question", exact=True).fill(question)
    press(panel, "Ask")
    panel.locator("mark", has_text=question.split()[-1].strip("?")).wait_for()


def say(panel, text, reply=None):
    """Says `text` and waits until the reply is there and the next thing can be said."""
    panel.locator("[name=text]").fill(text)
    panel.locator(".composer [type=submit]").click()
    if reply:
        panel.locator(".talk li", has_text=reply).last.wait_for()
        wait_until_idle(panel)


def said(panel):
    """The bubbles, without what folds."""
    return panel.locator(".talk li").all_inner_texts()


def edit(panel, text, new):
    press(panel, f"Edit “{text}”")
    panel.get_by_label("What you said").fill(new)
    press(panel, "Say this instead")


def rank(panel, button="Rank"):
    press(panel, button)
    ranked = panel.locator(".ranked button")
    ranked.first.wait_for()
    return ranked


def rows(panel, kind):
    return panel.locator(f".rows.{kind} textarea").evaluate_all(
        "all => all.map((field) => field.value)"
    )


def copied(panel, name, kind):
    open_menu(panel, "Copy")
    press(panel, name)
    panel.get_by_text(f"Copied: {kind}.").wait_for()
    panel.page.keyboard.press("Escape")
    return panel.page.evaluate("navigator.clipboard.readText()")
