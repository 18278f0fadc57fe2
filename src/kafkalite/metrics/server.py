"""The pages over HTTP, until somebody ends it."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from functools import partial

from prometheus_client import CONTENT_TYPE_LATEST
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from kafkalite.client.cluster import ClientFailed, Cluster
from kafkalite.metrics.bounded_http import server_of
from kafkalite.metrics.commits import Commits
from kafkalite.metrics.pages import Pages

SHOWN = (*Pages.PATHS, "/v3/kafka", "/burrow/admin", "/burrow/admin/ready")


def serve(
    pages: Pages, listener: socket.socket, look_every_s: float, connect: Callable[[], Cluster]
) -> None:
    """Answers on a listening socket until Ctrl-C or SIGTERM; who reads commits calls `connect`."""
    is_over = threading.Event()
    looking = threading.Thread(target=_look, args=(pages, look_every_s, is_over), daemon=True)
    looking.start()
    commits = Commits(connect, pages.committed)
    commits.start()
    try:
        server_of(app(pages)).run(sockets=[listener])
    finally:
        is_over.set()
        commits.stop()


def app(pages: Pages) -> Starlette:
    routes = [Route(path, partial(_page, pages, path)) for path in pages.PATHS]
    routes.append(Route("/v3/kafka", partial(_burrow, pages)))
    routes.append(Route("/v3/kafka/{path:path}", partial(_burrow, pages)))
    forget = partial(_forget, pages)
    routes.append(Route("/v3/kafka/{cluster}/consumer/{group}", forget, methods=["DELETE"]))
    routes.append(Route("/burrow/admin", partial(_same, "GOOD")))
    routes.append(Route("/burrow/admin/ready", partial(_ready, pages)))
    routes.append(Route("/", partial(_same, "\n".join(SHOWN))))
    return Starlette(routes=routes)


def _look(pages: Pages, every_s: float, is_over: threading.Event) -> None:
    while not is_over.wait(every_s):
        try:
            pages.look()
        except ClientFailed:
            continue  # who asks is told


def _page(pages: Pages, path: str, _: Request) -> Response:
    try:
        return Response(pages.page(path), media_type=CONTENT_TYPE_LATEST)
    except ClientFailed as failure:
        return PlainTextResponse(f"{failure}\n", 503)


def _burrow(pages: Pages, request: Request) -> Response:
    words = request.path_params.get("path", "").split("/")
    try:
        status, found = pages.burrow(tuple(word for word in words if word))
    except ClientFailed as failure:
        status, found = 503, {"error": True, "message": str(failure)}
    found["request"] = {"url": request.url.path, "host": request.url.hostname}
    return JSONResponse(found, status)


def _forget(pages: Pages, request: Request) -> Response:
    pages.forget(request.path_params["group"])
    found = {"error": False, "message": "consumer group removed"}
    where = {"url": request.url.path, "host": request.url.hostname}
    return JSONResponse({**found, "request": where})


def _ready(pages: Pages, _: Request) -> Response:
    try:
        pages.look()
    except ClientFailed as failure:
        return PlainTextResponse(f"{failure}\n", 503)
    return PlainTextResponse("READY")


def _same(text: str, _: Request) -> Response:
    return PlainTextResponse(text)
