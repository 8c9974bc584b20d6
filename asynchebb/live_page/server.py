"""The server of a live page: five files, one websocket, a few downloads.

Each page acknowledges each frame, and gets the next only then: the newest frame wins, and nothing queues. Whoever wants
to see or move anything must know the token that is made at each start, and come from the page itself. There is no
cookie: browsers send one to every port of a machine, and so to its other users' servers.
"""

from __future__ import annotations

import asyncio
import errno
import hmac
import io
import ipaddress
import json
import re
import secrets
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from asynchebb.checks import InputError
from asynchebb.live_page.session import Session
from asynchebb.live_page.setting import MOST_NEURONS, whole
from asynchebb.live_page.tours import TOURS
from asynchebb.runs.layout import saved_arrays

try:
    import uvicorn
    import websockets  # noqa: F401  uvicorn uses it
    from starlette.applications import Starlette
    from starlette.concurrency import run_in_threadpool
    from starlette.requests import HTTPConnection, Request
    from starlette.responses import PlainTextResponse, Response
    from starlette.routing import Route, WebSocketRoute
    from starlette.types import Message, Receive, Scope, Send
    from starlette.websockets import WebSocket, WebSocketDisconnect
    from uvicorn.protocols.http.h11_impl import H11Protocol
except ImportError as error:
    raise InputError(
        f"the live page needs Starlette, uvicorn and websockets ({error}): pip install 'asynchebb[live]'"
    ) from None

PAGE = Path(__file__).parent / "page"
FILES = {"index.html": "text/html", "style.css": "text/css"}
FILES |= {name: "text/javascript" for name in ("app.js", "drawing.js", "pad.js")}
PORT, PORTS_TRIED = 8765, 50
LARGEST_MESSAGE = 2**18  # bytes; a shared setting may hold drawings
MOST_CLIENTS = 8
MOST_CONNECTIONS = 100  # of all kinds; a browser opens six at a time for a page. One more closes the oldest that waits
REQUEST_SECONDS = 5.0  # from the start of a connection to the end of its request's headers
REFUSED = "open the address that asynchebb printed when it started: it ends in a token"
POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; connect-src 'self'"


def listening(host: str, port: int | None) -> socket.socket:
    """A socket on this port or, if none is asked for, on the first free one from PORT on."""
    if port is not None:
        whole("port", port, 0, 65535)
    ports = range(PORT, PORT + PORTS_TRIED) if port is None else [port]
    for number in ports:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        found = socket.socket(family, socket.SOCK_STREAM)
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            found.bind((host, number))
            found.listen(128)  # or two servers could share a port that neither listens on yet
            return found
        except OSError as error:
            found.close()
            if isinstance(error, socket.gaierror) or error.errno not in (errno.EADDRINUSE, errno.EACCES):
                raise InputError(
                    f"host is {host!r}; it must be an address of this machine ({error.strerror})"
                ) from None
            reason = error.strerror
    if port is None:
        raise InputError(f"no port from {PORT} to {PORT + PORTS_TRIED - 1} is free; choose another with port")
    raise InputError(f"port is {port}, which cannot be used ({reason}); choose another, or leave it out for a free one")


def hostname(host: str) -> str:
    """A Host header without its port: ::1 of [::1]:8765."""
    return re.sub(r":\d+$", "", host).lower().removeprefix("[").removesuffix("]")


def checked_url(url: str) -> str:
    """A public address, as browsers write it in an Origin header."""
    try:
        parts = urlsplit(url)
        bare = url.removesuffix("/") == f"{parts.scheme}://{parts.netloc}" and "@" not in parts.netloc
        if parts.scheme in ("http", "https") and parts.hostname and bare and parts.port != 0:
            return f"{parts.scheme}://{parts.netloc.lower()}"
    except ValueError:  # of a port or an IPv6 address that is none
        pass
    raise InputError(f"public_url is {url!r}; it must be an address without a path, like https://hebb.example.org")


class Connection(H11Protocol):
    """A connection that nobody can hold without asking for something: h11 itself waits for ever."""

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self.began = self.loop.time()
        self.loop.call_later(REQUEST_SECONDS, self._close_if_waiting)
        if len(self.connections) > MOST_CONNECTIONS:  # so that whoever does ask gets in
            waiting = [one for one in self.connections if isinstance(one, Connection) and one.waits]
            min(waiting, key=lambda one: one.began).transport.abort()

    @property
    def waits(self) -> bool:
        """Has nothing been asked for yet, neither by HTTP nor for a websocket?"""
        return self.cycle is None and self.transport.get_protocol() is self and not self.transport.is_closing()

    def _close_if_waiting(self) -> None:
        if self.waits:
            self.transport.abort()


class Client:
    """A page that is open. It has at most one frame on its way and one waiting, which newer ones replace."""

    def __init__(self) -> None:
        self.frame: bytes | None = None
        self.ready = True  # the last frame has been acknowledged
        self.changed = asyncio.Event()

    def offer(self, frame: bytes) -> None:
        self.frame = frame
        self.changed.set()


class Server:
    """Serves a session in a thread of its own."""

    def __init__(
        self,
        session: Session,
        host: str = "127.0.0.1",
        port: int | None = None,
        framed: bool = False,
        public_url: str | None = None,
    ) -> None:
        self.session = session
        self.token = secrets.token_urlsafe(18)
        public = None if public_url is None else checked_url(public_url)
        self._socket = listening(host, port)
        address, self.port = self._socket.getsockname()[:2]
        self.is_public = not ipaddress.ip_address(address).is_loopback
        everywhere = ipaddress.ip_address(address).is_unspecified
        name = ("::1" if ":" in host else "127.0.0.1") if everywhere else host
        self._base = public or f"http://{f'[{name}]' if ':' in name else name}:{self.port}"
        # A page whose name was made to point at this machine, by its own DNS, would otherwise be of the same origin.
        self._names = {"127.0.0.1", "::1", "localhost", name.lower(), hostname(self._base.partition("//")[2])}
        if everywhere:
            self._names.add(socket.gethostname().lower())
        # Another site must not lay the page under its own buttons; a notebook, which may be anywhere, shows it.
        self._policy = POLICY if framed else f"{POLICY}; frame-ancestors 'self'"
        self.clients: set[Client] = set()
        self._one_at_a_time = asyncio.Semaphore(1)  # a picture takes some 15 MB while it is drawn
        self._routed = self._routes()
        config = uvicorn.Config(
            self._application,
            interface="asgi3",
            http=Connection,
            log_level="critical",
            lifespan="off",
            ws_max_size=LARGEST_MESSAGE,
            ws_per_message_deflate=False,
            proxy_headers=False,  # anyone on this machine can send them
            server_header=False,
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._serve, name="asynchebb server", daemon=True)
        self._loop: asyncio.AbstractEventLoop | None = None
        session.on_frame = self._publish

    @property
    def url(self) -> str:
        return f"{self._base}/?token={self.token}"

    def start(self) -> None:
        self._thread.start()
        self.session.start()

    def stop(self) -> None:
        """End both threads. One that is busy gets half a second; then it ends by itself, when it has finished."""
        self.session.stop()
        self._server.should_exit = self._server.force_exit = True
        self._thread.join(timeout=0.5)
        self._socket.close()

    def _serve(self) -> None:
        async def serve() -> None:
            self._loop = asyncio.get_running_loop()
            await self._server.serve(sockets=[self._socket])

        asyncio.run(serve())

    async def _application(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer those who call this machine by a name of its own, and once per connection."""

        async def send_and_close(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], (b"connection", b"close")]
            await send(message)

        host, (reached, *_) = HTTPConnection(scope).headers.get("host", ""), scope["server"]
        # With host 0.0.0.0, the machine's addresses are names of its own, too: those that a connection arrives at.
        names = {*self._names, reached.removeprefix("::ffff:")}
        if hostname(host) in names:
            await self._routed(scope, receive, send_and_close)
        else:
            said = (
                f"Host is {host!r}; it must be one of {', '.join(sorted(names))} (asynchebb live --public-url adds one)"
            )
            await PlainTextResponse(said, 403)(scope, receive, send_and_close)

    def _routes(self) -> Starlette:
        routes = [Route("/", self._page), *(Route(f"/{name}", self._file) for name in FILES if name != "index.html")]
        downloads: dict[str, tuple[Callable[[int], bytes | str], str]] = {
            "fields.png": (self._fields, "image/png"),
            "run.nc": (self.session.netcdf, "application/x-netcdf"),
            "state.npz": (self._state, "application/octet-stream"),
            "code.py": (self.session.code, "text/x-python"),
            "setting.json": (lambda number: json.dumps(self.session.shared()), "application/json"),
        }
        for name, (make, kind) in downloads.items():
            routes.append(Route(f"/{name}", self._download(name, make, kind)))
        return Starlette(routes=[*routes, WebSocketRoute("/ws", self._websocket)])

    # Pages and downloads

    def _may(self, connection: HTTPConnection) -> bool:
        given = connection.query_params.get("token", "")
        return hmac.compare_digest(given.encode(), self.token.encode())

    async def _page(self, request: Request) -> Response:
        return self._static("index.html")

    async def _file(self, request: Request) -> Response:
        return self._static(request.url.path[1:])

    def _static(self, name: str) -> Response:
        headers = {
            "Content-Security-Policy": self._policy,
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "no-referrer",  # the address holds the token
            "Cache-Control": "no-store",
        }
        return Response((PAGE / name).read_bytes(), media_type=FILES[name], headers=headers)

    def _download(self, name: str, make: Callable[[int], bytes | str], kind: str) -> Any:
        async def answer(request: Request) -> Response:
            if not self._may(request):
                return PlainTextResponse(REFUSED, 403)
            # Browsers send it for every other page, and curl and its like do not; "none" is the address bar.
            site = request.headers.get("sec-fetch-site", "none")
            if site not in ("same-origin", "none"):
                return PlainTextResponse(f"Sec-Fetch-Site is {site!r}; only the live page itself may load this", 403)
            number = request.query_params.get("network", "0")
            networks = len(self.session.simulation.setting.networks)
            if number not in map(str, range(networks)):
                return PlainTextResponse(f"network is {number!r}; it must be one of 0 to {networks - 1}", 400)
            try:
                async with self._one_at_a_time:
                    content = await run_in_threadpool(make, int(number))
            except InputError as error:
                return PlainTextResponse(str(error), 409)
            headers = {"Content-Disposition": f'attachment; filename="asynchebb-{name}"', "Cache-Control": "no-store"}
            return Response(content, media_type=kind, headers=headers)

        return answer

    def _fields(self, number: int) -> bytes:
        from asynchebb import plot
        from asynchebb.drawing.figures import png

        state = self.session.state(number).result()
        figure = plot.fields(state, MOST_NEURONS, "double", self.session.simulation.setting.shape)
        picture = png(figure)
        figure.clear()  # or its arrays, in cycles, would wait for the garbage collector
        return picture

    def _state(self, number: int) -> bytes:
        file = io.BytesIO()
        arrays: dict[str, Any] = saved_arrays(self.session.state(number).result())
        np.savez(file, **arrays)
        return file.getvalue()

    # The websocket

    async def _websocket(self, websocket: WebSocket) -> None:
        origin, host = websocket.headers.get("origin", ""), websocket.headers.get("host", "")
        if not self._may(websocket) or origin not in (f"http://{host}", f"https://{host}"):
            await websocket.send_denial_response(PlainTextResponse(REFUSED, 403))
            return
        await websocket.accept()
        if len(self.clients) >= MOST_CLIENTS:
            await websocket.close(4429, f"at most {MOST_CLIENTS} pages can be open at a time")
            return
        client = Client()
        self.clients.add(client)
        sender = asyncio.create_task(self._send_frames(websocket, client))
        try:
            await websocket.send_json(
                {"tours": {name: {"title": t.title, "says": t.says} for name, t in TOURS.items()}}
            )
            self.session.frame_wanted.set()
            while (received := await websocket.receive())["type"] != "websocket.disconnect":
                answer = await self._receive(received.get("text") or received.get("bytes") or "", client)
                if answer:
                    await websocket.send_text(json.dumps(answer))  # in ASCII: half a surrogate pair cannot be sent
        except (WebSocketDisconnect, RuntimeError):  # it is gone, or was while we answered
            pass
        finally:
            sender.cancel()
            self.clients.discard(client)
            self.session.forget_client(client)

    async def _receive(self, given: str | bytes, client: Client) -> dict[str, Any] | None:
        """Carry out a message. Whatever is wrong with it is the answer, and never the end of the connection."""
        try:
            try:
                message = json.loads(given)
            except (ValueError, RecursionError):
                raise InputError("a message must be JSON") from None
            if not isinstance(message, dict):
                raise InputError('a message must be an object, like {"do": "pause"}')
            if message == {"do": "next"}:
                client.ready = True
                client.changed.set()
                self.session.frame_wanted.set()
                return None
            await asyncio.wrap_future(self.session.do(message, client))
            return {"done": message["do"]}
        except InputError as error:
            return {"error": str(error)}
        except Exception as error:
            return {"error": f"the message cannot be carried out: {error!r}"}

    async def _send_frames(self, websocket: WebSocket, client: Client) -> None:
        while True:
            await client.changed.wait()
            client.changed.clear()
            if client.ready and client.frame is not None:
                frame, client.frame, client.ready = client.frame, None, False
                await websocket.send_bytes(frame)

    def _publish(self, frame: bytes) -> None:
        """Called by the session's thread."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._offer, frame)

    def _offer(self, frame: bytes) -> None:
        for client in self.clients:
            client.offer(frame)
