"""The controls over HTTP: what each does, what is refused, and who is let in."""

from __future__ import annotations

import http.client
import json
import re
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from kafkalite.testing import control
from kafkalite.testing.control import ControlServer
from kafkalite.testing.control_acts import ENDPOINTS
from kafkalite.testing.control_page import page
from kafkalite.testing.control_shape import Field
from kafkalite.testing.embedded import EmbeddedKafka

FAULT = {"api": "Produce", "act": "refuse", "error": "UNKNOWN_SERVER_ERROR"}
HOLD = {"api": "Produce", "act": "hold"}


class Asked:
    """Whoever asks the controls of a broker."""

    def __init__(self, kafka: EmbeddedKafka, port: int) -> None:
        self.kafka, self.port = kafka, port

    def __call__(
        self, method: str, path: str, body: Any = None, **headers: str
    ) -> tuple[int, Any]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
            connection.request(method, path, data, headers)
            answer = connection.getresponse()
            assert answer.headers["content-type"] == "application/json"
            return answer.status, json.loads(answer.read())
        finally:
            connection.close()

    def done(self, method: str, path: str, body: Any = None) -> Any:
        status, answer = self(method, path, body)
        assert status in (200, 201), answer
        return answer


@contextmanager
def controlled(kafka: EmbeddedKafka, token: str | None = None) -> Iterator[Asked]:
    listener = socket.create_server(("127.0.0.1", 0))
    server = ControlServer(kafka, listener, token)
    server.start()
    try:
        yield Asked(kafka, listener.getsockname()[1])
    finally:
        server.stop()


@pytest.fixture(scope="module")
def shared() -> Iterator[Asked]:
    with EmbeddedKafka(topics={"orders": 2}) as kafka, controlled(kafka) as ask:
        yield ask


@pytest.fixture
def ask(shared: Asked) -> Asked:
    shared.done("DELETE", "/faults")
    shared("DELETE", "/explore")
    shared.done("POST", "/clock/unfreeze")
    shared.done("POST", "/reset")
    return shared


# --- the document ---------------------------------------------------------------------------------

# What has to be there for an endpoint, and what it is asked.
CALLS: dict[str, tuple[list[tuple[str, str, Any]], str, Any]] = {
    "GET /records": ([], "?topic=orders", None),
    "POST /clock/advance": ([], "", {"milliseconds": 1}),
    "POST /faults": ([], "", FAULT),
    "GET /faults": ([("POST", "/faults", HOLD)], "", None),
    "POST /explore": ([], "", {"seed": 7, "rate": 0.5, "kinds": ["delay"]}),
    "GET /explore": ([("POST", "/explore", {"schedule": [{"kind": "delay"}]})], "", None),
    "DELETE /explore": ([("POST", "/explore", {"seed": "a name"})], "", None),
    "POST /leaders": ([], "", {"topic": "orders", "to": 1}),
    "POST /topics": ([("POST", "/reset", None)], "", {"name": "made", "partitions": 2}),
    "POST /produce": ([], "", {"topic": "orders", "records": [{"value": "one"}]}),
}


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda each: f"{each.method} {each.path}")
def test_answers_are_as_the_document_says(ask: Asked, endpoint: Any) -> None:
    called = f"{endpoint.method} {endpoint.path}"
    before, query, body = CALLS.get(called, ([], "", None))
    for call in before:
        ask.done(*call)
    path = endpoint.path
    if "{id}" in path:
        kind = path.split("/")[1]
        id_ = ask.done("POST", f"/{kind}", HOLD if kind == "faults" else None)["id"]
        path = path.replace("{id}", id_)
    if path == "/exchanges":
        ask.kafka.records("orders", count=0)
    status, answer = ask(endpoint.method, path + query, body)
    assert status == endpoint.status, answer
    _check(endpoint.answer, answer)


def _check(fields: tuple[Field, ...], answer: Any) -> None:
    assert set(answer) == {field.name for field in fields}
    kinds: dict[str, Any] = {
        "string": str, "integer": int, "number": (int, float), "boolean": bool, "object": dict,
        "array": list, "null": type(None),
    }  # fmt: skip
    for field in fields:
        value = answer[field.name]
        assert any(isinstance(value, kinds[each]) for each in field.types.split()), field.name
        if field.fields and isinstance(value, list):
            for each in value:
                _check(field.fields, each)


def test_the_document_names_every_endpoint_once(ask: Asked) -> None:
    document = ask.done("GET", "/openapi.json")
    operations = [
        (method.upper(), path) for path, each in document["paths"].items() for method in each
    ]
    assert operations == [(each.method, each.path) for each in sorted(
        ENDPOINTS, key=lambda each: list(document["paths"]).index(each.path)
    )]  # fmt: skip
    ids = [each["operationId"] for path in document["paths"].values() for each in path.values()]
    assert len(set(ids)) == len(ids) == len(ENDPOINTS)
    body = document["paths"]["/faults"]["post"]["requestBody"]["content"]["application/json"]
    assert body["schema"]["required"] == ["api", "act"]
    assert body["schema"]["additionalProperties"] is False


def test_the_page_fetches_nothing() -> None:
    shown = page(ENDPOINTS)
    assert all(each.about.split("'")[0] in shown for each in ENDPOINTS)
    fetching = r"<script|<link(?! rel=\"icon\" href=\"data:)|src=|@import|url\(|//"
    assert re.findall(fetching, shown) == []


def test_the_page_is_at_the_root(ask: Asked) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", ask.port, timeout=10)
    connection.request("GET", "/")
    answer = connection.getresponse()
    assert answer.headers["content-type"].startswith("text/html")
    assert b"/clock/advance" in answer.read()
    connection.close()


# --- what is refused ------------------------------------------------------------------------------

REFUSED: list[tuple[str, str, Any, int, str]] = [
    ("GET", "/nothing", None, 404, "GET / shows"),
    ("GET", "/faults/", None, 404, "GET / shows"),
    ("PUT", "/faults", None, 405, "this path takes"),
    ("GET", "/faults/99", None, 404, "GET /faults lists"),
    ("POST", "/snapshots/99/restore", None, 404, "GET /snapshots lists"),
    ("POST", "/explore", {}, 400, "by a seed=, or do what a schedule= says"),
    ("POST", "/explore", {"seed": 1, "kinds": ["delays"]}, 400, "'delays' is no kind: expected"),
    ("POST", "/explore", {"seed": 1, "rate": 2}, 400, "expected 1 or less"),
    ("POST", "/explore", {"schedule": [{"kind": "delay", "number": 0}]}, 400, "1 or more"),
    ("POST", "/explore", {"schedule": [{"kind": "delay", "api": "produced"}]}, 400, "no API of"),
    ("POST", "/faults", b"{", 400, "no JSON"),
    ("POST", "/faults", b"[" * 100_000, 400, "no JSON"),
    ("POST", "/faults", b'{"ms": NaN}', 400, "NaN is no number"),
    ("POST", "/faults", b"\xff", 400, "no JSON"),
    ("POST", "/faults", [], 400, "expected an object"),
    ("POST", "/faults", {"act": "hold"}, 400, "lacks the field 'api'"),
    ("POST", "/faults", {**HOLD, "tiems": 3}, 400, "no field 'tiems': it may have api, act"),
    ("POST", "/faults", {**HOLD, "where": {"topics": "x"}}, 400, "no field 'topics'"),
    ("POST", "/faults", {**HOLD, "where": {"partition": True}}, 400, "expected integer or null"),
    ("POST", "/faults", {**HOLD, "times": 0}, 400, "expected 1 or more"),
    ("POST", "/faults", {**HOLD, "ms": 5}, 400, "for delay and throttle"),
    ("POST", "/faults", {**HOLD, "api": "Bake"}, 400, "no API of Kafka"),
    ("POST", "/faults", {**HOLD, "act": "bake"}, 400, "expected one of refuse, delay"),
    ("POST", "/faults", {**FAULT, "error": "BURNT"}, 400, "no error of Kafka's"),
    ("POST", "/faults", {**FAULT, "error": None}, 400, "needs the field 'error'"),
    ("POST", "/faults", {"api": "Fetch", "act": "delay"}, 400, "needs the field 'ms'"),
    ("POST", "/clock/freeze", {"at": "2030-01-01T00:00:00"}, 400, "time zone"),
    ("POST", "/clock/freeze", {"at": "tomorrow"}, 400, "2030-01-01T00:00:00Z"),
    ("POST", "/clock/freeze", {"at": 10**30}, 400, "year 9999"),
    ("POST", "/clock/freeze", {"at": -1}, 400, "1970"),
    ("POST", "/clock/advance", {"days": -1}, 400, "expected 0 or more"),
    ("POST", "/clock/advance", {"days": 10**9}, 400, "or less"),
    ("POST", "/clock/unfreeze", {"at": 0}, 400, "it has none"),
    ("POST", "/leaders", {"topic": "orders"}, 400, "lacks the field 'to'"),
    ("POST", "/leaders", {"topic": "orders", "to": 7}, 400, "no broker 7"),
    ("POST", "/leaders", {"topic": "nothing", "to": 1}, 409, "no partition nothing-0"),
    ("POST", "/topics", {"name": "a b"}, 409, "a b"),
    ("POST", "/topics", {"name": "orders"}, 409, "already exists"),
    ("POST", "/topics", {"name": "x", "configs": {"retention.ms": {}}}, 400, "retention.ms"),
    ("POST", "/topics", {"name": "x", "partitions": 0}, 400, "at least one partition"),
    ("POST", "/produce", {"topic": "orders", "records": [1]}, 400, "records' of the body[0]"),
    ("POST", "/produce", {"topic": "orders", "records": [{"key_base64": "?"}]}, 400, "base64"),
    ("POST", "/produce", {"topic": "orders", "records": [{"key": 1, "key_base64": ""}]}, 400,
     "give one"),
    ("POST", "/produce", {"topic": "orders", "records": [{"headers": {"a": 1}}]}, 400, "header"),
    ("POST", "/produce", {"topic": "orders", "records": [{}] * 10_001}, 400, "10000 at a time"),
    ("POST", "/produce", b" " * 1_000_001, 413, "send it in parts"),
    ("GET", "/records", None, 400, "lacks the field 'topic'"),
    ("GET", "/records?topic=orders&count=many", None, 400, "expected integer"),
    ("GET", "/records?topic=orders&count=1&timeout=0", None, 409, "0 records and not 1"),
    ("GET", "/records?topic=orders&count=1&timeout=nan", None, 400, "is nan: expected a number"),
    ("GET", "/exchanges?api=Bake", None, 400, "no API of Kafka"),
    ("GET", "/exchanges?limit=5000", None, 400, "1000 or less"),
]  # fmt: skip


@pytest.mark.parametrize(("method", "path", "body", "status", "words"), REFUSED)
def test_what_is_wrong_is_named(ask: Asked, method, path, body, status, words) -> None:
    got, answer = ask(method, path, body)
    assert got == status, answer
    assert list(answer) == ["error"]
    assert words in answer["error"]


def test_a_body_without_end_is_cut_off(ask: Asked) -> None:
    with socket.create_connection(("127.0.0.1", ask.port), 10) as link:
        link.sendall(b"POST /produce HTTP/1.1\r\nhost: localhost\r\n"
                     b"transfer-encoding: chunked\r\n\r\n")  # fmt: skip
        chunk = b"10000\r\n" + b" " * 65536 + b"\r\n"
        with pytest.raises(OSError):
            link.sendall(chunk * 1000)
    assert ask.done("GET", "/health")["status"] == "serving"


def test_a_browser_says_that_a_website_asks_also_where_it_does_not_say_which(ask: Asked) -> None:
    """As for an image, from a page that sends no referrer."""
    for site, status in (("cross-site", 403), ("same-site", 403), ("none", 200)):
        assert ask("GET", "/clock", **{"Sec-Fetch-Site": site})[0] == status
    assert ask("GET", "/clock", **{"Sec-Fetch-Site": "same-origin"})[0] == 200


def test_who_waits_for_clients_keeps_nobody_from_steering(monkeypatch) -> None:
    """What they wait for may be for somebody else to let go."""
    monkeypatch.setattr(control, "MOST_AT_ONCE", 2)
    with EmbeddedKafka(topics=["orders"]) as kafka, controlled(kafka) as ask:
        id_ = ask.done("POST", "/faults", {**HOLD, "times": None})["id"]
        written = {"topic": "orders", "records": [{"value": "one"}]}
        waiting = [
            threading.Thread(target=ask.done, args=("POST", "/produce", written)) for _ in range(4)
        ]
        for each in waiting:
            each.start()
        begun = time.monotonic()
        while ask.done("GET", f"/faults/{id_}")["held"] < 2:
            assert time.monotonic() - begun < 5
        ask.done("DELETE", f"/faults/{id_}")
        assert time.monotonic() - begun < 5
        for each in waiting:
            each.join(20)
        assert ask.done("GET", "/records?topic=orders")["count"] == 4


def test_what_its_own_client_is_told_is_no_mistake_of_the_broker(ask: Asked) -> None:
    nowhere = {"topic": "orders", "records": [{"value": "x", "partition": 99}]}
    status, answer = ask("POST", "/produce", nowhere)
    assert status == 409
    assert "99" in answer["error"]


def test_a_broker_that_has_ended_is_told() -> None:
    kafka = EmbeddedKafka().start()
    with controlled(kafka) as ask:
        kafka.stop()
        assert ask("GET", "/health")[0] == 503
        status, answer = ask("POST", "/quiesce")
    assert status == 409
    assert "does not run" in answer["error"]


def test_what_is_in_a_directory_is_not_exchanged(tmp_path: Path) -> None:
    with EmbeddedKafka(tmp_path / "data") as kafka, controlled(kafka) as ask:
        status, answer = ask("POST", "/snapshots")
        assert status == 409
        assert "only what is in memory" in answer["error"]
        assert ask.done("GET", "/snapshots") == {"snapshots": []}


# --- what is done ---------------------------------------------------------------------------------


def test_records_come_back_as_they_were_written(ask: Asked) -> None:
    records = [
        {"key": "k", "value": {"id": 1}, "headers": {"from": "test", "none": None}},
        {"value": None, "key": "gone"},
        {"value_base64": "//4=", "partition": 1},
        {"value": "Grüße", "partition": 0},
        {"value": 7, "partition": 0},
    ]
    assert ask.done("POST", "/produce", {"topic": "orders", "records": records}) == {"written": 5}
    found = ask.done("GET", "/records?topic=orders&count=5")
    assert (found["count"], found["is_cut"]) == (5, False)
    texts = {each["value"] or each["value_base64"] for each in found["records"]}
    assert texts == {'{"id": 1}', None, "//4=", "Grüße", "7"}
    first = next(each for each in found["records"] if each["key"] == "k")
    assert first["headers"] == {"from": "test", "none": None}
    cut = ask.done("GET", "/records?topic=orders&limit=2")
    assert (len(cut["records"]), cut["count"], cut["is_cut"]) == (2, 5, True)


def test_an_answer_is_bounded(ask: Asked) -> None:
    for _ in range(20):
        ask.kafka.produce("orders", "x" * 900_000, partition=0)
    found = ask.done("GET", "/records?topic=orders")
    assert (found["count"], found["is_cut"]) == (20, True)
    assert len(found["records"]) == 18


def test_a_fault_is_counted_and_taken_back(ask: Asked) -> None:
    where = {"topic": "orders", "client_id": "kafkalite's helpers of tests"}
    body = {**FAULT, "error": "NOT_LEADER_OR_FOLLOWER", "times": 2, "where": where}
    id_ = ask.done("POST", "/faults", body)["id"]
    ask.done("POST", "/produce", {"topic": "orders", "records": [{"value": "x"}]})
    shown = ask.done("GET", f"/faults/{id_}")
    assert (shown["count"], shown["left"], shown["where"]) == (2, 0, where)
    assert [each["id"] for each in ask.done("GET", "/faults")["faults"]] == [id_]
    ask.done("DELETE", f"/faults/{id_}")
    assert ask.done("GET", "/faults") == {"faults": []}


def test_what_is_held_is_counted_and_released(ask: Asked) -> None:
    id_ = ask.done("POST", "/faults", HOLD)["id"]
    producer = Producer({**ask.kafka.client_config("confluent"), "linger.ms": 0})
    producer.produce("orders", b"held")
    deadline = time.monotonic() + 10
    while ask.done("GET", f"/faults/{id_}")["held"] == 0:
        producer.poll(0.02)
        assert time.monotonic() < deadline
    assert ask.done("GET", "/records?topic=orders")["count"] == 0
    assert ask.done("POST", f"/faults/{id_}/release") == {"released": 1}
    assert producer.flush(10) == 0
    other = ask.done("POST", "/faults", FAULT)["id"]
    status, answer = ask("POST", f"/faults/{other}/release")
    assert status == 409
    assert "holds nothing" in answer["error"]


def test_what_was_explored_is_told_and_done_again(ask: Asked) -> None:
    asked = {"seed": 3, "kinds": ["moved-leader"], "rate": 1}
    assert ask.done("POST", "/explore", asked)["schedule"] == []
    producer = Producer({
        "bootstrap.servers": ask.kafka.bootstrap_servers, "client.id": "shop", "linger.ms": 0,
        "retry.backoff.ms": 10,
    })  # fmt: skip
    producer.produce("orders", b"one", partition=1)
    assert producer.flush(15) == 0
    found = ask.done("GET", "/explore")["schedule"]
    assert found == [
        {"kind": "moved-leader", "number": number, "api": "Produce", "of": "orders-1",
         "by": "shop"}
        for number in (1, 2)
    ]  # fmt: skip
    assert ask.done("DELETE", "/explore")["schedule"] == found
    assert ask("DELETE", "/explore")[0] == 404
    ask.done("POST", "/explore", {"schedule": found})
    producer.produce("orders", b"two", partition=1)
    assert producer.flush(15) == 0
    assert ask.done("DELETE", "/explore")["schedule"] == found


def test_exchanges_are_told_from_where_one_was(ask: Asked) -> None:
    ask.done("DELETE", "/exchanges")
    before = ask.done("GET", "/exchanges")
    assert before["exchanges"] == []
    records = [{"value": f"{number}", "partition": 0} for number in range(12)]
    ask.done("POST", "/produce", {"topic": "orders", "records": records})
    whole = ask.done("GET", "/exchanges")
    [said] = ask.done("GET", "/exchanges?api=produce")["exchanges"]
    [data] = said["request"]["topic_data"][0]["partition_data"]
    assert data["records"]["count"] == 12
    assert [each["value"] for each in data["records"]["first"]] == [str(n) for n in range(10)]
    assert said["response"]["responses"][0]["partition_responses"][0]["error_code"] == "NONE"
    since, seen, is_cut = before["last"], [], True
    while is_cut:
        part = ask.done("GET", f"/exchanges?limit=1&since={since}")
        seen += part["exchanges"]
        since, is_cut = part["last"], part["is_cut"]
    assert seen == whole["exchanges"]
    assert ask.done("GET", "/exchanges?limit=1")["exchanges"] == whole["exchanges"][-1:]
    ask.done("DELETE", "/exchanges")
    assert ask.done("GET", "/exchanges")["exchanges"] == []


def test_snapshots_are_restored_and_forgotten(ask: Asked) -> None:
    def write(value: str) -> None:
        ask.done("POST", "/produce", {"topic": "orders", "records": [{"value": value}]})

    write("one")
    id_ = ask.done("POST", "/snapshots")["id"]
    write("two")
    assert ask.done("GET", "/records?topic=orders")["count"] == 2
    ask.done("POST", f"/snapshots/{id_}/restore")
    found = ask.done("GET", "/records?topic=orders")["records"]
    assert [each["value"] for each in found] == ["one"]
    ask.done("DELETE", f"/snapshots/{id_}")
    assert ask("DELETE", f"/snapshots/{id_}")[0] == 404


def test_many_at_once(ask: Asked) -> None:
    failed: list[Any] = []

    def work(number: int) -> None:
        body = {"topic": "orders", "records": [{"value": f"{number}"}]}
        for call in (("POST", "/produce", body), ("POST", "/quiesce"), ("GET", "/faults")):
            status, answer = ask(*call)
            if status not in (200, 201):
                failed.append(answer)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert failed == []
    assert ask.done("GET", "/records?topic=orders")["count"] == 10


# --- who is let in --------------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:9", "[::1]:80", "127.7.7.7"])
def test_names_of_this_machine_are_let_in(ask: Asked, host: str) -> None:
    assert ask("GET", "/health", host=host)[0] == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "evil.example"}, {"host": "127.0.0.1.evil.example"}, {"host": ""},
        {"host": "localhost.evil.example"}, {"host": "[::1"}, {"host": "10.0.0.1"},
        {"origin": "http://evil.example"}, {"origin": "null"}, {"referer": "http://evil.example/"},
    ],
)  # fmt: skip
def test_websites_are_not(ask: Asked, headers: dict[str, str]) -> None:
    status, answer = ask("POST", "/reset", **headers)
    assert status == 403
    assert "ask" in answer["error"]


def test_a_token_is_required_where_there_is_one() -> None:
    with EmbeddedKafka() as kafka, controlled(kafka, "secret") as ask:
        for wrong in ("", "Bearer secreT", "secret", "Bearer sécret", "Bearer ", "Basic secret"):
            for path in ("/health", "/", "/openapi.json", "/nothing"):
                status, answer = ask("GET", path, **({"authorization": wrong} if wrong else {}))
                assert status == 401
                assert "Bearer TOKEN" in answer["error"]
        right = {"authorization": "Bearer secret", "host": "kafka.example:9093"}
        assert ask("GET", "/health", **right)[0] == 200
        assert ask("GET", "/openapi.json", **right)[1]["security"] == [{"token": []}]
