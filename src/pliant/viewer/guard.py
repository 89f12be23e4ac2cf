"""`Guard`: who may talk to the live view.

A page on the internet, open in the same browser, can send requests to servers on this machine. The guard refuses
connections from pages of other origins, and requests for hosts that are not this machine (DNS rebinding). A view that
listens beyond this machine asks for a random token instead: it is in the address that is printed, and from then on in a
cookie.
"""

from __future__ import annotations

import hmac
import http
import secrets
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ipaddress import ip_address
from typing import Any
from urllib.parse import parse_qs, urlsplit

from pliant.viewer.messages import Inspector
from pliant.viewer.shell import dress

__all__ = ["Guard", "guarded", "is_local"]

_HEADERS = {"Content-Type": "text/plain; charset=utf-8", "Connection": "close"}
_lock = threading.Lock()


def is_local(host: str) -> bool:
    """Whether an address to listen at, or a host that is asked for, is this machine alone."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


class Guard:
    """Check of requests to a view.

    Attributes:
        token: that requests need; empty for a view that listens at this machine alone.
    """

    def __init__(self, host: str):
        """For a view that listens at an address."""
        self._host = host
        self.token = "" if is_local(host) else secrets.token_urlsafe(16)

    def refusal(self, headers: Any, path: str) -> str | None:
        """Why a request is refused, by its headers and path; None: it is welcome."""
        asked, origin = headers.get("Host", ""), headers.get("Origin")
        if origin is not None and urlsplit(origin).netloc.lower() != asked.lower():
            return f"a page of {origin[:100]} may not talk to this view"
        if not self.token:
            name = urlsplit(f"//{asked}").hostname or ""
            return None if is_local(name) else f"this view is not at {asked[:100]}"
        return (
            None if self._has_token(headers, path) else "the address of this view has a token: use all of it"
        )

    def _has_token(self, headers: Any, path: str) -> bool:
        given = parse_qs(urlsplit(path).query).get("token", [""])[0]
        cookies = dict(part.strip().partition("=")[::2] for part in headers.get("Cookie", "").split(";"))
        known = self.token.encode()
        return any(
            hmac.compare_digest(value.encode(), known) for value in (given, cookies.get(self._cookie, ""))
        )

    @property
    def _cookie(self) -> str:
        return f"pliant-{self.token[:6]}"

    def process(self, answer: Callable[[Any, Any], Any] | None) -> Callable[[Any, Any], Any]:
        """Handler of requests for a websockets server: refuses, or lets `answer` go on."""
        from websockets.datastructures import Headers
        from websockets.http11 import Response

        def handle(connection: Any, request: Any) -> Any:
            try:
                why = self.refusal(request.headers, request.path)
            except ValueError as error:  # headers that make no sense
                why = f"malformed request: {error}"
            if why is not None:
                return Response(
                    http.HTTPStatus.FORBIDDEN, "Forbidden", Headers(_HEADERS), f"{why}\n".encode()
                )
            found = None if answer is None else answer(connection, request)
            if found is not None and found.body:
                found.body = dress(found.body, found.headers.get("Content-Encoding") == "gzip")
                del found.headers["Content-Length"]
                found.headers["Content-Length"] = str(len(found.body))
            if found is not None and self.token:
                found.headers["Set-Cookie"] = (
                    f"{self._cookie}={self.token}; HttpOnly; SameSite=Strict; Path=/"
                )
            return found

        return handle


@contextmanager
def guarded(guard: Guard, inspector: Inspector) -> Iterator[None]:
    """While the context lasts, servers of websockets that start ask the guard, and the inspector for every message.

    viser has no setting for it.
    """
    import websockets.asyncio.server as module

    with _lock:
        serve: Any = module.serve

        def with_guard(handler: Any, *args: Any, **words: Any) -> Any:
            words["process_request"] = guard.process(words.get("process_request"))
            return serve(inspector.guard(handler), *args, **words)

        module.serve = with_guard
        try:
            yield
        finally:
            module.serve = serve
