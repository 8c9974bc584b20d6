"""The server of a live page: three files, one websocket, a few downloads.

Each page acknowledges each frame, and gets the next only then: the newest frame wins, and nothing queues. Whoever wants
to see or move anything must know the token that is made at each start, and come from the page itself.
"""

from __future__ import annotations

import asyncio
import errno
import hmac
import io
import json
import secrets
import socket
import threading
from pathlib import Path
from typing import Any

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
    from starlette.responses import JSONResponse, PlainTextResponse, Response
    from starlette.routing import Route, WebSocketRoute
    from starlette.websockets import WebSocket, WebSocketDisconnect
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
        self, session: Session, host: str = "127.0.0.1", port: int | None = None, framed: bool = False
    ) -> None:
        self.session = session
        self.token = secrets.token_urlsafe(18)
        self._socket = listening(host, port)
        self.port = self._socket.getsockname()[1]
        self.host = "127.0.0.1" if host in ("0.0.0.0", "") else "[::1]" if host == "::" else host
        # Another site must not lay the page under its own buttons; a notebook, which may be anywhere, shows it.
        self._policy = POLICY if framed else f"{POLICY}; frame-ancestors 'self'"
        self.clients: set[Client] = set()
        config = uvicorn.Config(
            self._application(),
            log_level="critical",
            lifespan="off",
            ws_max_size=LARGEST_MESSAGE,
            ws_per_message_deflate=False,
            server_header=False,
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._serve, name="asynchebb server", daemon=True)
        self._loop: asyncio.AbstractEventLoop | None = None
        session.on_frame = self._publish

    @property
    def url(self) -> str:
        return f"http://{self.host}:{self.port}/?token={self.token}"

    def start(self) -> None:
        self._thread.start()
        self.session.start()

    def stop(self) -> None:
        """Within a second, whatever the pages do."""
        self.session.stop()
        self._server.should_exit = self._server.force_exit = True
        self._thread.join(timeout=0.5)
        self._socket.close()

    def _serve(self) -> None:
        async def serve() -> None:
            self._loop = asyncio.get_running_loop()
            await self._server.serve(sockets=[self._socket])

        asyncio.run(serve())

    def _application(self) -> Starlette:
        routes = [Route("/", self._page), *(Route(f"/{name}", self._file) for name in FILES if name != "index.html")]
        downloads = {
            "fields.png": (self._fields, "image/png"),
            "run.nc": (self.session.netcdf, "application/x-netcdf"),
            "state.npz": (self._state, "application/octet-stream"),
            "code.py": (self.session.code, "text/x-python"),
        }
        for name, (make, kind) in downloads.items():
            routes.append(Route(f"/{name}", self._download(name, make, kind)))
        routes.append(Route("/setting.json", self._setting))
        return Starlette(routes=[*routes, WebSocketRoute("/ws", self._websocket)])

    # Pages and downloads

    @property
    def _cookie(self) -> str:
        return f"asynchebb-live-{self.port}"  # browsers keep one jar for all ports of a machine

    def _may(self, connection: HTTPConnection) -> bool:
        given = connection.query_params.get("token") or connection.cookies.get(self._cookie, "")
        return hmac.compare_digest(given.encode(), self.token.encode())

    async def _page(self, request: Request) -> Response:
        response = self._static("index.html")
        if self._may(request):  # so that a shared link, which has no token, opens in the same browser
            response.set_cookie(self._cookie, self.token, httponly=True, samesite="strict")
        return response

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

    def _download(self, name: str, make: Any, kind: str) -> Any:
        async def answer(request: Request) -> Response:
            if not self._may(request):
                return PlainTextResponse(REFUSED, 403)
            number = request.query_params.get("network", "0")
            networks = len(self.session.simulation.setting.networks)
            if number not in map(str, range(networks)):
                return PlainTextResponse(f"network is {number!r}; it must be one of 0 to {networks - 1}", 400)
            try:
                content = await run_in_threadpool(make, int(number))
            except InputError as error:
                return PlainTextResponse(str(error), 409)
            headers = {"Content-Disposition": f'attachment; filename="asynchebb-{name}"', "Cache-Control": "no-store"}
            return Response(content, media_type=kind, headers=headers)

        return answer

    async def _setting(self, request: Request) -> Response:
        if not self._may(request):
            return PlainTextResponse(REFUSED, 403)
        return JSONResponse(await run_in_threadpool(self.session.shared), headers={"Cache-Control": "no-store"})

    def _fields(self, number: int) -> bytes:
        from asynchebb import plot
        from asynchebb.drawing.figures import png

        state = self.session.state(number).result()
        return png(plot.fields(state, MOST_NEURONS, "double", self.session.simulation.setting.shape))

    def _state(self, number: int) -> bytes:
        file = io.BytesIO()
        arrays: dict[str, Any] = saved_arrays(self.session.state(number).result())
        np.savez(file, **arrays)
        return file.getvalue()

    # The websocket

    async def _websocket(self, websocket: WebSocket) -> None:
        origin, host = websocket.headers.get("origin", ""), websocket.headers.get("host", "")
        if not self._may(websocket) or origin not in (f"http://{host}", f"https://{host}"):
            await websocket.close(4403, REFUSED)
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
            while True:
                await self._receive(websocket, client, await websocket.receive_text())
        except (WebSocketDisconnect, RuntimeError):  # it is gone, or was while we answered
            pass
        finally:
            sender.cancel()
            self.clients.discard(client)
            self.session.forget_client(client)

    async def _receive(self, websocket: WebSocket, client: Client, text: str) -> None:
        try:
            try:
                message = json.loads(text)
            except (ValueError, RecursionError):
                raise InputError("a message must be JSON") from None
            if not isinstance(message, dict):
                raise InputError('a message must be an object, like {"do": "pause"}')
            if message == {"do": "next"}:
                client.ready = True
                client.changed.set()
                self.session.frame_wanted.set()
                return
            await asyncio.wrap_future(self.session.do(message, client))
        except InputError as error:
            await websocket.send_json({"error": str(error)})
        else:
            await websocket.send_json({"done": message["do"]})

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
