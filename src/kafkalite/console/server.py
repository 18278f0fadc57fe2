"""The page and what it asks, over HTTP.

Owns the cookie, the files of the page, and which thread answers: questions wait on threads, so
many for each session, never on the loop. What is asked of the cluster stands in api.py.
"""

from __future__ import annotations

import json
import math
import mimetypes
import socket
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial
from importlib import resources
from typing import Any, TypeVar

import uvicorn
from anyio import CapacityLimiter, to_thread
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route as At
from starlette.types import ASGIApp

import kafkalite
from kafkalite.client.cluster import ClientFailed, NotLetIn
from kafkalite.console import overview
from kafkalite.console.api import Route, refusal, routes
from kafkalite.console.connections import Prompt
from kafkalite.console.given import Given, Mistake
from kafkalite.console.guard import Guard
from kafkalite.console.schemas import Schemas
from kafkalite.console.sessions import LONGEST_SECONDS, Session, Sessions, TooOften

MOST_BODY_BYTES = 4 << 20
MOST_NAME, MOST_PASSWORD = 500, 5_000
MOST_CONNECTIONS = 200
MOST_EXACT = (1 << 53) - 1  # of a browser's whole numbers
STARTS = ("index.html",)

T = TypeVar("T")


class NoClients(Exception):
    """Who is connected cannot be told, and why."""


@dataclass(slots=True, frozen=True)
class Terms:
    """What the console is allowed, and what it can tell. connected: the clients of one's own
    broker; None where they cannot be known."""

    may_change: bool
    schemas: Schemas | None
    connected: Callable[[], list[dict[str, Any]]] | None


def serve(server: uvicorn.Server, listener: socket.socket) -> None:
    """Until Ctrl-C, SIGTERM or should_exit."""
    server.run(sockets=[listener])


def server_of(app: ASGIApp) -> uvicorn.Server:
    return uvicorn.Server(uvicorn.Config(
        app, log_config=None, log_level="warning", access_log=False, lifespan="off",
        loop="asyncio", http=Prompt, ws="none", server_header=False, timeout_graceful_shutdown=1,
        limit_concurrency=MOST_CONNECTIONS,
    ))  # fmt: skip


def app(sessions: Sessions, terms: Terms, port: int, names: Collection[str] = ()) -> ASGIApp:
    """port: which other consoles on this machine do not have, for the cookie's name."""
    page = _Page(sessions, terms, f"kafkalite-console-{port}")
    found = [
        At("/api/session", page.session),
        At("/api/login", page.log_in, methods=["POST"]),
        At("/api/logout", page.log_out, methods=["POST"]),
        At("/api/clients", page.clients, methods=["POST"]),
    ]
    found += [
        At(f"/api/{path}", partial(page.asked, route), methods=["POST"])
        for path, route in routes(terms.schemas).items()
    ]
    found += [At(path, partial(_file, *file)) for path, file in _files().items()]
    handlers: dict[Any, Any] = {HTTPException: _not_there, Exception: _failed}
    inner = Starlette(routes=found, exception_handlers=handlers)
    inner.router.redirect_slashes = False
    return Guard(inner, names)


class _Page:
    def __init__(self, sessions: Sessions, terms: Terms, cookie: str) -> None:
        self._sessions, self._terms, self._cookie = sessions, terms, cookie

    async def session(self, request: Request) -> Response:
        """What the page has to know before it asks anything."""
        session = self._of(request)
        return _json({
            "version": kafkalite.__version__, "asks_login": self._sessions.asks_login,
            "is_in": session is not None, "user": None if session is None else session.user,
            "may_change": self._terms.may_change,
            "has_clients": self._terms.connected is not None,
            "has_schemas": self._terms.schemas is not None,
        })  # fmt: skip

    async def log_in(self, request: Request) -> Response:
        try:
            given = await _given(request)
            user = given.text("user", most=MOST_NAME)
            password = given.text("password", most=MOST_PASSWORD)
            token = await run_in_threadpool(self._sessions.log_in, user, password)
        except TooOften as reason:
            return _error(429, "refused", str(reason))
        except NotLetIn as reason:
            return _error(401, "login", f"the brokers do not let {user} in: {reason.told}")
        except (Mistake, ClientFailed) as reason:
            return _refused(reason)
        answer = _json({"user": user})
        answer.set_cookie(
            self._cookie, token, max_age=LONGEST_SECONDS, path="/", httponly=True,
            samesite="strict", secure=request.url.scheme == "https",
        )  # fmt: skip
        return answer

    async def log_out(self, request: Request) -> Response:
        self._sessions.log_out(request.cookies.get(self._cookie))
        answer = _json({})
        answer.delete_cookie(self._cookie, path="/", httponly=True, samesite="strict")
        return answer

    async def asked(self, route: Route, request: Request) -> Response:
        session = self._of(request)
        if session is None:
            return _error(401, "login", "log in first")
        if route.changes and not self._terms.may_change:
            return _error(403, "read-only", "this console only looks: start it with "
                          "--allow-changes")  # fmt: skip
        try:
            given = await _given(request)
            return _sent(await _on_thread(session, partial(_ask, session, route, given)))
        except ClientDisconnect:
            return Response(status_code=400)  # to nobody
        except Exception as failure:  # noqa: BLE001 - raised again when it is none for the page
            return _refused(failure)

    async def clients(self, request: Request) -> Response:
        session, connected = self._of(request), self._terms.connected
        if session is None:
            return _error(401, "login", "log in first")
        if connected is None:
            return _error(404, "absent", "only a broker's own console (serve --console) knows its "
                          "clients: Kafka's protocol has no question for them")  # fmt: skip
        try:
            if not await _on_thread(session, partial(_may_describe, session)):
                return _error(403, "forbidden", "who is connected is told to whom may describe the "
                              "cluster: Describe on Cluster is missing")  # fmt: skip
            return _json({"clients": await run_in_threadpool(connected)})
        except NoClients as reason:
            return _error(503, "unreachable", str(reason))
        except Exception as failure:  # noqa: BLE001 - raised again when it is none for the page
            return _refused(failure)

    def _of(self, request: Request) -> Session | None:
        return self._sessions.found(request.cookies.get(self._cookie))


async def _on_thread(session: Session, act: Callable[[], T]) -> T:
    """On one of the session's own: those of the server, 40 for all, are for logins alone, so that
    no cluster that is slow for one session holds up another."""
    async with session.clients.place():
        return await to_thread.run_sync(act, limiter=CapacityLimiter(1))


def _ask(session: Session, route: Route, given: Given) -> str:
    with session.clients.one() as cluster:
        found = route.ask(cluster, given)
    return _written(found)


def _may_describe(session: Session) -> bool:
    with session.clients.one() as cluster:
        return overview.may_describe(cluster)


async def _given(request: Request) -> Given:
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MOST_BODY_BYTES:
            raise Mistake(f"more than {MOST_BODY_BYTES} bytes are not taken")
    try:
        fields = json.loads(body or b"{}")
    except (ValueError, RecursionError):
        raise Mistake("what was sent is no JSON") from None
    if not isinstance(fields, dict):
        raise Mistake("expected an object of JSON")
    return Given(fields)


# --- answers --------------------------------------------------------------------------------------


def _json(found: dict[str, Any], status: int = 200) -> Response:
    return _sent(_written(found), status)


def _sent(text: str, status: int = 200) -> Response:
    return Response(text, status, media_type="application/json")


def _written(found: dict[str, Any]) -> str:
    """ASCII, so that half a character, which JSON may have, can be told as well."""
    return json.dumps(_as_browsers_read(found))


def _as_browsers_read(value: Any) -> Any:
    """Numbers that they would round, or not take for JSON at all, as a text of their digits."""
    if isinstance(value, dict):
        return {key: _as_browsers_read(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_as_browsers_read(each) for each in value]
    if isinstance(value, int):
        return value if -MOST_EXACT <= value <= MOST_EXACT else str(value)
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _error(status: int, kind: str, text: str) -> Response:
    return _json({"error": text, "kind": kind}, status)


def _refused(failure: Exception) -> Response:
    """What is a mistake of our own is raised again, for the log."""
    told = refusal(failure)
    if told is None:
        raise failure
    return _json(told[1], told[0])


async def _not_there(request: Request, error: HTTPException) -> Response:
    return _error(error.status_code, "absent", f"{request.method} {request.url.path} is not there")


async def _failed(_: Request, error: Exception) -> Response:
    """The server logs it."""
    return JSONResponse({"error": f"{type(error).__name__}: a mistake of kafkalite's; its log has "
                         "more", "kind": "failed"}, 500)  # fmt: skip


def _files() -> dict[str, tuple[bytes, str]]:
    """The page's own files, by path; all that there are, so that no path leads elsewhere."""
    folder = resources.files("kafkalite.console") / "page"
    found = {}
    for each in folder.iterdir():
        kind = mimetypes.guess_type(each.name)[0] or "application/octet-stream"
        kind = "text/javascript" if each.name.endswith(".js") else kind
        found["/" if each.name in STARTS else f"/{each.name}"] = each.read_bytes(), kind
    return found


async def _file(data: bytes, kind: str, _: Request) -> Response:
    return Response(data, media_type=kind, headers={"cache-control": "no-cache"})
