"""A page in the browser, or in a notebook, on which networks learn while one watches and moves the controls."""

from __future__ import annotations

from html import escape
from typing import Any

from asynchebb.contracts import Stimulus
from asynchebb.live_page.session import Session
from asynchebb.live_page.setting import beginning
from asynchebb.network import Network, State, asynchronous
from asynchebb.stimuli import Crossbars

HEIGHT = 900  # pixels, in a notebook


class Live:
    """A live page and the networks on it. In a notebook, it shows itself as the page."""

    def __init__(self, session: Session, **server: Any) -> None:
        from asynchebb.live_page.server import Server

        self._session = session
        self._server = Server(session, **server)
        self._server.start()

    @property
    def url(self) -> str:
        """The page's address, with its token."""
        return self._server.url

    @property
    def port(self) -> int:
        return self._server.port

    @property
    def is_public(self) -> bool:
        """Can other machines reach it?"""
        return self._server.is_public

    @property
    def state(self) -> State:
        """A copy of the network's state as it is now; of two, the first one's."""
        if not self._session.running:
            return self._session.simulation.states[0].copy()
        return self._session.state().result()

    def pause(self) -> None:
        """As the page's button does."""
        self._session.do({"do": "pause"}).result()

    def play(self) -> None:
        """As the page's button does."""
        self._session.do({"do": "play"}).result()

    def stop(self) -> None:
        """Stop the simulation and close the page; `state` remains."""
        self._server.stop()

    def __repr__(self) -> str:
        return f"<live page at {self.url}>" if self._session.running else "<live page, stopped>"

    def _repr_html_(self) -> str:
        if not self._session.running:
            return escape(repr(self))
        return (
            f'<iframe src="{escape(self.url)}" title="asynchebb live" width="100%" height="{HEIGHT}" '
            'style="border: 0" allow="clipboard-write"></iframe>'
        )


def live(
    network: Network | None = None,
    stimulus: Stimulus | None = None,
    *,
    seed: int = 0,
    engine: str = "cpu",
    port: int | None = None,
) -> Live:
    """Watch a network learn, in the output cell of a notebook or at the `url` of what is returned.

    It starts untrained. `.state` is its state at any time; `.pause()`, `.play()` and `.stop()` do what they say.

    >>> page = ah.live(ah.asynchronous(n=50, m=36), ah.Crossbars(6))
    >>> page.pause()
    >>> page.state.W.shape
    (50, 36)
    >>> page.stop()
    """
    stimulus = Crossbars() if stimulus is None else stimulus
    network = asynchronous(m=getattr(stimulus, "m", 196)) if network is None else network
    return Live(Session(beginning(network, stimulus, seed=seed), engine), port=port, framed=True)
