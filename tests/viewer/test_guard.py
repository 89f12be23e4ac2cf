"""Who may talk to the live view: strangers' pages, foreign hosts, and those without the token are refused."""

import http.client
import http.server
import threading
from urllib.parse import urlsplit

import pytest

import pliant

viser = pytest.importorskip("viser")

from websockets.exceptions import InvalidStatus  # noqa: E402
from websockets.sync.client import connect  # noqa: E402
from websockets.typing import Origin, Subprotocol  # noqa: E402

from pliant.viewer.guard import Guard, is_local  # noqa: E402

PROTOCOL = Subprotocol(f"viser-v{viser.__version__}")


@pytest.fixture(scope="module")
def shown():
    with pliant.view(pliant.gallery.arm(), port=0, block=False) as view:
        yield view


def ask(url, path="/", **headers):
    """Status, headers and text of a plain request."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=20)
    connection.request("GET", path, headers=headers)
    answer = connection.getresponse()
    return answer.status, dict(answer.getheaders()), answer.read().decode(errors="replace")


def socket(url, origin=None, **headers):
    """Status of an attempt to open the websocket; 101 if it opens."""
    address = f"ws://{urlsplit(url).netloc}/"
    given = None if origin is None else Origin(origin)
    try:
        with connect(
            address, origin=given, subprotocols=[PROTOCOL], additional_headers=headers, max_size=None
        ):
            return 101
    except InvalidStatus as error:
        return error.response.status_code


def test_hosts_that_are_this_machine():
    assert all(is_local(host) for host in ("localhost", "127.0.0.1", "127.8.9.1", "::1"))
    assert not any(
        is_local(host) for host in ("0.0.0.0", "::", "192.0.2.1", "evil.example", "", "localhost.evil")
    )


@pytest.mark.parametrize(
    ("headers", "welcome"),
    [
        ({"Host": "127.0.0.1:8080"}, True),
        ({"Host": "localhost:9000"}, True),  # a forwarded port
        ({"Host": "[::1]:8080"}, True),
        ({"Host": "localhost:8080", "Origin": "http://localhost:8080"}, True),
        ({"Host": "evil.example:8080"}, False),
        ({"Host": "127.0.0.1.evil.example"}, False),
        ({}, False),
        ({"Host": "localhost:8080", "Origin": "http://evil.example"}, False),
        ({"Host": "localhost:8080", "Origin": "http://localhost:1234"}, False),
        ({"Host": "localhost:8080", "Origin": "null"}, False),  # a file, a sandboxed frame
        ({"Host": "evil.example", "Origin": "http://evil.example"}, False),  # rebinding
    ],
)
def test_requests_to_a_view_of_this_machine(headers, welcome):
    assert (Guard("127.0.0.1").refusal(headers, "/") is None) == welcome


def test_pages_of_others_and_foreign_hosts_are_refused(shown):
    assert ask(shown.url)[0] == 200
    status, _, text = ask(shown.url, Host="evil.example")
    assert status == 403
    assert "not at evil.example" in text
    own = f"http://{urlsplit(shown.url).netloc}"
    assert socket(shown.url, own) == 101
    assert socket(shown.url) == 101  # no browser: programs send no origin
    assert socket(shown.url, "http://evil.example") == 403
    assert socket(shown.url, "http://127.0.0.1:1") == 403
    assert ask(shown.url, Host="[::bad")[0] in (400, 403)


def test_a_view_for_others_asks_for_its_token():
    with pliant.view(pliant.gallery.arm(), host="0.0.0.0", port=0, block=False) as shown:
        token = shown.url.partition("token=")[2]
        assert len(token) > 20
        assert ask(shown.url)[0] == 403
        assert ask(shown.url, "/?token=wrong")[0] == 403
        assert socket(shown.url) == 403
        status, headers, _ = ask(shown.url, f"/?token={token}")
        assert status == 200
        cookie = headers["Set-Cookie"].partition(";")[0]
        assert "HttpOnly; SameSite=Strict" in headers["Set-Cookie"]
        assert ask(shown.url, Cookie=cookie)[0] == 200
        assert socket(shown.url, Cookie=cookie) == 101
        assert socket(shown.url, "http://evil.example", Cookie=cookie) == 403
    with pliant.view(pliant.gallery.arm(), host="0.0.0.0", port=0, block=False) as other:
        assert token not in other.url


STRANGER = """<title>waiting</title><script>
const socket = new WebSocket("ws://ADDRESS/", ["PROTOCOL"]);
socket.onopen = () => { document.title = "open"; };
socket.onerror = () => { document.title = "refused"; };
</script>"""


def test_a_page_of_another_origin_cannot_drive_the_view(shown, chromium):
    page_text = STRANGER.replace("ADDRESS", urlsplit(shown.url).netloc).replace("PROTOCOL", PROTOCOL).encode()

    class Page(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(page_text)

        def log_message(self, *_):
            pass

    stranger = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page)
    threading.Thread(target=stranger.serve_forever, daemon=True).start()
    try:
        page = chromium.new_context().new_page()
        page.goto(f"http://127.0.0.1:{stranger.server_port}/")
        page.wait_for_function("document.title != 'waiting'")
        assert page.title() == "refused"
        page.context.close()
    finally:
        stranger.shutdown()
        stranger.server_close()


def test_the_token_lets_a_browser_in(chromium):
    with pliant.view(pliant.gallery.arm(), host="0.0.0.0", port=0, block=False) as shown:
        page = chromium.new_context().new_page()
        page.goto(shown.url)
        page.wait_for_selector("canvas")
        page.get_by_text("Step").first.wait_for()  # controls come by the websocket
        page.context.close()


def test_the_page_is_called_pliant(shown):
    status, headers, text = ask(shown.url)
    assert status == 200
    assert int(headers["Content-Length"]) == len(text.encode())
    assert "<title>pliant</title>" in text
    assert "Viser</title>" not in text
    assert 'addEventListener("drop"' in text
