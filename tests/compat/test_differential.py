"""The same requests to kafkalite and Apache Kafka side by side: those that once were answered
differently, a seeded sample of random ones, and a proof that differences are seen at all."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from kafkalite.protocol.messages import JoinGroupRequest, ProduceRequest
from kafkalite.testing.comparison.differences import explain
from tests.compat import brokers
from tests.differential import pieces
from tests.differential.__main__ import converse
from tests.differential.batches import TIMESTAMP, Batch
from tests.differential.generating import THEMES, Step
from tests.differential.mended import MENDED
from tests.differential.page import as_page
from tests.differential.pieces import Piece
from tests.differential.report import show
from tests.differential.running import Runner, Speaker
from tests.differential.steps import TOPIC, created_with, deleted_before, earliest

SAMPLE_ROUNDS = 6  # of each theme, of 26 requests


@pytest.fixture(scope="session")
def runner(run_folder: Path) -> Iterator[Runner]:
    pair = (brokers.shared(kind, run_folder) for kind in brokers.BROKERS)
    with closing(Runner(*(Speaker(broker.host, broker.port) for broker in pair))) as runner:
        yield runner


@pytest.mark.parametrize("name", list(MENDED))
def test_what_was_mended_stays_mended(runner: Runner, name: str) -> None:
    outcome = runner.run(MENDED[name])
    assert outcome.differences == [], show(outcome)


def test_protocol_that_is_named_twice_disturbs_nobody(runner: Runner) -> None:
    """Apache Kafka never answers such a member; kafkalite has to, and go on with its groups."""
    protocol = JoinGroupRequest.Protocol(name="range", metadata=b"")
    request = JoinGroupRequest(
        group_id="twice",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=700,
        protocol_type="consumer",
        protocols=[protocol, protocol],
    )
    ours, _ = runner.sides
    answer = ours.ask(request, 1)
    assert (answer.error_code, answer.protocol_name) == (0, "range")


@pytest.mark.parametrize("theme", list(THEMES))
def test_random_requests_are_answered_alike(runner: Runner, theme: str) -> None:
    asked = 0
    for number in range(SAMPLE_ROUNDS):
        seed = f"sample/{number}"
        outcome = converse(runner, seed, theme)
        if outcome.differences:  # a busy machine's timing is not seen again
            outcome = converse(runner, seed, theme)
        asked += len(outcome.steps)
        assert outcome.differences == [], f"{seed}\n{show(outcome)}"
    assert asked > 15 * SAMPLE_ROUNDS


# --- planted differences --------------------------------------------------------------------------


class Liar(Speaker):
    """A side that tells the truth, but for one field of one API."""

    def __init__(self, side: Speaker, api: str, field: str, value: Any) -> None:
        super().__init__(side.host, side.port)
        self.api, self.field, self.value = api, field, value

    def receive(self, step: Step) -> Any:
        answer = super().receive(step)
        if step.api == self.api and isinstance(answer, dict):
            plant(answer, self.field, self.value)
        return answer


def plant(view: Any, field: str, value: Any) -> None:
    for each in view if isinstance(view, list) else view.values():
        if isinstance(each, dict | list):
            plant(each, field, value)
    if isinstance(view, dict) and field in view:
        view[field] = value


PLANTED = [
    ("Produce", "base_offset", 99),
    ("Fetch", "high_watermark", 17),
    ("Metadata", "leader_epoch", 5),
    ("OffsetFetch", "metadata", "not what was written"),
    ("CreateTopics", "error_code", "TOPIC_ALREADY_EXISTS"),
]


@pytest.mark.parametrize(("api", "field", "value"), PLANTED)
def test_a_planted_difference_is_found(runner: Runner, api: str, field: str, value: Any) -> None:
    ours, theirs = runner.sides
    themes = {"OffsetFetch": "classic groups", "Metadata": "topics"}
    with closing(Liar(ours, api, field, value)) as liar:
        lied_to = Runner(liar, theirs)
        outcomes = (converse(lied_to, f"planted/{number}", themes.get(api, "log"))
                    for number in range(10))
        assert any(
            api == each.api and field in each.path
            for outcome in outcomes
            for each in outcome.differences
        )


def test_a_time_behind_the_start_of_a_log_has_its_row(runner: Runner) -> None:
    """The first segment holds the time only before the log's start; the second holds a later."""
    produced = [of_times(5000, 1000, 2000), of_times(20_000)]
    asked = earliest()
    asked.request.topics[0].partitions[0].timestamp = TIMESTAMP + 4000
    outcome = runner.run([created_with("segment.ms", "1000"), *produced, deleted_before(1), asked])
    assert outcome.differences == [], show(outcome)
    rows = {row.name for row in map(explain, outcome.allowed) if row}
    assert "time before the start" in rows


def of_times(*times: int) -> Step:
    batch = Batch(tuple((TIMESTAMP + each, None, b"value", ()) for each in times))
    data = ProduceRequest.PartitionData(index=0, records=batch)
    topic = ProduceRequest.TopicData(name=TOPIC, partition_data=[data])
    return Step(ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[topic]), 9)


@pytest.mark.full
@pytest.mark.slow
def test_what_happens_between_requests_is_compared() -> None:
    few = "--rounds 1 --conversations 4 --steps 9 --workers 2".split()
    call = [sys.executable, "-m", "tests.differential.between", "--seed", "1", *few]
    done = subprocess.run(
        call, cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    acts = re.search(r"^(\d+) acts: \{(.+)\}", done.stdout, re.MULTILINE)
    assert acts is not None
    assert int(acts[1]) >= 8
    [total] = [each.split() for each in done.stdout.splitlines() if each.startswith("all ")]
    assert int(total[3]) > 300, "answered by both"


# --- the table ------------------------------------------------------------------------------------


def test_the_page_says_what_the_table_says() -> None:
    page = Path(__file__).parents[2] / "docs" / "generated" / "differences.md"
    assert page.read_text(encoding="utf-8") == as_page(), "write it: see the page's first lines"


# --- pieces of a long search ----------------------------------------------------------------------


def test_a_search_goes_on_behind_its_last_piece(tmp_path: Path) -> None:
    file = tmp_path / "pieces.jsonl"
    assert pieces.next_number(pieces.read(file), "a") == 0
    first = Piece(
        "a", 0, 40, 1.5, asked=Counter({("Fetch", 4): 9}), allowed=Counter({"why": 1}),
        acts=Counter(kill=2),
    )  # fmt: skip
    found = Counter({("Fetch", "error_code"): 1})
    for piece in (first, Piece("b", 0, 7), Piece("a", 40, 2, unexplained=found)):
        pieces.append(file, piece)
    told = pieces.read(file)
    assert told[0] == first
    assert [pieces.next_number(told, seed) for seed in ("a", "b", "c")] == [42, 7, 0]
    whole = pieces.total([*told, first])
    assert (whole.rounds, whole.asked["Fetch", 4], whole.unexplained) == (89, 18, found)
    assert whole.acts == {"kill": 4}
