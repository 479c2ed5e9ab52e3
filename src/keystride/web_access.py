"""Who may talk to a server of pages: those with the token of this launch, from a page of this very server.

Without this any page that the browser shows could open a connection to the server on this machine. Three checks stop
it: the token is in the address that the command prints and, from then on, in a cookie; Origin has to be the server
itself; and Host has to be a name of this machine, so that a name of somebody else's that points here (DNS rebinding)
leads nowhere.
"""

import hmac
import ipaddress
import re
import secrets
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, field
from http import HTTPStatus
from http.cookies import CookieError, SimpleCookie
from io import StringIO
from typing import Any
from urllib.parse import parse_qs, urlsplit

import viser
import websockets.asyncio.server
from viser._messages import FileTransferStartUpload
from websockets import Headers
from websockets.asyncio.server import ServerConnection
from websockets.http11 import Request, Response
from websockets.protocol import State

MOST_CONNECTIONS = 8  # browsers at once
MOST_BYTES = 2 << 20  # of a message from a page
MOST_UPLOADS = 2  # of one browser at once
MOST_PARTS = 16  # of an upload
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
HOST = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9._-]+))(?::[0-9]{1,5})?")
ASK_FOR_TOKEN = "Open the address that the command printed: it ends in the token of this launch."

Process = Callable[[ServerConnection, Request], Response | None]


@dataclass
class Access:
    """The checks of one server. They run in its event loop, before anything else is made of a request."""

    host: str  # that the server was told to listen on
    token: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    _open: set[ServerConnection] = field(default_factory=set)

    def refuse(self, connection: ServerConnection, request: Request) -> Response | None:
        """Return the answer to a request that is not allowed, or None."""
        host, origin = _only(request, "Host"), _only(request, "Origin")
        if host is None or not self.allows_host(host):
            return _answer(HTTPStatus.MISDIRECTED_REQUEST, "This server is not known by that name.")
        if origin is not None and not same_origin(origin, host):
            return _answer(HTTPStatus.FORBIDDEN, "Pages of other origins are not allowed.")
        if not self.has_token(connection, request):
            return _answer(HTTPStatus.FORBIDDEN, ASK_FOR_TOKEN)
        if self.full:
            return _answer(HTTPStatus.SERVICE_UNAVAILABLE, f"{MOST_CONNECTIONS} browsers are connected; close one.")
        if "upgrade" in request.headers:
            self._open.add(connection)
        return None

    @property
    def full(self) -> bool:
        self._open = {connection for connection in self._open if connection.state is not State.CLOSED}
        return len(self._open) >= MOST_CONNECTIONS

    def allows_host(self, header: str) -> bool:
        name = _name(header)
        if name in ("localhost", "127.0.0.1", "::1", self.host.lower()):
            return True
        if self.host not in ("0.0.0.0", "::"):
            return False
        return _is_address(name) or name in (socket.gethostname().lower(), socket.getfqdn().lower())

    def has_token(self, connection: ServerConnection, request: Request) -> bool:
        given = parse_qs(urlsplit(request.path).query).get("token", [])
        try:
            cookies = SimpleCookie("; ".join(request.headers.get_all("Cookie")))
        except CookieError:
            cookies = SimpleCookie()
        cookie = cookies.get(cookie_name(connection))
        given += [cookie.value] if cookie is not None else []
        return any(hmac.compare_digest(one.encode(), self.token.encode()) for one in given)

    def wrap(self, process: Process) -> Process:
        """Return viser's own answers, behind the checks; they carry the cookie."""

        def checked(connection: ServerConnection, request: Request) -> Response | None:
            refused = self.refuse(connection, request)
            if refused is not None:
                return refused
            response = process(connection, request)
            if response is not None:
                _add(response.headers, HEADERS)
                response.headers["Set-Cookie"] = (
                    f"{cookie_name(connection)}={self.token}; HttpOnly; SameSite=Strict; Path=/"
                )
            return response

        return checked


def cookie_name(connection: ServerConnection) -> str:
    """Cookies know no ports: two servers of one machine need two names."""
    return f"keystride-{connection.local_address[1]}"


def same_origin(origin: str, host: str) -> bool:
    return origin.lower() in (f"http://{host.lower()}", f"https://{host.lower()}")


class PrivateServer(viser.ViserServer):
    def request_share_url(self, verbose: bool = True) -> str | None:
        """Any page may ask viser for a tunnel to the internet; nobody gets one here."""
        return None


_patching = threading.Lock()


@contextmanager
def guarded(access: Access) -> Iterator[None]:
    """Put the checks into the viser server that is started inside. RuntimeError if it did not take them.

    viser has no hook for requests: what is replaced for a moment is the function of `websockets` that it calls.
    """
    started = []
    original = websockets.asyncio.server.serve

    def serve(*args: Any, **options: Any) -> Any:
        started.append(True)
        options |= {"process_request": access.wrap(options["process_request"]), "max_size": MOST_BYTES}
        return original(*args, **options)

    with _patching:
        websockets.asyncio.server.serve = serve  # pyright: ignore[reportAttributeAccessIssue]
        try:
            yield
        finally:
            websockets.asyncio.server.serve = original
    if not started:
        raise RuntimeError("this version of viser starts its server in another way: pages could not be checked")


def cap_uploads(client: viser.ClientHandle, most_bytes: int) -> None:
    """Refuse uploads beyond a size before their first byte is kept. viser itself takes any number of any size."""
    gui = client.gui
    messages = gui._websock_interface
    start = gui._handle_file_transfer_start

    def checked(client_id: Any, message: FileTransferStartUpload) -> None:
        waiting = len(gui._current_file_upload_states)
        if message.size_bytes <= most_bytes and message.part_count <= MOST_PARTS and waiting < MOST_UPLOADS:
            start(client_id, message)
        else:
            allowed = f"allowed: {most_bytes / (1 << 20):g} MiB, {MOST_UPLOADS} files at once"
            client.add_notification("Not uploaded", f"{message.filename[:80]} is too large; {allowed}.", color="red")

    messages.unregister_handler(FileTransferStartUpload, start)
    messages.register_handler(FileTransferStartUpload, checked)


def start_server(make: Callable[[], viser.ViserServer], host: str) -> tuple[viser.ViserServer, str]:
    """Start a server behind the checks and return it with the address to open, token and all."""
    access = Access(host)
    with guarded(access), redirect_stdout(StringIO()):  # viser greets with an address that lacks the token
        server = make()
    name = "localhost" if host in ("0.0.0.0", "::", "127.0.0.1", "::1") else host
    return server, f"http://{f'[{name}]' if ':' in name else name}:{server.get_port()}/?token={access.token}"


def _only(request: Request, header: str) -> str | None:
    """Return the value of a header; two of them are as bad as a wrong one."""
    values = request.headers.get_all(header)
    return values[0] if len(values) == 1 else "" if values else None


def _name(header: str) -> str:
    """Return the name or address of a Host header, without its port; nothing if it is anything else."""
    match = HOST.fullmatch(header)
    return (match[1] or match[2]).lower() if match else ""


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _answer(status: HTTPStatus, text: str) -> Response:
    body = f"Keystride: {text}\n".encode()
    headers = Headers(
        {"Content-Type": "text/plain; charset=utf-8", "Content-Length": str(len(body)), "Connection": "close"}
    )
    _add(headers, HEADERS)
    return Response(status, status.phrase, headers, body)


def _add(headers: Headers, more: dict[str, str]) -> None:
    for name, value in more.items():
        headers[name] = value
