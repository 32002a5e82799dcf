"""Takes the screenshots of docs/serving.md: python -m tests.browser.screenshots
http://127.0.0.1:8501/
"""

import itertools
import pathlib
import shutil
import sys

from PIL import Image
from playwright.sync_api import sync_playwright

OUT = pathlib.Path(__file__).parents[2] / "docs" / "screenshots"
TASKS = ("reading_comprehension", "generation", "dialog", "selection")
SIZES = {"wide_light": (1400, 900), "phone_dark": (390, 844)}
STEPS = 3  # of a dialog
LOADING_MS = 120_000  # a model that nobody has asked yet


def take(browser, url, task, name):
    """Uses a tab once and writes `TASK_NAME.png`."""
    width, height = SIZES[name]
    page = browser.new_page(
        viewport={"width": width, "height": height}, color_scheme=name.split("_")[1]
    )
    page.set_default_timeout(LOADING_MS)
    page.goto(f"{url}#{task}")
    use(page.locator(f"#panel-{task}"), task)
    page.evaluate("document.activeElement.blur(); scrollTo(0, 0)")
    file = OUT / f"{task}_{name}.png"
    page.screenshot(path=file)
    Image.open(file).convert("RGB").quantize(128).save(file, optimize=True)
    page.close()


def use(panel, task):
    """Asks a model as a person does; some tabs have asked their example by themselves."""
    if task == "reading_comprehension":
        panel.locator("mark").wait_for()
    elif task == "selection":
        panel.locator("[name=example] option").first.wait_for(state="attached")
        panel.get_by_role("button", name="Rank", exact=True).click()
        panel.locator(".ranked button").first.wait_for()
    elif task == "generation":
        panel.locator(".opening").first.click()
        panel.locator(".ranked").wait_for()
    else:
        panel.locator(".talk .verdict").first.wait_for()
        for _ in range(STEPS):
            panel.locator(".busy[aria-busy=false]").wait_for(state="attached")
            panel.get_by_role("button", name="Next", exact=True).click()
        panel.locator(".busy[aria-busy=false]").wait_for(state="attached")


def main(url):
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    with sync_playwright() as engine:
        browser = engine.chromium.launch(
            executable_path=chromium, args=["--no-sandbox", "--disable-gpu"]
        )
        for task, name in itertools.product(TASKS, SIZES):
            take(browser, url, task, name)
        browser.close()


if __name__ == "__main__":
    main(sys.argv[1])
