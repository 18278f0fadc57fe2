"""Tests that run with many seeds, in a suite of somebody else's: reports, replays, refusals."""

from __future__ import annotations

import re
from pathlib import Path

from tests.unit.testing.test_plugin import run_suite

# It cannot stand that an acknowledgement is lost.
WRONG = """
    import pytest
    from confluent_kafka import Producer

    runs = []

    @pytest.fixture
    def made(fresh_kafkalite):
        fresh_kafkalite.create_topic("made")

    @pytest.mark.kafkalite(topics={"orders": 1}, explore={"runs": 20, "rate": 0.3})
    def test_orders_are_written_once(fresh_kafkalite, made):
        runs.append(fresh_kafkalite)
        print(f"run {len(runs)}")
        assert fresh_kafkalite.records("made", count=0) == []
        producer = Producer({
            **fresh_kafkalite.client_config("confluent"), "linger.ms": 0, "client.id": "shop",
            "enable.idempotence": IDEMPOTENT, "retry.backoff.ms": 20, "retry.backoff.max.ms": 50,
        })
        for number in range(5):
            producer.produce("orders", str(number))
            producer.flush(20)
        assert len(fresh_kafkalite.records("orders", count=0)) == 5
"""


def test_a_failure_names_its_seed_and_the_smallest_schedule(tmp_path: Path) -> None:
    said = run_suite(tmp_path, WRONG.replace("IDEMPOTENT", "False"))
    assert "1 failed" in said, said
    found = re.search(r"seed (\d+) of kafkalite's explorer: it fails when", said)
    assert found, said
    assert re.search(r"\(1 of \d+ acts\):\nE +\S+ at no. 1 of Produce of orders-0 by shop\n", said)
    assert f"pytest --kafkalite-seed={found[1]}" in said
    assert "what was said to kafkalite" in said
    again = run_suite(tmp_path, WRONG.replace("IDEMPOTENT", "False"), "",
                      f"--kafkalite-seed={found[1]}")  # fmt: skip
    assert f"seed {found[1]} of kafkalite's explorer" in again, again


def test_what_stands_all_seeds_passes_and_each_run_begins_as_the_first(tmp_path: Path) -> None:
    said = run_suite(tmp_path, WRONG.replace("IDEMPOTENT", "True"), "", "-s")
    assert "1 passed" in said, said
    assert "run 20" in said
    alone = run_suite(tmp_path, WRONG.replace("IDEMPOTENT", "True"), "", "-s",
                      "--kafkalite-seed=name")  # fmt: skip
    assert "1 passed" in alone, alone
    assert "run 2" not in alone


def test_a_coroutine_is_run_and_what_is_skipped_is(tmp_path: Path) -> None:
    said = run_suite(
        tmp_path,
        """
        import pytest

        runs = []

        @pytest.mark.kafkalite(explore=3)
        async def test_coroutine(fresh_kafkalite):
            runs.append(1)

        def test_runs():
            assert len(runs) == 3

        @pytest.mark.kafkalite(explore=3)
        def test_skipped(fresh_kafkalite):
            pytest.skip("not here")
        """,
    )
    assert "2 passed, 1 skipped" in said, said


def test_what_cannot_be_meant_is_refused(tmp_path: Path) -> None:
    said = run_suite(
        tmp_path,
        """
        import pytest

        @pytest.mark.kafkalite(explore="often")
        def test_often(fresh_kafkalite):
            pass

        @pytest.mark.kafkalite(explore=3)
        def test_of_the_factory(kafkalite_factory):
            pass
        """,
    )
    assert "2 failed" in said, said
    assert "explore='often': expected how many runs" in said
    assert "explore= is for the broker of fresh_kafkalite, which this test does not use" in said


def test_the_report_shows_what_was_said_in_the_run_that_failed(tmp_path: Path) -> None:
    """The search for a smaller schedule ends with runs that do not."""
    said = run_suite(tmp_path, WRONG.replace("IDEMPOTENT", "False"))
    shown = said.partition("what was said to kafkalite")[2]
    acts = "the connection ends: asked for by the test|REQUEST_TIMED_OUT|AFTER_APPEND"
    assert re.search(acts, shown), said


def test_who_runs_a_test_again_has_it_explored_again(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(
        "from _pytest.runner import runtestprotocol\n"
        "def pytest_runtest_protocol(item, nextitem):\n"
        "    runtestprotocol(item, log=False, nextitem=nextitem)\n"
        "    item._initrequest()\n"
        "    runtestprotocol(item, log=True, nextitem=nextitem)\n"
        "    return True\n"
    )
    said = run_suite(
        tmp_path,
        """
        import pytest

        runs = []

        @pytest.mark.kafkalite(explore=2)
        def test_fails_at_first(fresh_kafkalite):
            fresh_kafkalite.produce("orders", "one")
            runs.append(1)
            assert len(runs) > 1
        """,
    )
    assert "1 passed" in said, said


def test_no_test_passes_for_not_having_been_run(tmp_path: Path) -> None:
    said = run_suite(
        tmp_path,
        """
        import pytest

        @pytest.mark.kafkalite(explore={"runs": 0})
        def test_never(fresh_kafkalite):
            assert False
        """,
    )
    assert "nothing would be run" in said, said
