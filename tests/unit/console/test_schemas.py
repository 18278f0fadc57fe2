"""A schema registry that is slow, away, or says odd things, while several ask for its schemas."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from kafkalite.console import schemas as room
from kafkalite.console.schemas import AGAIN_SECONDS, NoSchema, Schemas, of_registry

TEXT = {"schema": '"string"'}


def framed(number: int) -> bytes:
    return bytes(1) + number.to_bytes(4, "big") + b"\x02a"


def why_not(schemas: Schemas, number: int) -> str:
    with pytest.raises(NoSchema) as refused:
        schemas.decoded(framed(number))
    return str(refused.value)


class Slow:
    """One whose first schema takes until it is told to come."""

    def __init__(self) -> None:
        self.is_asked, self.may_come = threading.Event(), threading.Event()
        self.asked: list[str] = []

    def __call__(self, path: str) -> Any:
        self.asked.append(path)
        if path.endswith("/1"):
            self.is_asked.set()
            assert self.may_come.wait(10)
        return TEXT


def test_a_slow_schema_keeps_nobody_waiting_who_wants_another() -> None:
    slow = Slow()
    schemas = Schemas(slow)
    came: list[Any] = []
    asking = [
        threading.Thread(target=lambda: came.append(schemas.decoded(framed(1)))) for _ in range(3)
    ]
    others = threading.Thread(target=lambda: came.append(schemas.decoded(framed(2))))
    for each in asking:
        each.start()
    assert slow.is_asked.wait(10)
    others.start()
    others.join(5)
    before = list(came)
    slow.may_come.set()
    for each in (*asking, others):
        each.join(10)
    assert before == [("avro", "a", "schema 2")]
    assert came[1:] == [("avro", "a", "schema 1")] * 3
    assert sorted(slow.asked) == ["/schemas/ids/1", "/schemas/ids/2"]


def test_who_waited_for_another_one_s_question_is_refused_with_it() -> None:
    may_come, asked = threading.Event(), list[str]()

    def fetch(path: str) -> Any:
        asked.append(path)
        assert may_come.wait(10)
        raise NoSchema("it is gone")

    schemas, told = Schemas(fetch), list[str]()
    asking = [threading.Thread(target=lambda: told.append(why_not(schemas, 1))) for _ in range(3)]
    for each in asking:
        each.start()
    may_come.set()
    for each in asking:
        each.join(10)
    assert told == ["it is gone"] * 3
    assert len(asked) == 1


def test_a_registry_that_is_away_is_not_asked_for_every_schema() -> None:
    asked, now = list[str](), [100.0]

    def fetch(path: str) -> Any:
        asked.append(path)
        raise room.Away("it does not answer")

    schemas = Schemas(fetch, lambda: now[0])
    for number in range(500):
        assert why_not(schemas, number) == "it does not answer"
    assert len(asked) == 1
    now[0] += AGAIN_SECONDS
    why_not(schemas, 7)
    assert len(asked) == 2


def test_what_a_schema_refers_to_has_a_time_together() -> None:
    asked, now = list[str](), [100.0]

    def fetch(path: str) -> Any:
        asked.append(path)
        now[0] += 4.0
        return {**TEXT, "references": [{"subject": f"s{len(asked)}", "version": 1}]}

    assert "takes longer than" in why_not(Schemas(fetch, lambda: now[0]), 1)
    assert len(asked) == 3


# --- over HTTP ------------------------------------------------------------------------------------


class Answering(BaseHTTPRequestHandler):
    """By the first part of the path."""

    found: Any = TEXT
    logins: list[str | None]

    def do_GET(self) -> None:
        self.logins.append(self.headers["Authorization"])
        with suppress(BrokenPipeError, ConnectionResetError):
            getattr(self, self.path.split("/")[1])()

    def log_message(self, *words: object) -> None: ...

    def _head(self, status: int, **heads: object) -> None:
        self.send_response(status)
        for name, value in heads.items():
            self.send_header(name.replace("_", "-"), str(value))
        self.end_headers()

    def good(self) -> None:
        data = json.dumps(self.found).encode()
        self._head(200, Content_Length=len(data))
        self.wfile.write(data)

    def missing(self) -> None:
        self._head(404, Content_Length=0)

    def drips(self) -> None:
        self._head(200, Content_Length=100_000)
        for _ in range(100):
            self.wfile.write(b" ")
            time.sleep(0.05)

    def odd(self) -> None:
        self.wfile.write(b"220 some mail\r\n")

    def here(self) -> None:
        self._head(302, Location="/good/x", Content_Length=0)

    def elsewhere(self) -> None:
        where = f"http://localhost:{self.connection.getsockname()[1]}/good/x"
        self._head(302, Location=where, Content_Length=0)


@pytest.fixture
def server() -> Iterator[Callable[[str], str]]:
    Answering.logins, Answering.found = [], TEXT
    server = ThreadingHTTPServer(("127.0.0.1", 0), Answering)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield lambda path: f"http://u:secret@127.0.0.1:{server.server_port}/{path}"
    server.shutdown()
    server.server_close()
    thread.join()


def test_an_answer_has_a_time_whole(
    server: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room, "ANSWER_SECONDS", 0.3)
    began = time.monotonic()
    assert "does not answer" in why_not(of_registry(server("drips")), 1)
    assert time.monotonic() - began < 2


@pytest.mark.parametrize(
    ("path", "why"), [("missing", "404"), ("odd", "does not answer: 220 some mail")]
)
def test_what_a_registry_says_instead(server: Callable[[str], str], path: str, why: str) -> None:
    told = why_not(of_registry(server(path)), 1)
    assert why in told
    assert "secret" not in told


@pytest.mark.parametrize(
    "reference",
    [{"subject": "\ud800", "version": 1}, {"subject": "s", "version": "1 HTTP/1.1\r\nX: y"}],
)
def test_odd_references_are_no_mistake_of_ours(
    reference: Any, server: Callable[[str], str]
) -> None:
    schemas = of_registry(server("good"))
    Answering.found = {**TEXT, "references": [reference]}
    with suppress(NoSchema):
        schemas.decoded(framed(1))
    Answering.found = TEXT
    assert schemas.decoded(framed(2))[0] == "avro"


@pytest.mark.parametrize(
    ("path", "is_told"), [("good", True), ("here", True), ("elsewhere", False)]
)
def test_a_password_is_for_the_registry_alone(
    server: Callable[[str], str], path: str, is_told: bool
) -> None:
    of_registry(server(path)).decoded(framed(1))
    assert Answering.logins[0] is not None
    assert (Answering.logins[-1] is not None) == is_told
