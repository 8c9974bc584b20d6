"""The live page in a real browser, as a person uses it. Screenshots are kept in .pytest_cache/live_page."""

import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import live_browser
import numpy as np
import pytest
from live_browser import eventually, view
from PIL import Image

import asynchebb as ah

KEPT = Path(__file__).parents[1] / ".pytest_cache" / "live_page"

pytestmark = pytest.mark.skipif(live_browser.found() is None, reason=live_browser.MISSING)


@pytest.fixture(scope="module")
def chromium():
    KEPT.mkdir(parents=True, exist_ok=True)
    with live_browser.browser() as found:
        yield found


@pytest.fixture
def live():
    found = ah.live(ah.asynchronous(40, 64), ah.Crossbars(8))
    yield found
    found.stop()


@pytest.fixture
def page(chromium, live):
    found = view(chromium, live.url)
    yield found
    assert found.problems == []
    found.context.close()


def number(page, name):
    """A number as it stands on the page; NaN before the first frame."""
    return float(page.inner_text(f"#{name}").replace(",", "").replace("–", "nan"))


def pixels(page, selector):
    return page.evaluate(
        "selector => { const c = document.querySelector(selector);"
        "return [...c.getContext('2d').getImageData(0, 0, c.width, c.height).data].filter((_, k) => k % 4 === 0); }",
        selector,
    )


def setting(live):
    return live._session.simulation.setting


def test_frames_arrive_and_change_and_the_page_survives_a_reload_and_a_second_tab(
    chromium, live, page, record_property
):
    before, step = pixels(page, ".fields"), number(page, "steps")
    eventually(lambda: number(page, "steps") > step and pixels(page, ".fields") != before)
    eventually(
        lambda: number(page, "steps-per-second") > 0 and page.inner_text("[data-curve=error] + figcaption output")
    )
    page.wait_for_timeout(1100)
    record_property("frames per second in the browser", page.inner_text("#frames-per-second"))
    page.screenshot(path=KEPT / "desktop.png", full_page=True)
    step = number(page, "steps")
    page.reload()
    eventually(lambda: number(page, "steps") > step)  # it went on, and did not begin again
    other = view(chromium, live.url, 390, 844, color_scheme="dark")
    page.click("#play")
    eventually(lambda: other.inner_text("#play") == "Play")
    eventually(lambda: number(other, "steps") == number(page, "steps"))
    assert other.evaluate("document.documentElement.scrollWidth") <= 390
    other.screenshot(path=KEPT / "phone_dark.png", full_page=True)
    assert other.problems == []
    other.context.close()


def test_play_pause_step_and_speed_move_the_steps(page):
    page.click("#play")
    eventually(lambda: page.inner_text("#play") == "Play")
    page.wait_for_timeout(300)
    step = number(page, "steps")
    page.click("#step")
    eventually(lambda: number(page, "steps") == step + 1)
    page.click("#next")
    eventually(lambda: number(page, "steps") == step + 500)
    page.locator("#speed").fill("3")
    eventually(lambda: page.inner_text("#speed-says") == "300 steps/s")
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press(" ")  # the keyboard plays, too
    eventually(lambda: page.inner_text("#play") == "Pause" and 150 < number(page, "steps-per-second") < 450)


def test_each_control_of_the_network_acts_at_once(live, page):
    page.uncheck("#plasticity")
    eventually(lambda: not setting(live).learns)
    before = live.state.W
    page.wait_for_timeout(200)
    assert np.array_equal(before, live.state.W)
    eventually(lambda: page.inner_text("[data-curve=updates] + figcaption output") == "0")
    page.check("#plasticity")
    eventually(lambda: not np.array_equal(before, live.state.W))
    for name, value, part in (("r_b", "0.5", "schedule"), ("r_r", "10", "schedule"), ("eta", "0.004", "rule")):
        page.fill(f"#{name}", value)
        page.press(f"#{name}", "Enter")
        eventually(
            lambda name=name, value=value, part=part: (
                getattr(getattr(setting(live).networks[0], part), name) == float(value)
            )
        )
    eventually(lambda: page.inner_text(".network h2") == "asynchronous · r_b 0.5 · r_r 10 · η 0.004")
    page.fill("#hold", "100")
    page.press("#hold", "Enter")
    eventually(lambda: setting(live).hold == 100)
    page.select_option("#from_rest", "false")
    eventually(lambda: setting(live).from_rest is False)
    page.select_option("#dynamics", label="Potential")
    eventually(lambda: setting(live).networks[0].dynamics == ah.Potential())
    page.select_option("#model", "discrete")
    eventually(lambda: page.inner_text(".network h2") == "discrete · η 0.01" and page.is_disabled("#r_b"))
    page.fill("#seed", "5")
    page.fill("#n", "25")
    page.fill("#hold", "0")
    page.press("#hold", "Enter")
    eventually(lambda: "hold is 0; it must be a whole number of at least 1" in page.inner_text("#message"))
    page.wait_for_timeout(300)  # some frames, of which the first shows all controls anew
    assert setting(live).hold == 100
    page.click("#reset")  # with what was typed, whatever was shown meanwhile
    eventually(lambda: live.state.W.shape[0] == 25 and setting(live).seed == 5)


def test_two_networks_stand_side_by_side_and_tours_explain_themselves(live, page):
    page.select_option("#second", "continuous")
    eventually(lambda: page.locator(".network").count() == 2)
    page.check("[name=which][value='1']")
    page.fill("#eta", "0.003")
    page.press("#eta", "Enter")
    eventually(lambda: [network.rule.eta for network in setting(live).networks] == [0.002, 0.003])
    page.click("[data-tour=refractoriness]")
    eventually(lambda: [getattr(network.schedule, "r_r", None) for network in setting(live).networks] == [0, 100])
    eventually(lambda: page.inner_text("#tour-says h2") == "Why refractoriness matters")
    assert page.inner_text("#tour-says p").count(". ") == 1  # two sentences
    page.screenshot(path=KEPT / "tour.png", full_page=True)
    page.click("[data-tour=no_waiting]")
    eventually(lambda: page.locator(".network h2").first.inner_text().startswith("discrete"))
    page.click("[data-tour=three_worlds]")
    eventually(lambda: len(setting(live).then) == 2 and "Squares(14), then Diagonals(14)" in page.inner_text("#then"))
    eventually(lambda: page.inner_text("#legend").count("(14)") == 3)
    page.select_option("#second", "")
    eventually(lambda: page.locator(".network").count() == 1)


def test_the_stimulus_can_be_switched_drawn_and_uploaded(live, page, tmp_path):
    page.select_option("#stimulus", label="Squares(8)")
    eventually(lambda: setting(live).stimulus == ah.Squares(8) and "Squares(8)" in page.inner_text("#legend"))
    pad = page.locator("#pad").bounding_box()
    page.mouse.move(pad["x"] + 5, pad["y"] + 5)
    page.mouse.down()
    page.mouse.move(pad["x"] + pad["width"] - 5, pad["y"] + 5, steps=30)
    page.mouse.up()
    page.click("#draw-show")
    eventually(lambda: isinstance(setting(live).stimulus, ah.FromArray))
    row = setting(live).stimulus.rows.reshape(8, 8)
    assert row[0].all() and not row[1:].any()
    eventually(lambda: min(pixels(page, ".stimulus")[:8]) == max(pixels(page, ".stimulus")[:8]) < 128)  # a dark row
    page.click("#draw-clear")
    page.focus("#pad")
    page.keyboard.press("ArrowUp")
    page.keyboard.press(" ")
    page.click("#draw-add")
    eventually(lambda: len(setting(live).stimulus.rows) == 2)
    assert setting(live).stimulus.rows[1].reshape(8, 8)[3, 4] == 1 and setting(live).stimulus.rows[1].sum() == 1
    half = np.zeros((40, 60), np.uint8)
    half[:, 30:] = 255
    Image.fromarray(half).save(tmp_path / "half.png")
    page.set_input_files("#upload", tmp_path / "half.png")
    eventually(lambda: len(set(pixels(page, "#pad"))) > 1)
    page.wait_for_timeout(200)
    page.click("#draw-show")
    eventually(lambda: setting(live).stimulus.rows[0].reshape(8, 8)[:, 5:].all())
    assert not setting(live).stimulus.rows[0].reshape(8, 8)[:, :3].any()
    page.set_input_files("#upload", {"name": "no.png", "mimeType": "image/png", "buffer": b"nothing"})
    eventually(lambda: "no.png is not an image" in page.inner_text("#message"))


def test_a_neuron_is_enlarged_and_fields_are_sorted(live, page):
    page.select_option("#sort", "fixed")
    page.click(".fields", position={"x": 5, "y": 5})
    eventually(lambda: page.is_visible("#neuron") and page.inner_text("#neuron-title") == "Neuron 0")
    eventually(lambda: "burst" in page.inner_text("#neuron .bursts") and max(pixels(page, ".lateral")) > 0)
    page.focus(".fields")
    page.keyboard.press("ArrowRight")
    eventually(lambda: page.inner_text("#neuron-title") == "Neuron 1")
    page.keyboard.press("Escape")
    eventually(lambda: page.is_hidden("#neuron"))
    page.click("#play")
    page.wait_for_timeout(1500)
    fixed = pixels(page, ".fields")
    page.select_option("#sort", "activity")
    by_activity = pixels(page, ".fields")
    page.select_option("#sort", "factor")
    assert fixed != by_activity and sorted(fixed) == sorted(by_activity) == sorted(pixels(page, ".fields"))


def test_what_is_seen_can_be_kept_and_shared(chromium, live, page, tmp_path):
    page.fill("#r_r", "33")
    page.press("#r_r", "Enter")
    eventually(lambda: setting(live).networks[0].schedule.r_r == 33)
    page.click("#play")
    eventually(lambda: page.inner_text("#play") == "Play")
    for name, opens in (
        ("state", "asynchebb-state.npz"),
        ("fields", "asynchebb-fields.png"),
        ("run", "asynchebb-run.nc"),
    ):
        with page.expect_download() as download:
            page.click(f"#save-{name}")
        assert download.value.suggested_filename == opens
        download.value.save_as(tmp_path / opens)
    assert np.array_equal(np.load(tmp_path / "asynchebb-state.npz")["W"], live.state.W)
    assert Image.open(tmp_path / "asynchebb-fields.png").size[0] > 500
    with ah.open_run(tmp_path / "asynchebb-run.nc") as dataset:
        assert np.array_equal(dataset.W[-1], live.state.W)
    page.click("#copy-code")
    eventually(lambda: "ah.Network(40, 64" in page.input_value("#copied") and "r_r=33" in page.input_value("#copied"))
    page.click("#copy-link")
    eventually(lambda: page.input_value("#copied").startswith(f"http://127.0.0.1:{live.port}/#"))
    link = page.input_value("#copied")
    assert "token" not in link
    live._session.do({"do": "constant", "name": "r_r", "value": 1}).result()
    for answer, r_r in (("dismiss", 1), ("accept", 33)):  # any page on the web can open such a link: it asks
        page.goto("about:blank")
        with page.expect_event("dialog") as asked:
            page.goto(link)  # the browser remembers the token
        assert "will be lost" in asked.value.message
        getattr(asked.value, answer)()
        eventually(lambda r_r=r_r: setting(live).networks[0].schedule.r_r == r_r)
        assert len(setting(live).networks) == 1
    assert page.context.cookies() == []
    stranger = chromium.new_context().new_page()
    stranger.goto(link)
    eventually(lambda: "it ends in a token" in stranger.inner_text("#message"))
    stranger.context.close()
    page.problems.clear()


def test_a_page_on_another_port_can_neither_load_pictures_nor_frame_the_page(live, page):
    """To a browser, all ports of a machine are the same site."""
    own = f"http://127.0.0.1:{live.port}"
    pictures = f"{own}/fields.png", live.url.replace("/?", "/fields.png?")
    images = "".join(f"<img src='{picture}'>" for picture in pictures)

    class Elsewhere(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(f"{images}<iframe src='{own}/'></iframe>".encode())

    statuses, other = {}, page.context.new_page()
    other.on("response", lambda response: statuses.update({response.url: response.status}))
    with ThreadingHTTPServer(("127.0.0.1", 0), Elsewhere) as served:
        threading.Thread(target=served.serve_forever, daemon=True).start()
        other.goto(f"http://127.0.0.1:{served.server_port}/")  # until all that it shows is loaded
        served.shutdown()
    assert [statuses[picture] for picture in pictures] == [403, 403] and statuses[f"{own}/"] == 200
    frame = other.frame_locator("iframe")
    eventually(lambda: "it ends in a token" in frame.locator("#message").inner_text())


def test_in_a_notebook_the_page_works_inside_another_one(chromium, live):
    notebook = chromium.new_context().new_page()
    notebook.set_content(live._repr_html_())
    frame = notebook.frame_locator("iframe")
    eventually(lambda: frame.locator("#frames-per-second").inner_text().isdecimal())
    frame.locator("#play").click()
    eventually(lambda: not live._session.playing)
    live.play()
    eventually(lambda: frame.locator("#play").inner_text() == "Pause")
    notebook.context.close()


def test_a_network_that_diverges_is_shown_as_such_and_can_be_reset(live, page):
    page.select_option("#model", "continuous")
    page.fill("#eta", "1e30")
    page.press("#eta", "Enter")
    eventually(lambda: "diverged" in page.inner_text("#trouble"))
    page.screenshot(path=KEPT / "diverged.png")
    page.select_option("#model", "asynchronous")
    eventually(lambda: setting(live).networks[0].rule.eta == 0.002)
    page.click("#reset-trouble")
    eventually(lambda: page.is_hidden("#trouble") and page.inner_text("#play") == "Pause")
    step = number(page, "steps")
    eventually(lambda: number(page, "steps") > step)


def test_everything_can_be_reached_by_keyboard_and_has_a_name(page):
    unnamed = page.evaluate(
        """() => [...document.querySelectorAll("button, select, input, textarea, a, canvas[tabindex]")].filter(
             e => !(e.labels?.length || e.textContent.trim() || e.ariaLabel || e.title)).map(e => e.outerHTML)"""
    )
    assert unnamed == []
    reached = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.id || document.activeElement.className"))
    assert {
        "play",
        "speed",
        "fields",
        "plasticity",
        "stimulus",
        "pad",
        "reset",
        "save-run",
        "copy-code",
        "sort",
    } <= reached
    assert re.fullmatch(r"[\d,]+", page.inner_text("#steps")) and json.dumps(page.problems) == "[]"
