"""Who may talk to the server: asked by raw sockets, and by a browser that shows a page of another origin."""

import base64
import http.server
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from urllib.parse import urlsplit

import pytest
import viser

from keystride.benchmarks.browser import find_browser, launched
from keystride.studio.access import MOST_CONNECTIONS, Access, start_server

PROTOCOL = f"viser-v{viser.__version__}"


class Door:
    """A bare server behind the checks, and requests to it, byte by byte."""

    def __init__(self) -> None:
        self.server, self.url = start_server(
            lambda: viser.ViserServer(host="127.0.0.1", port=0, verbose=False), "127.0.0.1"
        )
        self.port = self.server.get_port()
        self.token = urlsplit(self.url).query.removeprefix("token=")

    def ask(self, path: str = "/", *headers: str, host: str | None = "localhost") -> tuple[int, str]:
        """Return status and headers of the answer."""
        with self.connected(path, *headers, host=host) as (status, answer):
            return status, answer

    @contextmanager
    def connected(self, path: str, *headers: str, host: str | None = "localhost") -> Iterator[tuple[int, str]]:
        lines = [f"GET {path} HTTP/1.1", *([f"Host: {host}:{self.port}"] if host else []), *headers, "", ""]
        with socket.create_connection(("127.0.0.1", self.port), timeout=600) as connection:
            connection.sendall("\r\n".join(lines).encode())
            answer = b""
            while b"\r\n\r\n" not in answer:
                received = connection.recv(4096)
                assert received, answer
                answer += received
            head = answer.partition(b"\r\n\r\n")[0].decode()
            yield int(head.split()[1]), head

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
    door = Door()
    yield door
    door.server.stop()


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
        for _ in range(MOST_CONNECTIONS):
            status, _ = stack.enter_context(door.connected("/", *door.handshake(door.cookie())))
            assert status == 101
        assert door.ask("/", *door.handshake(door.cookie()))[0] == 503
        assert door.ask("/", door.cookie())[0] == 503
    while door.ask("/", *door.handshake(door.cookie()))[0] == 503:  # until the server has seen them go
        pass


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


def test_a_page_of_another_origin_reaches_nothing(door: Door):
    """The browser has the cookie, as after a morning's work; the other page is on this machine too, so cookies are sent."""
    executable = find_browser()
    if executable is None:
        pytest.skip("needs Chromium and Playwright")
    with (
        other_origin(EVIL.replace("PORT", str(door.port)).replace("PROTOCOL", PROTOCOL)) as evil,
        launched(executable) as browser,
    ):
        context = browser.new_context()
        own = context.new_page()
        own.goto(door.url)
        assert [cookie["name"] for cookie in context.cookies()] == [f"keystride-{door.port}"]
        page = context.new_page()
        page.goto(evil)
        page.wait_for_function("document.title !== 'waiting'", timeout=600_000)
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
