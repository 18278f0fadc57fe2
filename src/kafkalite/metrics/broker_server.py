"""The pages of brokers in this process over HTTP, on a thread of its own.

Owns the way from that thread to the brokers' loop and back, and how long somebody waits for it. A
broker that is about to start or to stop has no pages; who asks is told so.
"""

from __future__ import annotations

import re
import socket
import threading
from asyncio import AbstractEventLoop
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial

from prometheus_client import CONTENT_TYPE_LATEST
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from kafkalite.broker.broker import Broker
from kafkalite.env.slicing import Work, caught
from kafkalite.metrics.bounded_http import server_of
from kafkalite.metrics.broker_pages import BrokerPages
from kafkalite.metrics.inside import Inside, look
from kafkalite.metrics.loop_share import Lately

LIVE, READY = "/health/live", "/health/ready"
SHOWN = (*BrokerPages.PATHS, LIVE, READY)
ANSWER_SECONDS = 10.0
LOOK_SECONDS = 10.0  # between looks of its own
STOP_SECONDS = 5.0
# There are 40 threads for whoever asks: some are left for who asks for the health.
MOST_ASKING = 32
_NUMBER = re.compile("[0-9]{1,10}")


class NotServing(Exception):
    """The broker has no numbers now."""


class Brokers:
    """Those of one loop, as other threads ask them."""

    def __init__(
        self,
        loop: Callable[[], AbstractEventLoop | None],
        found: Callable[[], Mapping[int, Broker]],
    ) -> None:
        """found: those that serve by their ids; asked on the loop."""
        self._loop, self._found = loop, found
        self._lately: dict[Broker, Lately] = {}

    def look(self, node_id: int | None) -> Inside:
        """Of one of them, or of the first."""
        outcome = self._ask(lambda tell: self._begin(node_id, tell))
        if isinstance(outcome, Inside):
            return outcome
        raise outcome if isinstance(outcome, Exception) else NotServing("the broker has stopped")

    def is_live(self) -> bool:
        """Whether the loop comes round."""
        with suppress(NotServing):
            return self._ask(lambda tell: tell(True)) is True
        return False

    def are_ready(self) -> bool:
        with suppress(NotServing):
            return self._ask(lambda tell: tell(self._are_serving())) is True
        return False

    def _are_serving(self) -> bool:
        found = self._found()
        return bool(found) and all(each.is_serving for each in found.values())

    def _ask(self, act: Callable[[Callable[[object], None]], None]) -> object:
        told: list[object] = []
        is_told = threading.Event()

        def tell(outcome: object) -> None:
            told.append(outcome)
            is_told.set()

        def acting() -> None:
            try:
                act(tell)
            except Exception as error:  # noqa: BLE001 - who asks is told
                tell(error)

        loop = self._loop()
        if loop is None:
            raise NotServing("the broker has not started")
        try:
            loop.call_soon_threadsafe(acting)
        except RuntimeError:
            raise NotServing("the broker has stopped") from None
        if not is_told.wait(ANSWER_SECONDS):
            raise NotServing(f"the broker did not answer within {ANSWER_SECONDS:.0f} s")
        return told[0]

    # --- on the loop ------------------------------------------------------------------------------

    def _begin(self, node_id: int | None, tell: Callable[[object], None]) -> None:
        found = {id_: each for id_, each in self._found().items() if each.is_serving}
        for gone in self._lately.keys() - set(found.values()):
            self._lately.pop(gone).stop()
        chosen = min(found, default=None) if node_id is None else node_id
        broker = None if chosen is None else found.get(chosen)
        if broker is None:
            what = "the broker" if node_id is None else f"broker {node_id}"
            tell(NotServing(f"{what} does not serve"))
            return
        if broker not in self._lately:
            self._lately[broker] = Lately(broker)
            self._lately[broker].start()
        steps = caught(look(broker, self._lately[broker]))
        broker.env.slices.begin(Work(steps, tell, lost=partial(tell, None)))


class MetricsServer:
    """Answers on a listening socket, on a thread of its own, from `start` to `stop`."""

    def __init__(self, brokers: Brokers, listener: socket.socket) -> None:
        self._brokers = brokers
        self._pages: dict[int | None, BrokerPages] = {}
        self._lock = threading.Lock()
        self._asking = threading.Semaphore(MOST_ASKING)
        self._is_over = threading.Event()
        self._server = server_of(self._app())
        run = partial(self._server.run, sockets=[listener])
        self._threads = [
            threading.Thread(target=run, name="kafkalite-metrics", daemon=True),
            threading.Thread(target=self._look, name="kafkalite-metrics-look", daemon=True),
        ]

    def start(self) -> None:
        for each in self._threads:
            each.start()

    def stop(self) -> None:
        self._is_over.set()
        self._server.should_exit = True
        for each in self._threads:
            each.join(STOP_SECONDS)

    def _look(self) -> None:
        while not self._is_over.wait(LOOK_SECONDS):
            for pages in list(self._pages.values()):
                with suppress(NotServing):
                    pages.look()

    def _app(self) -> Starlette:
        routes = [Route(path, partial(self._page, path)) for path in BrokerPages.PATHS]
        routes.append(Route(LIVE, self._live))
        routes.append(Route(READY, self._ready))
        routes.append(Route("/", lambda _: PlainTextResponse("\n".join(SHOWN) + "\n")))
        return Starlette(routes=routes)

    def _page(self, path: str, request: Request) -> Response:
        asked = request.query_params.get("broker")
        if asked is not None and not _NUMBER.fullmatch(asked):
            return PlainTextResponse(f"{asked!r:.100} is no number of a broker\n", 400)
        if not self._asking.acquire(blocking=False):
            return PlainTextResponse(f"{MOST_ASKING} others wait for their pages\n", 503)
        try:
            page = self._pages_of(None if asked is None else int(asked)).page(path)
        except NotServing as reason:
            return PlainTextResponse(f"{reason}\n", 503)
        finally:
            self._asking.release()
        return Response(page, media_type=CONTENT_TYPE_LATEST)

    def _pages_of(self, node_id: int | None) -> BrokerPages:
        """A broker that is not there leaves nothing behind."""
        with self._lock:
            known = self._pages.get(node_id)
        if known is None:
            known = BrokerPages(partial(self._brokers.look, node_id))
            known.look()
            with self._lock:
                known = self._pages.setdefault(node_id, known)
        return known

    def _live(self, _: Request) -> Response:
        if self._brokers.is_live():
            return PlainTextResponse("live\n")
        return PlainTextResponse("the loop of the broker does not come round\n", 503)

    def _ready(self, _: Request) -> Response:
        if self._brokers.are_ready():
            return PlainTextResponse("ready\n")
        return PlainTextResponse("the broker does not serve\n", 503)
