"""The pages over HTTP, until somebody ends it."""

from __future__ import annotations

import socket
import threading
from functools import partial

import uvicorn
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from kafkalite.client.cluster import ClientFailed
from kafkalite.metrics.pages import Pages


def serve(pages: Pages, listener: socket.socket, look_every_s: float) -> None:
    """Answers on a listening socket until Ctrl-C or SIGTERM."""
    config = uvicorn.Config(
        app(pages), log_config=None, log_level="warning", access_log=False, lifespan="off",
        loop="asyncio", http="h11", ws="none", server_header=False, timeout_graceful_shutdown=1,
    )  # fmt: skip
    is_over = threading.Event()
    looking = threading.Thread(target=_look, args=(pages, look_every_s, is_over), daemon=True)
    looking.start()
    try:
        uvicorn.Server(config).run(sockets=[listener])
    finally:
        is_over.set()


def app(pages: Pages) -> Starlette:
    routes = [Route(path, partial(_page, pages, path)) for path in pages.PATHS]
    routes.append(Route("/", _index))
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


def _index(_: Request) -> Response:
    return PlainTextResponse("".join(f"{path}\n" for path in Pages.PATHS))
