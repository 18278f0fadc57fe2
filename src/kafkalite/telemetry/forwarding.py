"""Where pushed metrics go on: OTLP over HTTP, one push after the other.

Owns what waits for the worker. Who is away is asked again after a while; what waits is bounded in
bytes, and the oldest gives way. Never asked again is what was refused for good.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from http.client import HTTPException
from urllib.parse import urlsplit

from kafkalite.config import InvalidSetting
from kafkalite.env.background import Background, ThreadBackground
from kafkalite.env.clock import Clock, Timer
from kafkalite.env.fetching import posted
from kafkalite.env.tls import Offer, client_context

URL = "kafkalite.telemetry.url"
CONTENT_TYPE = "application/x-protobuf"
MOST_BYTES = 16 * 1024 * 1024
AGAIN_MS = 5_000
PATIENCE_S = 10.0
# Of answers, those after which it may be tried again; others of 4xx and 5xx are for good.
TRY_AGAIN = (429, 502, 503, 504)


class NotTaken(Exception):
    """The receiver has refused it for good."""


def check_url(url: str) -> None:
    """Raises InvalidSetting unless metrics can be sent there."""
    try:
        parts = urlsplit(url)
        is_address = parts.scheme.lower() in ("http", "https") and bool(parts.hostname)
        is_address = is_address and (parts.port is None or parts.port > 0)
    except ValueError:
        is_address = False
    if not is_address:
        raise InvalidSetting(f"{URL}: {url} is no address of HTTP, such as http://host:4318/v1/metrics")


class Forwarding:
    """To one receiver."""

    def __init__(
        self, url: str, clock: Clock, background: Background, warn: Callable[[str, str], None]
    ) -> None:
        self.url, self._clock, self._warn = url, clock, warn
        self._background = (
            background.apart() if isinstance(background, ThreadBackground) else background
        )
        self._waiting: deque[bytes] = deque()
        self._bytes = 0
        self._is_sending = self._is_over = False
        self._again: Timer | None = None
        self.sent = self.dropped = 0

    def send(self, data: bytes) -> None:
        if self._is_over:
            return
        self._waiting.append(data)
        self._bytes += len(data)
        while self._bytes > MOST_BYTES and len(self._waiting) > 1:
            self._take_out()
            self.dropped += 1
        self._go_on()

    def stop(self) -> None:
        """What waits is not sent any more."""
        self._is_over = True
        if self._again is not None:
            self._again.cancel()
        if isinstance(self._background, ThreadBackground):
            self._background.close(0)

    def _take_out(self) -> bytes:
        data = self._waiting.popleft()
        self._bytes -= len(data)
        return data

    def _go_on(self) -> None:
        self._again = None
        if self._waiting and not self._is_sending and not self._is_over:
            self._is_sending = True
            data = self._take_out()
            self._background.submit(
                partial(_post, self.url, data), partial(self._told, data)
            )

    def _told(self, data: bytes, outcome: BaseException | None) -> None:
        self._is_sending = False
        if outcome is None:
            self.sent += 1
        elif isinstance(outcome, NotTaken):
            self.dropped += 1
            self._warn("telemetry", f"{URL}: {self.url} refuses pushed metrics: {outcome}")
        elif isinstance(outcome, OSError | HTTPException | ValueError):
            why = getattr(outcome, "strerror", None) or str(outcome) or type(outcome).__name__
            self._warn("telemetry", f"{URL}: pushed metrics wait for {self.url}: {why}")
            self._put_back(data)
            return
        else:
            raise outcome
        self._go_on()

    def _put_back(self, data: bytes) -> None:
        if self._is_over:
            return
        self._waiting.appendleft(data)
        self._bytes += len(data)
        self._is_sending = True  # until it is time
        self._again = self._clock.call_later(AGAIN_MS, self._try_again)

    def _try_again(self) -> None:
        self._is_sending = False
        self._go_on()


def _post(url: str, data: bytes) -> None:
    is_secure = urlsplit(url).scheme.lower() == "https"
    context = client_context(Offer()) if is_secure else None
    status = posted(url, context, data, CONTENT_TYPE, PATIENCE_S)
    if status in TRY_AGAIN:
        raise ValueError(f"the answer is {status}")
    if status >= 300:
        raise NotTaken(f"the answer is {status}")
