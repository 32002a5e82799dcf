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
TASKS = ("selection", "reading_comprehension", "generation", "dialog")
SIZES = {"wide_light": (1440, 900), "phone_dark": (390, 844)}


def take(browser, url, task, name):
    """Opens the first example of a task, sends it and writes `TASK_NAME.png`."""
    width, height = SIZES[name]
    page = browser.new_page(
        viewport={"width": width, "height": height}, color_scheme=name.split("_")[1]
    )
    page.goto(f"{url}#{task}")
    panel = page.locator(f"#panel-{task}")
    panel.locator(".about:not(:empty)").wait_for(state="attached")
    panel.locator("[type=submit]").click()
    panel.locator(".explanation section, .passage").first.wait_for()
    if name == "wide_light":
        page.evaluate("scrollTo(0, 0)")
    file = OUT / f"{task}_{name}.png"
    page.screenshot(path=file)
    Image.open(file).convert("RGB").quantize(128).save(file, optimize=True)
    page.close()


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
