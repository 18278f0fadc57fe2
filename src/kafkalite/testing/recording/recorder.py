"""The proxy inside a test's own process, on a thread of its own.

    with Recorder("localhost:9092") as recorder:
        producer = KafkaProducer(bootstrap_servers=recorder.bootstrap_servers)
    [each.api for each in recorder.said]
"""

from __future__ import annotations

import asyncio
import threading
from types import TracebackType

from kafkalite.client.addresses import addresses
from kafkalite.testing.recording.proxy import Proxy
from kafkalite.testing.recording.trace import Said

START_TIMEOUT_SECONDS = STOP_TIMEOUT_SECONDS = 10
LISTEN = "127.0.0.1"


class Recorder:
    """`said` is what has been said so far, in order. Of several bootstrap servers the first is
    asked; it names the others."""

    def __init__(self, bootstrap_servers: str) -> None:
        self.said: list[Said] = []
        self.proxy = Proxy(addresses(bootstrap_servers)[0], (LISTEN, 0), self.said.append)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="kafkalite-recorder", daemon=True
        )

    def __enter__(self) -> Recorder:
        self._thread.start()
        starting = asyncio.run_coroutine_threadsafe(self.proxy.start(), self._loop)
        try:
            starting.result(START_TIMEOUT_SECONDS)
        except BaseException:  # such as Ctrl-C
            self._end()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            stopping = asyncio.run_coroutine_threadsafe(self.proxy.stop(), self._loop)
            stopping.result(STOP_TIMEOUT_SECONDS)
        finally:
            self._end()

    def _end(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(STOP_TIMEOUT_SECONDS)
        self._loop.close()

    @property
    def bootstrap_servers(self) -> str:
        return f"{LISTEN}:{self.proxy.port}"
