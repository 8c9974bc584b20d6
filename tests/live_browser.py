"""A real browser for the live page: Chromium, as the distribution packages it or as it is already there.

`python tests/live_browser.py FOLDER`, or `make screenshots`, takes those that the README and the docs show.
"""

import os
import shutil
import sys
import time
from contextlib import contextmanager
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking"
FLAGS += " --disable-component-update --disable-sync"
MISSING = f"needs a browser: none of {', '.join(NAMES)} is installed (Debian and Ubuntu: apt-get install chromium)"


def installed():
    """The browser's path; None where there is none."""
    return next(filter(None, map(shutil.which, NAMES)), None)


def found():
    """The same, but that none is an error in CI."""
    path = installed()
    if path is None and os.environ.get("CI") == "true":
        raise RuntimeError(MISSING)
    return path


@contextmanager
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=found(), args=FLAGS.split())
        try:
            yield chromium
        finally:
            chromium.close()


def view(chromium, url, width=1280, height=1000, **given):
    """The page in a window of its own, once frames arrive."""
    page = chromium.new_context(viewport={"width": width, "height": height}, **given).new_page()
    page.problems = []
    page.on("pageerror", lambda error: page.problems.append(str(error)))
    page.on("console", lambda message: message.type == "error" and page.problems.append(message.text))
    page.goto(url)
    eventually(lambda: page.inner_text("#frames-per-second").isdecimal())
    return page


def eventually(condition, seconds=60.0):
    """Wait for it. (The page's security policy forbids the browser to evaluate what Playwright would wait for.)"""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it took too long"
        time.sleep(0.05)


def screenshots(folder):
    import asynchebb as ah

    live = ah.live()
    with browser() as chromium:
        page = view(chromium, live.url, height=960)
        page.click("[data-tour=three_worlds]")
        eventually(lambda: page.input_value("#stimulus").startswith("Diagonals"), 120)
        page.wait_for_timeout(8000)
        page.screenshot(path=folder / "live.png")
        page.select_option("#second", "")
        page.click("#reset")
        phone = view(chromium, live.url, 390, 844, color_scheme="dark")
        phone.wait_for_timeout(6000)
        phone.screenshot(path=folder / "live-phone.png")
    live.stop()


if __name__ == "__main__":
    screenshots(Path(sys.argv[1]))
