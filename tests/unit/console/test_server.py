"""The console over HTTP, before a broker in this process: answers, refusals, and who is let in."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from starlette.testclient import TestClient

import kafkalite.coordinators.groups.shard
import kafkalite.coordinators.transactions.shard  # noqa: F401 - not in a turn of the loop
from kafkalite.client.cluster import Cluster
from kafkalite.console import overview, reading
from kafkalite.console.guard import OF_PAGE
from kafkalite.console.server import MOST_EXACT, NoClients, Terms, _written, app
from kafkalite.console.sessions import Sessions
from kafkalite.security.client_login import Login, Security
from kafkalite.testing.embedded import EmbeddedKafka

PORT = 8080
HERE = f"http://127.0.0.1:{PORT}"
XSS = '<img src=x onerror="alert(1)">'


class Asker:
    """A browser, as far as it asks."""

    def __init__(self, client: TestClient) -> None:
        self.client = client

    def __call__(self, path: str, **fields: Any) -> dict[str, Any]:
        status, told = self.refused(path, **fields)
        assert status == 200, told
        return told

    def refused(self, path: str, **fields: Any) -> tuple[int, dict[str, Any]]:
        body = json.dumps(fields)  # with half characters, too
        answer = self.client.post(f"/api/{path}", content=body, headers={OF_PAGE: "1"})
        return answer.status_code, answer.json()


def connected() -> list[dict[str, Any]]:
    return [{"software": "librdkafka", "connections": 1}]


Make = Callable[..., Asker]


@pytest.fixture
def make() -> Iterator[Make]:
    """Makes browsers, and ends what they had connected."""
    made: list[Sessions] = []
    yield partial(asker, made)
    for each in made:
        each.close()


def asker(
    made: list[Sessions], kafka: EmbeddedKafka, *, may_change: bool = True,
    mechanisms: tuple[str, ...] = (),
    clients: Callable[[], list[dict[str, Any]]] | None = connected,
) -> Asker:  # fmt: skip
    def connect(login: Login | None) -> Cluster:
        security = Security(None, login)
        return Cluster([("127.0.0.1", kafka.port)], security=security, patience_s=5)

    sessions = Sessions(connect, mechanisms)
    made.append(sessions)
    page = app(sessions, Terms(may_change, None, clients), PORT, ["console.example"])
    return Asker(TestClient(page, base_url=HERE))


@pytest.fixture(scope="module")
def kafka() -> Iterator[EmbeddedKafka]:
    with EmbeddedKafka(topics={"orders": 3}) as kafka:
        producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
        for number in range(30):
            value = json.dumps({"id": number, "note": XSS})
            producer.produce("orders", value, str(number), number % 3, headers={"h": XSS})
        producer.flush(10)
        yield kafka


@pytest.fixture
def ask(kafka: EmbeddedKafka, make: Make) -> Asker:
    return make(kafka)


# --- looking --------------------------------------------------------------------------------------


def test_topics_and_their_numbers(ask: Asker) -> None:
    [row] = [each for each in ask("topics")["topics"] if each["name"] == "orders"]
    assert (row["partitions"], row["behind"], row["leaderless"]) == (3, 0, 0)
    records, ends, size = ask("topics/numbers")["topics"]["orders"]
    assert (records, ends, size > 0) == (30, 30, True)
    one = ask("topic", name="orders")
    assert [row[:2] + row[4:6] for row in one["rows"]] == [[index, 1, 0, 10] for index in range(3)]
    assert sum(row[6] for row in one["rows"]) == size
    assert ask("about")["brokers"] == 1


def test_records_page_by_page(ask: Asker) -> None:
    seen: list[tuple[int, int]] = []
    told = ask("records", topic="orders", begin="beginning", limit=7)
    while True:
        seen += [(row["partition"], row["offset"]) for row in told["rows"]]
        if told["done"]:
            break
        assert len(told["rows"]) == 7
        told = ask("records", topic="orders", limit=7, positions=told["positions"])
    assert sorted(seen) == [(index, offset) for index in range(3) for offset in range(10)]


def test_records_by_place_and_filter(ask: Asker) -> None:
    def ids(**fields: Any) -> list[int]:
        rows = ask("records", topic="orders", **fields)["rows"]
        return sorted(json.loads(row["value"]["text"])["id"] for row in rows)

    assert ids(begin="offset", offset=9) == [27, 28, 29]
    assert ids(begin="offset", offset=9, partitions=[1]) == [28]
    assert ids(begin="time", time=0) == list(range(30))
    assert ids(begin="end") == []
    assert ids(begin="last", limit=3, partitions=[0]) == [21, 24, 27]
    assert ids(begin="beginning", filter="id=17") == [17]
    assert ids(begin="beginning", filter="key:2 onerror") == [2, 12, *range(20, 30)]
    whole = ask("record", topic="orders", partition=2, offset=0)
    assert json.loads(whole["value"]["text"]) == {"id": 2, "note": XSS}
    assert whole["headers"][0][1]["text"] == XSS


def test_who_follows_asks_again_from_where_the_answer_ended(
    kafka: EmbeddedKafka, ask: Asker
) -> None:
    kafka.create_topic("live")
    told = ask("records", topic="live", begin="end", follow=True)
    assert told["rows"] == []
    kafka.produce("live", b"\xff" * 3)
    told = ask("records", topic="live", positions=told["positions"], follow=True)
    [row] = told["rows"]
    assert (row["key"], row["value"]["format"], row["value"]["text"]) == (None, "hex", "ffffff")
    assert told["positions"] == {"0": 1}


def test_a_question_has_an_end_however_much_there_is(
    kafka: EmbeddedKafka, ask: Asker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "MOST_LOOKED_AT", 10)
    told = ask("records", topic="orders", begin="beginning", filter="nothing-has-this")
    assert (told["looked_at"], told["rows"], told["done"]) == (10, [], False)
    status, _ = ask.refused("records", topic="orders", limit=1_000_000)
    assert status == 400
    kafka.create_topic("large", configs={"max.message.bytes": "12000000"})
    kafka.produce("large", b"x" * 10_000_000)
    [row] = ask("records", topic="large", begin="beginning")["rows"]
    value = row["value"]
    assert (value["size"], len(value["text"]), value["is_cut"]) == (10_000_000, 1_000, True)
    assert len(ask("record", topic="large", partition=0, offset=0)["value"]["text"]) == 200_000


def test_an_answer_has_an_end_however_long_records_take(
    kafka: EmbeddedKafka, ask: Asker, monkeypatch: pytest.MonkeyPatch
) -> None:
    def asked() -> tuple[int, bool]:
        told = ask("records", topic="orders", begin="beginning", partitions=[0])
        return told["looked_at"], told["done"]

    assert asked() == (10, True)
    with monkeypatch.context() as patched:
        patched.setattr(reading, "MOST_TOLD", 1)
        assert asked() == (1, False)
    with monkeypatch.context() as patched:  # key, value and header have more than that
        patched.setattr(reading, "MOST_BYTES", 2 * len(XSS))
        assert asked() == (1, False)
    row = reading._row

    def slowly(*given: Any) -> dict[str, Any] | None:
        time.sleep(0.5)
        return row(*given)

    monkeypatch.setattr(reading, "_row", slowly)
    assert asked()[0] < 6


def test_the_internal_topic_of_groups(kafka: EmbeddedKafka, ask: Asker) -> None:
    commit(kafka, "internal")
    told = ask("records", topic="__consumer_offsets", begin="beginning", filter="group=internal")
    assert told["rows"] == []  # the key has it, the value has not
    told = ask("records", topic="__consumer_offsets", begin="beginning", filter="key:internal")
    assert {row["key"]["format"] for row in told["rows"]} == {"internal"}
    assert any("offset" in (row["value"] or {}).get("text", "") for row in told["rows"])


def commit(kafka: EmbeddedKafka, group: str, offset: int = 4) -> None:
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap_servers, "group.id": group})
    places = [TopicPartition("orders", index, offset) for index in range(3)]
    consumer.commit(offsets=places, asynchronous=False)
    consumer.close()


def test_groups_and_a_reset(kafka: EmbeddedKafka, ask: Asker) -> None:
    commit(kafka, "billing/ö")
    [row] = [each for each in ask("groups")["groups"] if each["name"] == "billing/ö"]
    assert (row["members"], row["topics"], row["lag"]) == (0, 1, 18)
    assert [each["name"] for each in ask("topic/groups", name="orders")["groups"]].count(
        "billing/ö"
    ) == 1
    told = ask("group/preview", name="billing/ö", topics=["orders"], to="back", offset=1)
    assert told["rows"] == [["orders", index, 4, 9] for index in range(3)]
    assert ask("group", name="billing/ö")["lag"] == 18
    ask("group/reset", name="billing/ö", topics=["orders"], to="end")
    assert ask("group", name="billing/ö")["lag"] == 0
    ask("group/delete", name="billing/ö")
    assert ask.refused("group", name="billing/ö")[0] == 404


def test_a_preview_tells_where_a_group_would_go_on(kafka: EmbeddedKafka, ask: Asker) -> None:
    commit(kafka, "far")
    for offset in (11, "9007199254740993"):
        told = ask("group/preview", name="far", topics=["orders"], to="offset", offset=offset)
        assert told["rows"] == [["orders", index, 4, 10] for index in range(3)]
        assert f"orders-2 ends at 10: there is no offset {offset} to go on from" in told["notes"]
    assert ask("group/preview", name="far", topics=["orders"], to="end")["notes"] == []


def test_no_number_is_rounded(kafka: EmbeddedKafka, ask: Asker) -> None:
    """Browsers round what is beyond 2^53, and take no infinity for JSON."""
    commit(kafka, "beyond", (1 << 53) + 1)
    rows = ask("group", name="beyond")["rows"]
    assert [row[2] for row in rows] == [str((1 << 53) + 1)] * 3
    text = _written({"most": MOST_EXACT, "least": -MOST_EXACT, "no": [-MOST_EXACT - 1, 1e999]})
    assert json.loads(text) == {
        "most": MOST_EXACT, "least": -MOST_EXACT, "no": ["-9007199254740992", "inf"],
    }  # fmt: skip


def test_the_cluster(kafka: EmbeddedKafka, ask: Asker) -> None:
    [broker] = ask("brokers")["brokers"]
    assert (broker["id"], broker["controller"], broker["behind"]) == (1, True, 0)
    assert broker["dirs"][0]["partitions"] >= 3
    found = {each["key"]: each for each in ask("settings", of="topic", name="orders")["settings"]}
    assert found["retention.ms"]["default"]
    ask("settings/alter", of="topic", name="orders", set={"max.message.bytes": "77777"})
    found = {each["key"]: each for each in ask("settings", of="topic", name="orders")["settings"]}
    told = found["max.message.bytes"]
    assert (told["value"], told["source"]) == ("77777", "topic")
    assert told["behind"]
    ask("settings/alter", of="topic", name="orders", unset=["max.message.bytes"])
    assert any(each["key"] == "node.id" for each in
               ask("settings", of="broker", name="1")["settings"])  # fmt: skip
    assert (ask("quotas"), ask("access")) == ({"quotas": []}, {"rules": [], "off": True})
    assert ask("clients") == {"clients": connected()}


def test_transactions(kafka: EmbeddedKafka, ask: Asker) -> None:
    kafka.create_topic("payments")
    settings = {"bootstrap.servers": kafka.bootstrap_servers, "transactional.id": "pay"}
    producer = Producer(settings)
    producer.init_transactions(10)
    producer.begin_transaction()
    producer.produce("payments", b"open", partition=0)
    producer.flush(10)
    [row] = [each for each in ask("transactions")["transactions"] if each["name"] == "pay"]
    assert (row["state"], row["late"], row["partitions"]) == ("Ongoing", False, ["payments-0"])
    [each] = ask("transactions/open", topic="payments", partition=0)["open"]
    assert (each["name"], each["begins"]) == ("pay", 0)
    producer.abort_transaction(10)
    assert ask("transactions/open", topic="payments", partition=0)["open"] == []


# --- changing -------------------------------------------------------------------------------------


def test_a_topic_is_made_written_to_and_deleted(kafka: EmbeddedKafka, ask: Asker) -> None:
    ask("topic/create", name="mine", partitions=2, settings={"retention.ms": "5000"})
    ask("topic/partitions", name="mine", partitions=3)
    ask("produce", topic="mine", partition=2, key=None, value=XSS, headers=[["a", "b"]])
    ask("produce", topic="mine", partition=2, key="00ff", key_encoding="hex", value=None)
    rows = ask("records", topic="mine", begin="beginning", partitions=[2])["rows"]
    assert (rows[0]["key"], rows[0]["value"]["text"]) == (None, XSS)
    assert (rows[1]["key"]["text"], rows[1]["value"]) == ("00ff", None)
    assert ask.refused("topic/create", name="mine")[1]["code"] == "TOPIC_ALREADY_EXISTS"
    assert ask.refused("topic/create", name="a/b")[1]["code"] == "INVALID_TOPIC_EXCEPTION"
    ask("topic/delete", name="mine")
    for path in ("topic", "topic/groups"):
        status, told = ask.refused(path, name="mine")
        assert (status, told["kind"]) == (404, "absent")
    assert ask.refused("records", topic="mine")[0] == 404


@pytest.mark.parametrize(
    ("path", "fields"),
    [
        ("topic/create", {"name": "x"}), ("topic/delete", {"name": "orders"}),
        ("topic/partitions", {"name": "orders", "partitions": 9}), ("produce", {"topic": "orders"}),
        ("settings/alter", {"of": "topic", "name": "orders", "set": {"retention.ms": "1"}}),
        ("group/reset", {"name": "g", "topics": ["orders"], "to": "end"}),
        ("group/delete", {"name": "g"}),
        ("transactions/abort", {"topic": "orders", "partition": 0, "begins": 0}),
    ],
)  # fmt: skip
def test_without_allow_changes_it_only_looks(
    kafka: EmbeddedKafka, make: Make, path: str, fields: dict[str, Any]
) -> None:
    ask = make(kafka, may_change=False)
    status, told = ask.refused(path, **fields)
    assert (status, told["kind"]) == (403, "read-only")
    assert "--allow-changes" in told["error"]
    assert ask("topic", name="orders")["partitions"] == 3


def test_all_that_changes_something_is_in_that_list() -> None:
    from kafkalite.console.api import routes

    marks = test_without_allow_changes_it_only_looks.pytestmark
    listed = {path for path, _ in marks[0].args[1]}
    assert listed == {path for path, route in routes(None).items() if route.changes}


# --- who is let in, and what cannot be meant ------------------------------------------------------


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 403),
        ({OF_PAGE: "1"}, 200),
        ({OF_PAGE: "1", "host": "localhost:8080"}, 200),
        ({OF_PAGE: "1", "host": "console.example"}, 200),
        ({OF_PAGE: "1", "host": "evil.example:8080"}, 403),
        ({OF_PAGE: "1", "host": ""}, 403),
        ({OF_PAGE: "1", "host": "[::1"}, 403),
        ({OF_PAGE: "1", "origin": "http://127.0.0.1:8080"}, 200),
        ({OF_PAGE: "1", "origin": "http://127.0.0.1:9090"}, 403),
        ({OF_PAGE: "1", "origin": "null"}, 403),
        ({OF_PAGE: "1", "sec-fetch-site": "same-origin"}, 200),
        ({OF_PAGE: "1", "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}, 403),
    ],
)
def test_no_other_site_has_a_say(ask: Asker, headers: dict[str, str], status: int) -> None:
    answer = ask.client.post("/api/topics", content=b"{}", headers=headers)
    assert answer.status_code == status


def test_the_page_and_its_files_are_all_its_own(ask: Asker) -> None:
    from_elsewhere = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}
    page = ask.client.get("/", headers=from_elsewhere)
    assert page.status_code == 200
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert page.headers["x-content-type-options"] == "nosniff"
    seen, left = set(), {"/"}
    while left:
        path = left.pop()
        seen.add(path)
        answer = ask.client.get(path)
        assert answer.status_code == 200, path
        assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", answer.text), path
        found = re.findall(r'(?:src|href|from|import)[ =]+"\.?/([a-z]+\.[a-z]+)"', answer.text)
        left |= {f"/{name}" for name in found} - seen
    assert {"/app.js", "/dom.js", "/style.css", "/icon.svg"} <= seen
    for path in ("/../server.py", "/page/app.js", "/%2e%2e/api.py", "/topics/", "/api/none"):
        assert ask.client.get(path).status_code == 404


@pytest.mark.parametrize(
    "body", [b"{", b"[]", b"1", b'"x"', b"\xff", b"[" * 100_000, b"x" * ((4 << 20) + 1)]
)
def test_bodies_that_cannot_be_meant(ask: Asker, body: bytes) -> None:
    answer = ask.client.post("/api/topics", content=body, headers={OF_PAGE: "1"})
    assert (answer.status_code, answer.json()["kind"]) == (400, "mistake")


@pytest.mark.parametrize(
    ("path", "fields"),
    [
        ("topic", {}), ("topic", {"name": "\ud800"}),
        ("records", {"topic": "orders", "begin": "x"}),
        ("records", {"topic": "orders", "partitions": [-1]}),
        ("records", {"topic": "orders", "positions": {"x": 1}}),
        ("records", {"topic": "orders", "filter": '"'}),
        ("record", {"topic": "orders", "partition": 0, "offset": 1 << 62}),
        ("group/preview", {"name": "g", "topics": [], "to": "end"}),
        ("settings", {"of": "broker", "name": "one"}), ("settings", {"of": "nothing"}),
        ("produce", {"topic": "orders", "value": "zz", "value_encoding": "hex"}),
        ("produce", {"topic": "orders", "headers": [["a"]]}),
    ],
)  # fmt: skip
def test_fields_that_cannot_be_meant(ask: Asker, path: str, fields: dict[str, Any]) -> None:
    status, told = ask.refused(path, **fields)
    assert (status, told["kind"]) == (400, "mistake")
    assert told["error"]


def test_names_that_are_not_there(ask: Asker) -> None:
    for path, fields in (
        ("topic", {"name": "none"}), ("topic", {"name": XSS}), ("group", {"name": "none"}),
        ("records", {"topic": "none"}),
    ):  # fmt: skip
        status, told = ask.refused(path, **fields)
        assert status in (404, 409)
        assert told["error"]
    assert ask.refused("records", topic="orders", partitions=[99])[0] == 409
    assert ask.refused("produce", topic="orders", partition=99, value="x")[0] in (404, 409, 503)


def test_who_is_connected_is_not_always_known(kafka: EmbeddedKafka, make: Make) -> None:
    assert make(kafka, clients=None).refused("clients")[0] == 404

    def nobody() -> list[dict[str, Any]]:
        raise NoClients("the broker has gone")

    assert make(kafka, clients=nobody).refused("clients")[0] == 503


def test_brokers_that_are_gone_and_come_back(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(overview, "PATIENCE_SECONDS", 0.2)
    with EmbeddedKafka(topics=["orders"]) as kafka:
        ask = make(kafka)
        ask("topics")
        kafka.stop()
        for path in ("topics", "groups", "brokers", "about"):
            status, told = ask.refused(path)
            assert (status, told["kind"]) == (503, "unreachable")
            assert told["error"]
        kafka.start()
        assert [each["name"] for each in ask("topics")["topics"]] == ["orders"]


def test_a_login(make: Make) -> None:
    users = {"alice": "alice-secret"}
    acls = ["User:alice describe topic orders"]
    with EmbeddedKafka(
        topics=["orders", "hidden"], security="sasl_plaintext", mechanism="SCRAM-SHA-256",
        users=users, acls=acls,
    ) as kafka:  # fmt: skip
        ask = make(kafka, mechanisms=("SCRAM-SHA-256", "PLAIN"))
        assert ask.client.get("/api/session").json()["asks_login"]
        assert ask.refused("topics")[0] == 401
        status, told = ask.refused("login", user="alice", password="wrong")
        assert (status, told["kind"]) == (401, "login")
        assert "wrong" not in told["error"]
        answer = ask.client.post(
            "/api/login", json={"user": "alice", "password": "alice-secret"},
            headers={OF_PAGE: "1"},
        )  # fmt: skip
        cookie = answer.headers["set-cookie"].lower()
        assert "httponly" in cookie
        assert "samesite=strict" in cookie
        assert [each["name"] for each in ask("topics")["topics"]] == ["orders"]
        assert ask.refused("clients")[1]["kind"] == "forbidden"
        assert ask.client.get("/api/session").json()["user"] == "alice"
        ask("logout")
        assert ask.refused("topics")[0] == 401
