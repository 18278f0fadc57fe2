"""Both ways of a connection through a proxy: how the end of one is passed on."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kafkalite.client.wire import request_frame
from kafkalite.protocol.framing import frame_size
from kafkalite.protocol.messages import MetadataRequest
from kafkalite.testing.recording.conversation import Conversation, Peer
from kafkalite.testing.recording.cutting import Held
from kafkalite.testing.recording.link import LINGERING_SECONDS, Hearer, Link
from kafkalite.testing.recording.said import Said


class Writer:
    """One end of a connection with TLS, which cannot say that it sends no more."""

    def __init__(self) -> None:
        self.written = b""

    def write(self, data: bytes) -> None:
        self.written += data

    async def drain(self) -> None: ...

    def can_write_eof(self) -> bool:
        return False


async def always() -> None: ...


async def nowhere(said: Said) -> bytes | None:
    return None


def link() -> Link:
    hearer = Hearer(lambda said: None, always)
    return Link(Conversation(1, Peer("h", 1)), hearer, Held(), nowhere)


async def carried(*, is_broker_gone: bool, within_s: float) -> None:
    client, broker = asyncio.StreamReader(), asyncio.StreamReader()
    to_client, to_broker = Writer(), Writer()
    ends: Any = (client, to_client), (broker, to_broker)
    carrying = asyncio.create_task(link().carry(*ends))
    frame = request_frame(MetadataRequest(), 9, 1, "me")
    client.feed_data(frame_size([frame]) + frame)
    while not to_broker.written:
        await asyncio.sleep(0)
    (broker if is_broker_gone else client).feed_eof()
    await asyncio.wait_for(carrying, within_s)


def test_a_client_hears_at_once_that_its_broker_has_gone_without_an_answer() -> None:
    asyncio.run(carried(is_broker_gone=True, within_s=LINGERING_SECONDS / 3))


def test_a_client_that_has_ended_its_way_is_owed_its_answer() -> None:
    with pytest.raises(TimeoutError):
        asyncio.run(carried(is_broker_gone=False, within_s=0.2))
