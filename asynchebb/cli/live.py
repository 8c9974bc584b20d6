"""`asynchebb live`: watch a network learn in the browser."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from asynchebb import progress
from asynchebb.cli import shared

Port = Annotated[int | None, typer.Option(help="port to listen on", show_default="the first free one from 8765 on")]
Host = Annotated[str, typer.Option(help="address to listen on; 0.0.0.0 admits other machines that know the token")]
NoBrowser = Annotated[bool, typer.Option("--no-browser", help="print the address instead of opening it")]


def live(
    model: shared.Model = "asynchronous",
    stimulus: shared.Stimulus = "Crossbars(14)",
    n: shared.N = 500,
    seed: shared.Seed = 0,
    engine: shared.Engine = "cpu",
    port: Port = None,
    host: Host = "127.0.0.1",
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
        page = Live(session, host=host, port=port)
    try:
        if port is None and page.port != PORT:
            typer.echo(f"port {PORT} is in use; the page is at {page.port}")
        typer.echo(f"{page.url}\nCtrl-C stops it")
        if not no_browser:
            import webbrowser

            webbrowser.open(page.url)
        while True:
            time.sleep(3600)
    except KeyboardInterrupt:
        typer.echo("\nstopped", err=True)
    finally:
        page.stop()
