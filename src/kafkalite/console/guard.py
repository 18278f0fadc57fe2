"""Before everything else: whether a request is meant for this page, and what browsers may do with
an answer.

Owns the names by which this machine may be asked (a foreign DNS could tell a name that leads here),
and that no other site has a browser change something. Invariant: nothing of a request is read whose
sender is not let in.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Collection
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

OF_PAGE = "x-kafkalite-console"  # a header that no form and no image sends
SAFE_METHODS = ("GET", "HEAD")
HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}


class Guard:
    """names: of this machine, beside its addresses and localhost."""

    def __init__(self, app: ASGIApp, names: Collection[str] = ()) -> None:
        self._app = app
        self._names = frozenset(each.lower() for each in names)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def told(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(HEADERS)
                headers.setdefault("cache-control", "no-store")
            await send(message)

        app = self._refusal(scope["method"], Headers(scope=scope)) or self._app
        await app(scope, receive, told)

    def _refusal(self, method: str, headers: Headers) -> Response | None:
        host = headers.get("host", "")
        if not self._is_ours(host):
            return _refused(f"{host!r:.100} is no name of this console: ask for its address, or "
                            "start it with --allow-host NAME")  # fmt: skip
        if headers.get("sec-fetch-site", "none") not in ("same-origin", "none") and (
            method not in SAFE_METHODS or headers.get("sec-fetch-mode") != "navigate"
        ):
            return _refused("another site has no say here: open the console itself")
        origin = headers.get("origin")
        if origin is not None and _authority(origin) != host:
            return _refused(f"another site ({origin!r:.100}) has no say here")
        if method not in SAFE_METHODS and OF_PAGE not in headers:
            return _refused(f"what changes or asks something is sent with the header {OF_PAGE}")
        return None

    def _is_ours(self, host: str) -> bool:
        """A number, localhost, or a name that was said to be ours: no browser is led here by any
        other site's name."""
        try:
            name = (urlsplit(f"//{host}").hostname or "").lower()
        except ValueError:
            return False
        return name == "localhost" or name in self._names or _is_address(name)


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def is_loopback(host: str) -> bool:
    return host == "localhost" or (_is_address(host) and ipaddress.ip_address(host).is_loopback)


def _authority(origin: str) -> str:
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return ""


def _refused(why: str) -> Response:
    return JSONResponse({"error": why, "kind": "refused"}, 403)
