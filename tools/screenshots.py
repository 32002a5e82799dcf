"""Takes the pictures of the pages that docs/serving.md shows: four tabs, wide and on a phone, light and dark.

python serve.py --samples                                   # and in another terminal:
python -m tools.screenshots --out=docs/screenshots

Needs requirements-browser.txt and Chromium. Each tab answers its own example first.
"""

import io
import pathlib
import shutil

from absl import flags

from base import cli
from base.files import UserError

FLAGS = flags.FLAGS
flags.DEFINE_string("url", "http://127.0.0.1:8501/", "Where serve.py listens.")
flags.DEFINE_string("out", None, "Directory of the pictures.", required=True)

TABS = {"selection": "Rank", "reading_comprehension": "Ask", "generation": "Say", "dialog": "Say"}
"""A tab's task, and the button that asks."""
SAID = ("", "four of us")
"""What is said in a dialog after its example; nothing: the bot goes on."""
WINDOWS = {"wide": (1100, 800), "phone": (390, 844)}
SCHEMES = ("light", "dark")
HEIGHT = 1400  # pixels of a picture at most
COLORS = 64


def main():
    try:
        from playwright.sync_api import sync_playwright
    except ImportError as error:
        raise UserError("this needs a browser: python -m pip install -r requirements-browser.txt") from error
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if not chromium:
        raise UserError("expected Chromium. Received: no chromium or chromium-browser on the path")
    out = pathlib.Path(FLAGS.out)
    out.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as engine:
        browser = engine.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        for window, (width, height) in WINDOWS.items():
            for scheme in SCHEMES:
                view = {"width": width, "height": height}
                page = browser.new_context(viewport=view, color_scheme=scheme).new_page()
                for task in TABS:
                    file = out / f"{task}_{window}_{scheme}.png"
                    file.write_bytes(small(picture_of(page, task)))
                    print(f"{file}: {file.stat().st_size:,} bytes")
        browser.close()


def picture_of(page, task):
    """A tab with its example answered, as PNG."""
    page.goto(f"{FLAGS.url}#{task}")
    page.reload()
    panel = page.locator(f"#panel-{task}")
    panel.locator("button[type=submit]").wait_for()
    if task in ("generation", "dialog"):
        panel.locator("[name=example]").select_option(index=1)
    button, said = panel.get_by_role("button", name=TABS[task], exact=True), panel.locator(".talk li[data-who=you]")
    button.click()
    if task == "dialog":  # its first sentence has none before it to attend to
        for number in (1, 2):
            said.nth(number - 1).wait_for()
            panel.get_by_label("You").fill(SAID[number - 1])
            button.click()
    panel.locator(".explanation .map td").first.wait_for(timeout=60_000)
    page.evaluate("document.activeElement.blur(); scrollTo(0, 0)")
    return page.screenshot(full_page=True)


def small(png):
    """The upper part of a picture in few colours, as PNG."""
    from PIL import Image  # comes with matplotlib

    picture = Image.open(io.BytesIO(png)).convert("RGB")
    picture = picture.crop((0, 0, picture.width, min(picture.height, HEIGHT)))
    written = io.BytesIO()
    picture.quantize(COLORS).save(written, "PNG", optimize=True)
    return written.getvalue()


if __name__ == "__main__":
    cli.run(main)
