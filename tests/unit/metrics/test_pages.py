"""Who asks for a page, and what of an application's errors reaches them."""

from __future__ import annotations

from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from starlette.testclient import TestClient

from kafkalite.client.cluster import ClientFailed, Unreachable
from kafkalite.client.survey import Survey
from kafkalite.metrics import pages as module
from kafkalite.metrics.pages import FRESH_SECONDS, SENTENCES, Pages
from kafkalite.metrics.server import app
from tests.unit.metrics.test_names import found


class Looks:
    """In place of a cluster that is asked."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        self.now_s = 0.0
        self.failure: ClientFailed | None = None
        self.missing: list[str] = []
        monkeypatch.setattr(module, "survey", self._survey)
        unused: Any = None
        self.pages = Pages(unused, None, lambda: self.now_s)

    def _survey(self, _: object) -> Survey:
        self.count += 1
        if self.failure is not None:
            raise self.failure
        seen = found()
        seen.missing = self.missing
        return seen


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> Looks:
    return Looks(monkeypatch)


def test_each_page_is_what_prometheus_reads(looks: Looks) -> None:
    client = TestClient(app(looks.pages))
    for path, name in (("/metrics", "kafka_brokers"), ("/metrics/kminion", "kminion_exporter_up")):
        answer = client.get(path)
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/plain; version=")
        families = {each.name: each for each in text_string_to_metric_families(answer.text)}
        assert families[name].samples
        assert path in client.get("/").text
    assert client.get("/other").status_code == 404


def test_who_asks_within_a_moment_shares_a_look(looks: Looks) -> None:
    looks.pages.page("/metrics")
    looks.pages.page("/metrics/kminion")
    assert looks.count == 1
    looks.now_s += FRESH_SECONDS
    looks.pages.look()
    assert looks.count == 2


def test_a_cluster_that_does_not_answer_is_told_and_asked_again(looks: Looks) -> None:
    looks.failure = Unreachable("no broker answers (one:9092: refused): start one")
    client = TestClient(app(looks.pages))
    answer = client.get("/metrics")
    assert (answer.status_code, answer.text.strip()) == (503, str(looks.failure))
    looks.failure = None
    assert client.get("/metrics").status_code == 200


def test_what_is_missing_is_told_once(
    looks: Looks, caplog: pytest.LogCaptureFixture
) -> None:
    looks.missing = ["the offsets at broker 2: refused"]
    for _ in range(3):
        looks.now_s += FRESH_SECONDS
        looks.pages.look()
    assert [record.message for record in caplog.records] == looks.missing
    for number in range(SENTENCES + 1):
        looks.missing = [f"group {number}"]
        looks.now_s += FRESH_SECONDS
        looks.pages.look()
    assert len(looks.pages._said) <= SENTENCES


def test_burrows_paths(looks: Looks) -> None:
    client = TestClient(app(looks.pages))
    client.get("/metrics")
    for number, offset in enumerate([60, 70, 80]):
        at_ms = 1_000_000 + 2_000 * (number - 2)
        looks.pages.committed("readers", ("orders", 0), offset, at_ms)
    assert client.get("/v3/kafka").json()["clusters"] == ["here"]
    assert client.get("/v3/kafka/here/consumer").json()["consumers"] == ["readers"]
    assert client.get("/v3/kafka/here/topic").json()["topics"] == ["orders"]
    assert client.get("/v3/kafka/here/topic/orders").json()["offsets"] == [100, 50, -1]
    told = client.get("/v3/kafka/here/topic/orders/consumers").json()
    assert told["consumers"] == ["readers"]
    answer = client.get("/v3/kafka/here/consumer/readers/lag").json()
    status = answer["status"]
    assert (status["status"], status["totallag"], status["partition_count"]) == ("OK", 20, 1)
    [partition] = status["partitions"]
    assert partition["client_id"] == "a"
    assert partition["end"] == {"offset": 80, "timestamp": 1_000_000, "lag": 20}
    assert client.get("/v3/kafka/here/consumer/readers/status").json()["status"]["partitions"] == []
    detail = client.get("/v3/kafka/here/consumer/readers").json()["topics"]["orders"]
    assert [each["offset"] for each in detail[0]["offsets"]] == [60, 70, 80]
    for path in ("there", "here/consumer/none", "here/topic/none", "here/else"):
        refused = client.get(f"/v3/kafka/{path}")
        assert (refused.status_code, refused.json()["error"]) == (404, True)
    assert client.get("/v3/kafka/here/consumer/none/status").status_code == 404
    assert "burrow_kafka_consumer_status" in client.get("/metrics").text
    assert client.delete("/v3/kafka/here/consumer/readers").status_code == 200
    assert client.get("/v3/kafka/here/consumer").json()["consumers"] == []
    assert client.get("/burrow/admin").text == "GOOD"
    assert client.get("/burrow/admin/ready").text == "READY"


def test_commits_of_topics_that_have_gone_are_forgotten(looks: Looks) -> None:
    looks.pages.committed("readers", ("gone", 0), 5, 1_000_000)
    looks.pages.committed("readers", ("orders", 0), 5, 1_000_000)
    looks.pages.committed("readers", ("orders", 1), 5, 1_000_000)
    looks.pages.committed("readers", ("orders", 1), None, 1_000_001)
    looks.pages.look()
    _, detail = looks.pages.burrow(("here", "consumer", "readers"))
    assert list(detail["topics"]) == ["orders"]
    assert len(detail["topics"]["orders"]) == 1
