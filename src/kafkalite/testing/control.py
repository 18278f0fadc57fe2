"""The controls of an `EmbeddedKafka` over HTTP, for tests in other languages.

Owns who may ask (a token, or only pages and programs of this machine), how much may be sent, and
the thread that answers. What is asked and done stands in control_acts.py. Invariant: nothing is
looked at of a request whose sender is not let in.
"""

from __future__ import annotations

import asyncio
import ipaddress
import json
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from hmac import compare_digest
from typing import Any
from urllib.parse import urlsplit

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from kafkalite.client.cluster import ClientFailed
from kafkalite.testing.control_acts import ENDPOINTS, Acts
from kafkalite.testing.control_page import page
from kafkalite.testing.control_shape import Endpoint, Mistake, openapi, read, read_query
from kafkalite.testing.embedded import EmbeddedKafka
from kafkalite.testing.plan import BrokerFailed

MOST_BODY_BYTES = 1_000_000
BODY_SECONDS = 30
MOST_AT_ONCE = 64  # of acts, each on a thread: so many that wait for clients, and as many others
STOP_SECONDS = 5
OF_BROWSERS = ("origin", "referer")
# What a browser says of who asks, also where it sends neither of these: this page, or a person.
FETCH_SITE, OWN_SITES = "sec-fetch-site", ("same-origin", "none")


class ControlServer:
    """Answers on a listening socket, on a thread of its own, from `start` to `stop`."""

    def __init__(self, kafka: EmbeddedKafka, listener: socket.socket, token: str | None) -> None:
        """Without a token only whoever asks for this machine by a name of its own is let in."""
        app = Guard(_app(Acts(kafka), has_token=token is not None), token, listener.getsockname())
        config = uvicorn.Config(
            app, log_config=None, log_level="warning", access_log=False, lifespan="off",
            loop="asyncio", http="h11", ws="none", server_header=False,
            timeout_graceful_shutdown=1,
        )  # fmt: skip
        self._server = uvicorn.Server(config)
        run = partial(self._server.run, sockets=[listener])
        self._thread = threading.Thread(target=run, name="kafkalite-control", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._server.should_exit = True
        self._thread.join(STOP_SECONDS)


# --- who is let in --------------------------------------------------------------------------------


class Guard:
    """Before everything else: the token, or that it comes from here and from no website."""

    def __init__(self, app: ASGIApp, token: str | None, address: tuple[Any, ...]) -> None:
        self._app = app
        self._token = None if token is None else f"Bearer {token}".encode()
        self._own = str(address[0])

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and (refusal := self._refusal(Request(scope))) is not None:
            await refusal(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    def _refusal(self, request: Request) -> Response | None:
        if self._token is not None:
            given = request.headers.get("authorization", "").encode("latin-1")
            if compare_digest(given, self._token):
                return None
            why = "the token is missing or wrong: send it as `Authorization: Bearer TOKEN`"
            return _error(401, why, {"www-authenticate": "Bearer"})
        host = request.headers.get("host", "")
        if not self._is_here(host):
            return _error(403, f"{host!r} is no name of this machine's own: ask for 127.0.0.1 or "
                          "localhost, or start it with --control-token")  # fmt: skip
        site = request.headers.get(FETCH_SITE, "none")
        if site not in OWN_SITES:
            return _error(403, f"a website ({site!r:.100}) has no say here")
        for name in OF_BROWSERS:
            origin = request.headers.get(name)
            if origin is not None and _authority(origin) != host:
                return _error(403, f"a website ({origin!r:.100}) has no say here: ask without "
                              f"{name.capitalize()}")  # fmt: skip
        return None

    def _is_here(self, host: str) -> bool:
        """Whether it is an address of loopback, or this one: no name that a foreign DNS tells."""
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:
            return False
        return name in ("localhost", self._own) or is_loopback(name)


def is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _authority(origin: str) -> str:
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return ""


# --- answers --------------------------------------------------------------------------------------


def _app(acts: Acts, *, has_token: bool) -> Starlette:
    by_path: dict[str, dict[str, Endpoint]] = {}
    for each in ENDPOINTS:
        by_path.setdefault(each.path, {})[each.method] = each
    at_once = {waits: asyncio.Semaphore(MOST_AT_ONCE) for waits in (False, True)}
    routes = [
        Route(path, partial(_answer, acts, methods, at_once), methods=list(methods))
        for path, methods in by_path.items()
    ]
    document = openapi(ENDPOINTS, has_token=has_token)
    routes.append(Route("/openapi.json", partial(_same, JSONResponse(document))))
    routes.append(Route("/", partial(_same, HTMLResponse(page(ENDPOINTS)))))
    handlers: dict[Any, Any] = {HTTPException: _refused, Exception: _failed}
    app = Starlette(routes=routes, exception_handlers=handlers)
    app.router.redirect_slashes = False
    return app


async def _same(answer: Response, _: Request) -> Response:
    return answer


async def _answer(
    acts: Acts,
    methods: dict[str, Endpoint],
    at_once: dict[bool, asyncio.Semaphore],
    request: Request,
) -> Response:
    endpoint = methods["GET" if request.method == "HEAD" else request.method]
    try:
        given = read_query(endpoint.query, request.query_params)
        body = await asyncio.wait_for(_body_of(request), BODY_SECONDS)
        given |= read(endpoint.body, _value_of(body), "the body")
        given |= request.path_params
        async with at_once[endpoint.waits]:
            answer = await _apart(partial(endpoint.act, acts, given))
    except Mistake as mistake:
        headers = {"connection": "close"} if mistake.status in (408, 413) else {}
        return _error(mistake.status, str(mistake), headers)
    except ClientDisconnect:
        return Response(status_code=400)  # to nobody
    except TimeoutError:
        late = f"the body did not come within {BODY_SECONDS} s: send it again"
        return _error(408, late, {"connection": "close"})
    except (ValueError, TypeError, OverflowError) as error:
        return _error(400, str(error))
    except (BrokerFailed, ClientFailed, AssertionError) as error:
        return _error(409, str(error))
    return _json(answer, endpoint.status)


async def _body_of(request: Request) -> bytes:
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MOST_BODY_BYTES:
            raise Mistake(413, f"the body has more than {MOST_BODY_BYTES} bytes: send it in parts")
    return bytes(body)


def _value_of(body: bytes) -> Any:
    if not body.strip():
        return {}
    try:
        return json.loads(body, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise Mistake(400, f"the body is no JSON: {error}") from None


def _no_number(text: str) -> None:
    raise ValueError(f"{text} is no number of JSON")


async def _apart(act: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """On a thread that keeps nobody from ending the process."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[dict[str, Any]] = loop.create_future()

    def tell(what: Callable[[], None]) -> None:
        with suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(lambda: None if done.done() else what())

    def run() -> None:
        try:
            answer = act()
        except Exception as error:  # noqa: BLE001 - it is raised again where it is awaited
            tell(partial(done.set_exception, error))
        else:
            tell(partial(done.set_result, answer))

    threading.Thread(target=run, name="kafkalite-control-act", daemon=True).start()
    return await done


def _json(answer: dict[str, Any], status: int) -> Response:
    """ASCII, so that half a character, which JSON may have, can be told as well."""
    return Response(json.dumps(answer), status, media_type="application/json")


def _error(status: int, text: str, headers: dict[str, str] | None = None) -> Response:
    answer = _json({"error": text}, status)
    answer.headers.update(headers or {})
    return answer


async def _refused(request: Request, error: HTTPException) -> Response:
    asked = f"{request.method} {request.url.path}"
    if error.status_code == 405:
        allowed = (error.headers or {}).get("Allow", "")
        return _error(405, f"{asked}: this path takes {allowed}", dict(error.headers or {}))
    return _error(error.status_code, f"{asked} is not there: GET / shows what is")


async def _failed(_: Request, error: Exception) -> Response:
    """The server logs it."""
    return _error(500, f"{type(error).__name__}: a mistake of kafkalite's; its log has more")
