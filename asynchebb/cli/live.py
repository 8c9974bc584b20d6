"""`asynchebb live`: watch a network learn in the browser."""

from __future__ import annotations

import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from asynchebb import progress
from asynchebb.cli import shared

Port = Annotated[int | None, typer.Option(help="port to listen on", show_default="the first free one from 8765 on")]
Host = Annotated[str, typer.Option(help="address to listen on; 0.0.0.0 admits other machines that know the token")]
PublicUrl = Annotated[
    str | None,
    typer.Option(help="address at which a proxy with TLS shows the page: https://hebb.example.org", show_default=False),
]
NoBrowser = Annotated[bool, typer.Option("--no-browser", help="print the address instead of opening it")]


def live(
    model: shared.Model = "asynchronous",
    stimulus: shared.Stimulus = "Crossbars(14)",
    n: shared.N = 500,
    seed: shared.Seed = 0,
    engine: shared.Engine = "cpu",
    port: Port = None,
    host: Host = "127.0.0.1",
    public_url: PublicUrl = None,
    no_browser: NoBrowser = False,
) -> None:
    """Watch a network learn on a page in the browser, and move its controls while it does. Ctrl-C stops it."""
    with progress.working("starting"):
        from asynchebb import notation
        from asynchebb.checks import one_of
        from asynchebb.live_page import Live
        from asynchebb.live_page.server import PORT
        from asynchebb.live_page.session import Session
        from asynchebb.live_page.setting import beginning
        from asynchebb.network import MODELS
        from asynchebb.runs.run import check_stimulus

        one_of("model", model, MODELS)
        shown = notation.parse_named("stimulus", stimulus)
        check_stimulus(shown)
        session = Session(beginning(MODELS[model](n, shown.m), shown, seed=seed), engine)
        page = Live(session, host=host, port=port, public_url=public_url)
    with ExitStack() as until_stopped:
        until_stopped.callback(page.stop)
        if port is None and page.port != PORT:
            typer.echo(f"port {PORT} is in use; the page is at {page.port}")
        if page.is_public:
            shared.warn(
                "other machines can reach the page, and it speaks plain HTTP: whoever reads the traffic has the token, "
                "too; `--host 127.0.0.1` with `--public-url` puts it behind a proxy with TLS"
            )
        typer.echo(f"{page.url}\nCtrl-C stops it")
        try:
            if not no_browser:
                folder = tempfile.TemporaryDirectory(prefix="asynchebb-live-")  # which only this user may enter
                open_browser(page.url, Path(until_stopped.enter_context(folder)))
            while True:
                time.sleep(3600)
        except KeyboardInterrupt:
            typer.echo("\nstopped", err=True)


def open_browser(url: str, folder: Path) -> None:
    """Open the page by a file that leads to it: all users can read a browser's command line, and with it the token."""
    import webbrowser
    from html import escape

    file = folder / "open.html"
    file.touch(mode=0o600)
    file.write_text(f'<meta http-equiv="refresh" content="0; url={escape(url)}">\n', encoding="utf-8")
    webbrowser.open(file.as_uri())
