"""Look at every page of the site in a real browser, as wide as a desk's screen and as a phone's.

A page must fit (nothing makes it scroll sideways), its pictures must load, and it must ask for nothing from elsewhere.
`make docs` ends with this; without Chromium it says so and leaves it out.
"""

import json
import re
import subprocess
import sys
import tempfile
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from asynchebb.engines.gpu import device

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))  # which know the browser

import live_browser

WIDTHS = (1280, 390)
SECONDS = 240
ELSEWHERE = re.compile(r"<(?:script|link|img|iframe)\b[^>]*?\b(?:src|href)=[\"']?((?:https?:)?//[^\"'\s>]+)")
SCRIPT = """<!doctype html><link rel="icon" href="data:,"><body><script>
const wrong = [];
async function look(page, width) {
  const frame = document.createElement("iframe");
  frame.style.width = width + "px"; frame.style.height = "800px";
  await new Promise(done => { frame.onload = done; frame.src = page; document.body.append(frame); });
  const inside = frame.contentDocument, root = inside.documentElement;
  const pictures = [...inside.images];
  await Promise.all(pictures.map(image => { image.loading = "eager"; return image.decode().catch(() => 0); }));
  if (root.scrollWidth > width + 1) wrong.push(`${page} is ${root.scrollWidth} pixels wide on a screen of ${width}`);
  for (const image of pictures)
    if (!image.naturalWidth) wrong.push(`${page} has a picture that does not load: ${image.src.slice(0, 80)}`);
  frame.remove();
}
(async () => {
  const tasks = PAGES.flatMap(page => WIDTHS.map(width => [page, width]));
  const worker = async () => { while (tasks.length) await look(...tasks.pop()); };
  await Promise.all([worker(), worker(), worker()]);
  await fetch("/wrong", {method: "POST", body: JSON.stringify(wrong)});
})();
</script>"""


class Site(SimpleHTTPRequestHandler):
    """Serves the folder, a page that looks at the others, and takes what that has found."""

    found: list[str]
    finished: threading.Event

    def do_GET(self) -> None:
        if self.path != "/look":
            return super().do_GET()
        pages = [f"/{path}" for path in html_pages(Path(self.directory))]
        script = SCRIPT.replace("PAGES", json.dumps(pages), 1).replace("WIDTHS", json.dumps(WIDTHS), 1)
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.end_headers()
        self.wfile.write(script.encode())

    def do_POST(self) -> None:
        Site.found += json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(204)
        self.end_headers()
        Site.finished.set()

    def send_error(self, code: int, *rest: object) -> None:
        Site.found.append(f"{self.path} is asked for and not there")
        super().send_error(code)

    def log_message(self, *said: object) -> None:
        pass


def html_pages(site: Path) -> list[Path]:
    return sorted(path.relative_to(site) for path in site.rglob("*.html") if "_static" not in path.parts)


def from_elsewhere(site: Path) -> list[str]:
    """What pages would fetch from other machines."""
    texts = {page: (site / page).read_text(encoding="utf-8") for page in html_pages(site)}
    return [f"{page} asks for {url}" for page, text in texts.items() for url in ELSEWHERE.findall(text)]


def in_browser(site: Path, browser: str) -> list[str]:
    Site.found, Site.finished = [], threading.Event()
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Site, directory=str(site)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        command = [browser, *live_browser.FLAGS.split(), f"--user-data-dir={profile}", "--remote-debugging-port=0"]
        window = subprocess.Popen(
            [*command, f"http://127.0.0.1:{server.server_port}/look"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            if not Site.finished.wait(SECONDS):
                Site.found.append(f"{browser} has not finished in {SECONDS} s")
        finally:
            window.terminate()
            window.wait()
            server.shutdown()
    return Site.found


def main(site: Path) -> int:
    wrong, pages = from_elsewhere(site), len(html_pages(site))
    browser = live_browser.installed()
    if browser:
        wrong += in_browser(site, browser)
        print(f"{pages} pages looked at in {Path(browser).name}, {' and '.join(map(str, WIDTHS))} pixels wide")
    else:
        print(f"Left out: the {pages} pages were not looked at in a browser, since there is no Chromium")
    if missing := device.missing():
        print(f"Left out: nothing that needs a GPU was run ({missing})")
    print("\n".join(wrong) or f"The site is {site}/index.html")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
