"""Who may talk to the server: asked by raw sockets, and by a browser that shows a page of another origin."""

import base64
import http.server
import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import mujoco
import pytest
import viser

from keystride.robot.go2 import GO2
from keystride.robot.model import load_model
from keystride.web_access import MAX_CONNECTIONS, Access, PrivateServer, start_server

PROTOCOL = f"viser-v{viser.__version__}"


@dataclass
class Door:
    """Requests to a server behind the checks, byte by byte."""

    port: int
    token: str

    @property
    def url(self) -> str:
        return f"http://localhost:{self.port}/?token={self.token}"

    def ask(self, path: str = "/", *headers: str, host: str | None = "localhost") -> tuple[int, str]:
        """Return status and headers of the answer."""
        with self.connected(path, *headers, host=host) as (status, answer):
            return status, answer

    @contextmanager
    def opened(self, *headers: str) -> Iterator[tuple[socket.socket, str]]:
        """A connection of a page that is let in."""
        with self.exchange("/", *self.handshake(self.cookie(), *headers)) as (connection, head):
            assert int(head.split()[1]) == 101
            yield connection, head

    @contextmanager
    def connected(self, path: str, *headers: str, host: str | None = "localhost") -> Iterator[tuple[int, str]]:
        with self.exchange(path, *headers, host=host) as (_, head):
            yield int(head.split()[1]), head

    @contextmanager
    def exchange(self, path: str, *headers: str, host: str | None = "localhost") -> Iterator[tuple[socket.socket, str]]:
        lines = [f"GET {path} HTTP/1.1", *([f"Host: {host}:{self.port}"] if host else []), *headers, "", ""]
        with socket.create_connection(("127.0.0.1", self.port), timeout=120) as connection:
            connection.sendall("\r\n".join(lines).encode())
            answer = b""
            while b"\r\n\r\n" not in answer:
                received = connection.recv(4096)
                assert received, answer
                answer += received
            yield connection, answer.partition(b"\r\n\r\n")[0].decode()

    def handshake(self, *headers: str) -> tuple[str, ...]:
        key = base64.b64encode(b"0123456789abcdef").decode()
        upgrade = (
            "Connection: Upgrade",
            "Upgrade: websocket",
            "Sec-WebSocket-Version: 13",
            f"Sec-WebSocket-Key: {key}",
        )
        return (*upgrade, f"Sec-WebSocket-Protocol: {PROTOCOL}", *headers)

    def cookie(self) -> str:
        return f"Cookie: keystride-{self.port}={self.token}"


@pytest.fixture
def door() -> Iterator[Door]:
    server, url = start_server(lambda: PrivateServer(host="127.0.0.1", port=0, verbose=False), "127.0.0.1")
    yield Door(server.get_port(), urlsplit(url).query.removeprefix("token="))
    server.stop()


def test_the_page_needs_the_token_once(door: Door):
    assert door.ask("/")[0] == 403
    assert door.ask("/?token=guess")[0] == 403
    status, head = door.ask(f"/?token={door.token}")
    assert status == 200
    assert f"set-cookie: keystride-{door.port}={door.token}; httponly; samesite=strict" in head.lower().replace(
        door.token.lower(), door.token
    )
    assert "frame-ancestors 'none'" in head
    assert door.ask("/", door.cookie())[0] == 200


def test_every_launch_has_another_token():
    assert Access("127.0.0.1").token != Access("127.0.0.1").token


@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "", None])
def test_a_name_that_is_not_this_machines_is_not_served(door: Door, host: str | None):
    """DNS rebinding: the name is the attacker's, the address ours, and so the cookie would not even be needed."""
    assert door.ask(f"/?token={door.token}", host=host)[0] in (400, 421)
    assert door.ask(f"/?token={door.token}", *door.handshake(), host=host)[0] in (400, 421)


@pytest.mark.parametrize(
    "host", ["evil.example@localhost:8080", "localhost:8080/evil.example", "localhost:", "a b", "[::1"]
)
def test_a_host_is_a_name_and_perhaps_a_port(host: str):
    assert not Access("127.0.0.1").allows_host(host)


def test_two_hosts_are_none(door: Door):
    assert door.ask(f"/?token={door.token}", "Host: evil.example")[0] in (400, 421)


def test_on_all_addresses_any_address_is_a_host_but_no_foreign_name():
    access = Access("0.0.0.0")
    assert access.allows_host("192.168.1.7:8080")
    assert access.allows_host("[fe80::1]:8080")
    assert access.allows_host(f"{socket.gethostname()}:8080")
    assert not access.allows_host("evil.example:8080")
    assert not Access("127.0.0.1").allows_host("192.168.1.7")
    assert Access("studio.lan").allows_host("studio.lan:80")


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "http://localhost:1", "file://", "http://localhost.evil.example"]
)
def test_another_origin_gets_no_connection_even_with_the_token(door: Door, origin: str):
    handshake = door.handshake(f"Origin: {origin}", door.cookie())
    assert door.ask(f"/?token={door.token}", *handshake)[0] == 403
    assert door.ask(f"/?token={door.token}", f"Origin: {origin}")[0] == 403


def test_its_own_page_gets_a_connection_by_the_cookie_alone(door: Door):
    origin = f"Origin: http://localhost:{door.port}"
    assert door.ask("/", *door.handshake(origin, door.cookie()))[0] == 101
    assert door.ask("/", *door.handshake(origin))[0] == 403
    assert door.ask(f"/?token={door.token}", *door.handshake())[0] == 101  # a program that was given the address


def test_only_so_many_browsers_connect(door: Door):
    with ExitStack() as stack:
        for _ in range(MAX_CONNECTIONS):
            status, _ = stack.enter_context(door.connected("/", *door.handshake(door.cookie())))
            assert status == 101
        assert door.ask("/", *door.handshake(door.cookie()))[0] == 503
        assert door.ask("/", door.cookie())[0] == 503
    while door.ask("/", *door.handshake(door.cookie()))[0] == 503:  # until the server has seen them go
        pass


@pytest.mark.parametrize("method", ["HEAD", "POST", "PUT", "DELETE", "OPTIONS", "TRACE", "CONNECT"])
def test_no_other_method_is_answered(door: Door, method: str):
    request = f"{method} / HTTP/1.1\r\nHost: localhost:{door.port}\r\n{door.cookie()}\r\n\r\n"
    with socket.create_connection(("127.0.0.1", door.port), timeout=120) as connection:
        connection.sendall(request.encode())
        assert not connection.recv(4096).startswith(b"HTTP/1.1 2")


@pytest.mark.parametrize(
    "path",
    ["/../../etc/passwd", "/..%2f..%2fetc/passwd", "//etc/passwd", "/..\\..\\etc\\passwd", "/assets/../../../setup.py"],
)
def test_only_files_of_the_page_are_served(door: Door, path: str):
    assert door.ask(path, door.cookie())[0] == 404


def test_a_message_beyond_the_bound_closes_the_connection(door: Door):
    """Announced, or unpacked from little: neither is kept in memory."""
    with door.opened("Sec-WebSocket-Extensions: permessage-deflate") as (connection, head):
        assert "permessage-deflate" not in head
        connection.sendall(b"\x82\xff" + struct.pack(">Q", 1 << 40) + b"mask")
        assert struct.pack(">H", 1009) in received(connection)  # message too big


def test_half_a_request_does_not_keep_others_waiting(door: Door):
    with ExitStack() as stack:
        for _ in range(100):
            connection = stack.enter_context(socket.create_connection(("127.0.0.1", door.port), timeout=120))
            connection.sendall(b"GET / HTTP/1.1\r\nHost: ")
        assert door.ask("/", door.cookie())[0] == 200


def test_nobody_gets_a_tunnel_to_the_internet():
    server, _ = start_server(lambda: PrivateServer(host="127.0.0.1", port=0, verbose=False), "127.0.0.1")
    try:
        assert server.request_share_url() is None
    finally:
        server.stop()


def test_the_view_of_the_simulated_robot_needs_the_token_too(capfd: pytest.CaptureFixture[str]):
    from keystride.deploy.sim.robot import open_view

    with ExitStack() as stack:
        model = load_model(GO2)
        open_view(model, mujoco.MjData(model), "browser", stack)
        said, until = "", time.monotonic() + 120.0
        while "http://" not in said and time.monotonic() < until:  # a thread may write it
            said += capfd.readouterr().out
        url = next(word for word in said.split() if word.startswith("http://"))
        port = urlsplit(url).port
        assert port is not None
        door = Door(port, urlsplit(url).query.removeprefix("token="))
        assert door.ask("/", *door.handshake("Origin: http://evil.example"))[0] == 403
        assert door.ask("/", *door.handshake())[0] == 403
        assert door.ask("/", *door.handshake(door.cookie()))[0] == 101


def received(connection: socket.socket) -> bytes:
    """Everything until the other side closes."""
    parts = []
    while part := connection.recv(65536):
        parts.append(part)
    return b"".join(parts)


EVIL = """<!doctype html><title>waiting</title><script>
const said = [];
function tell(what) { said.push(what); if (said.length === 3) document.title = said.sort().join(" "); }
const socket = new WebSocket("ws://localhost:PORT/?token=guess", "PROTOCOL");
socket.onopen = () => tell("socket-open");
socket.onerror = () => tell("socket-refused");
fetch("http://localhost:PORT/", {credentials: "include"}).then(() => tell("fetch-read"), () => tell("fetch-refused"));
const frame = document.createElement("iframe");
frame.src = "http://localhost:PORT/";
frame.onload = () => { try { tell(frame.contentDocument.title ? "frame-read" : "frame-blank"); } catch { tell("frame-closed"); } };
document.documentElement.append(frame);
</script>"""


def test_a_page_of_another_origin_reaches_nothing(door: Door, browser: Any):
    """The browser has the cookie, as after a morning's work; the other page is on this machine too, so cookies are sent."""
    content = EVIL.replace("PORT", str(door.port)).replace("PROTOCOL", PROTOCOL)
    with other_origin(content) as evil, closing(browser.new_context()) as context:
        own = context.new_page()
        own.goto(door.url)
        assert [cookie["name"] for cookie in context.cookies()] == [f"keystride-{door.port}"]
        page = context.new_page()
        page.goto(evil)
        page.wait_for_function("document.title !== 'waiting'", timeout=120_000)
        assert page.title() == "fetch-refused frame-closed socket-refused"


@contextmanager
def other_origin(content: str) -> Iterator[str]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(content.encode())

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://localhost:{server.server_address[1]}/"
    finally:
        server.shutdown()
        server.server_close()
