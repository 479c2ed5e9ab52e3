"""Access control for web servers: only pages of this server that have the token of this launch may connect.

Without it, any page open in the browser could connect to the server on this machine. There are three checks: the token,
which is in the printed address and then in a cookie; the Origin header, which must be the server itself; and the Host
header, which must be a name of this machine, so that a foreign name that resolves to it (DNS rebinding) is rejected.
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

MAX_CONNECTIONS = 8  # browsers at once
MAX_MESSAGE_BYTES = 2 << 20  # from a page
MAX_UPLOADS = 2  # per browser at once
MAX_UPLOAD_PARTS = 16
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
HOST = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9._-]+))(?::[0-9]{1,5})?")
ASK_FOR_TOKEN = "Open the address that the command printed; it ends in a token that changes with every start."

Process = Callable[[ServerConnection, Request], Response | None]


@dataclass
class Access:
    """The checks of one server. They run in its event loop before a request is processed."""

    host: str  # address that the server listens on
    token: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    _open: set[ServerConnection] = field(default_factory=set)

    def refuse(self, connection: ServerConnection, request: Request) -> Response | None:
        """Return an error response for a request that is not allowed, or None."""
        host, origin = _only(request, "Host"), _only(request, "Origin")
        if host is None or not self.allows_host(host):
            return _answer(HTTPStatus.MISDIRECTED_REQUEST, "This server does not answer to that host name.")
        if origin is not None and not same_origin(origin, host):
            return _answer(HTTPStatus.FORBIDDEN, "Pages of other origins are not allowed.")
        if not self.has_token(connection, request):
            return _answer(HTTPStatus.FORBIDDEN, ASK_FOR_TOKEN)
        if self.full:
            return _answer(HTTPStatus.SERVICE_UNAVAILABLE, f"{MAX_CONNECTIONS} browsers are connected; close one.")
        if "upgrade" in request.headers:
            self._open.add(connection)
        return None

    @property
    def full(self) -> bool:
        self._open = {connection for connection in self._open if connection.state is not State.CLOSED}
        return len(self._open) >= MAX_CONNECTIONS

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
        """Return viser's request handler with the checks before it; its responses set the cookie."""

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
    """Return the name of the cookie; cookies ignore ports, so each server on a machine needs its own."""
    return f"keystride-{connection.local_address[1]}"


def same_origin(origin: str, host: str) -> bool:
    return origin.lower() in (f"http://{host.lower()}", f"https://{host.lower()}")


class PrivateServer(viser.ViserServer):
    """A viser server without tunnels to the internet."""

    def request_share_url(self, verbose: bool = True) -> str | None:
        """Return None: in viser, any page may request a tunnel."""
        return None


_patching = threading.Lock()


@contextmanager
def guarded(access: Access) -> Iterator[None]:
    """Add the checks to the viser server started in this context. Raise RuntimeError if that did not work.

    viser has no hook for requests, so the function of `websockets` that it calls is replaced meanwhile.
    """
    started = []
    original = websockets.asyncio.server.serve

    def serve(*args: Any, **options: Any) -> Any:
        started.append(True)
        options |= {"process_request": access.wrap(options["process_request"]), "max_size": MAX_MESSAGE_BYTES}
        return original(*args, **options)

    with _patching:
        websockets.asyncio.server.serve = serve  # pyright: ignore[reportAttributeAccessIssue]
        try:
            yield
        finally:
            websockets.asyncio.server.serve = original
    if not started:
        raise RuntimeError("this version of viser starts its server in another way, so requests cannot be checked")


def cap_uploads(client: viser.ClientHandle, max_bytes: int) -> None:
    """Refuse uploads above a size before anything is stored. viser itself has no limits."""
    gui = client.gui
    messages = gui._websock_interface
    start = gui._handle_file_transfer_start

    def checked(client_id: Any, message: FileTransferStartUpload) -> None:
        waiting = len(gui._current_file_upload_states)
        if message.size_bytes <= max_bytes and message.part_count <= MAX_UPLOAD_PARTS and waiting < MAX_UPLOADS:
            start(client_id, message)
        else:
            limit = f"The limit is {max_bytes / (1 << 20):g} MiB and {MAX_UPLOADS} files at once."
            client.add_notification("Not uploaded", f"{message.filename[:80]} is too large. {limit}", color="red")

    messages.unregister_handler(FileTransferStartUpload, start)
    messages.register_handler(FileTransferStartUpload, checked)


def start_server(make: Callable[[], viser.ViserServer], host: str) -> tuple[viser.ViserServer, str]:
    """Start a server with the checks; return it with the address to open, which includes the token."""
    access = Access(host)
    with guarded(access), redirect_stdout(StringIO()):  # viser prints an address without the token
        server = make()
    name = "localhost" if host in ("0.0.0.0", "::", "127.0.0.1", "::1") else host
    return server, f"http://{f'[{name}]' if ':' in name else name}:{server.get_port()}/?token={access.token}"


def _only(request: Request, header: str) -> str | None:
    """Return the value of a header, None if it is missing, or an empty text if it is repeated."""
    values = request.headers.get_all(header)
    return values[0] if len(values) == 1 else "" if values else None


def _name(header: str) -> str:
    """Return the name or address in a Host header without its port; empty if it is malformed."""
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
