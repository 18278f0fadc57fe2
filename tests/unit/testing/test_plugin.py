"""The fixtures in a suite of somebody else's, which has settings, markers and tests that stop."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from kafkalite.testing import plugin

ABOUT = """
    from confluent_kafka.admin import AdminClient

    def topics(broker):
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
        found = admin.list_topics(timeout=10)
        return {name: len(each.partitions) for name, each in found.topics.items()}
"""


def run_suite(folder: Path, tests: str, ini: str = "", *words: str) -> str:
    """What pytest says of a suite, in a process of its own."""
    (folder / "pytest.ini").write_text(f"[pytest]\naddopts = --strict-markers\n{dedent(ini)}\n")
    (folder / "about.py").write_text(dedent(ABOUT))
    (folder / "test_suite.py").write_text(dedent(tests))
    call = [sys.executable, "-m", "pytest", "-p", "no:randomly", "-p", "no:cacheprovider", *words]
    done = subprocess.run(
        [*call, "-q", str(folder)], cwd=folder, capture_output=True, text=True, timeout=60,
        check=False,
    )  # fmt: skip
    return done.stdout + done.stderr


def test_brokers_are_as_the_configuration_and_the_marker_say(tmp_path: Path) -> None:
    said = run_suite(
        tmp_path,
        """
        import pytest
        from about import topics

        def test_shared(kafkalite):
            assert topics(kafkalite) == {"orders": 3, "payments": 2}

        def test_fresh(fresh_kafkalite):
            assert topics(fresh_kafkalite) == {"orders": 3, "payments": 2}
            assert len(fresh_kafkalite.ports) == 1

        @pytest.mark.kafkalite(brokers=3, topics={"more": 1}, settings={"num.partitions": 4})
        def test_marked(fresh_kafkalite):
            assert topics(fresh_kafkalite) == {"orders": 3, "payments": 4, "more": 1}
            assert len(fresh_kafkalite.ports) == 3

        @pytest.mark.kafkalite(topics=["only"])
        class TestOfAClass:
            def test_inherits(self, fresh_kafkalite):
                assert topics(fresh_kafkalite) == {"only": 2}

            @pytest.mark.kafkalite(settings={"num.partitions": 7})
            def test_the_nearest_counts(self, fresh_kafkalite):
                assert topics(fresh_kafkalite) == {"only": 7}
        """,
        """
        kafkalite_settings =
            num.partitions = 2
        kafkalite_topics =
            orders:3
            payments
        """,
    )
    assert "5 passed" in said, said


def test_what_a_test_stopped_is_there_for_the_next_and_the_test_is_named(tmp_path: Path) -> None:
    suite = """
        from about import topics

        def test_first(kafkalite):
            kafkalite.create_topic("kept")
            global port
            port = kafkalite.port

        def test_that_stops(kafkalite):
            kafkalite.stop()

        def test_next(kafkalite):
            assert kafkalite.port == port
            assert topics(kafkalite) == {"kept": 1}
        """
    said = run_suite(tmp_path, suite)
    assert "3 passed, 1 warning" in said, said
    assert "test_suite.py::test_that_stops stopped the broker `kafkalite`, which all tests" in said
    said = run_suite(tmp_path, suite, "", "-W", "error")
    assert "3 passed, 1 error" in said, said
    assert "ERROR at teardown of test_that_stops" in said


def test_one_of_several_that_a_test_stopped_is_there_for_the_next(tmp_path: Path) -> None:
    suite = """
        def test_that_stops(kafkalite):
            kafkalite.stop_broker(3)

        def test_next(kafkalite):
            assert kafkalite.stopped_brokers == []
        """
    said = run_suite(tmp_path, suite, "kafkalite_brokers = 3")
    assert "2 passed, 1 warning" in said, said
    assert "test_suite.py::test_that_stops stopped broker 3 of `kafkalite`, which all" in said


def test_what_does_not_come_back_is_told_of_the_test_that_stopped_it(tmp_path: Path) -> None:
    said = run_suite(
        tmp_path,
        """
        import socket

        def test_that_stops(kafkalite):
            global taken
            port = kafkalite.port
            kafkalite.stop()
            taken = socket.create_server(("127.0.0.1", port))

        def test_next():
            pass
        """,
    )
    assert "ERROR at teardown of test_that_stops" in said
    assert "and it does not come back: the broker could not start: " in said


def test_a_marker_that_nothing_heeds_fails_its_test(tmp_path: Path) -> None:
    said = run_suite(
        tmp_path,
        """
        import pytest

        @pytest.mark.kafkalite(brokers=3)
        def test_shared(kafkalite):
            pass

        @pytest.mark.kafkalite(3)
        def test_positional(fresh_kafkalite):
            pass

        @pytest.mark.kafkalite(broker=3)
        def test_misspelt(fresh_kafkalite):
            pass
        """,
    )
    assert "describes the broker of fresh_kafkalite, which this test does not use" in said
    assert "takes keywords only" in said
    assert "unexpected keyword argument 'broker'" in said


@pytest.mark.parametrize("line", ["num.partitions", "=3", ""])
def test_a_setting_that_is_none_is_named(line: str) -> None:
    with pytest.raises(pytest.UsageError, match=f"{line!r} is not NAME=VALUE"):
        plugin._setting(line)


@pytest.mark.parametrize("line", ["orders:", "orders:many", "orders:-1"])
def test_a_topic_that_is_none_is_named(line: str) -> None:
    with pytest.raises(pytest.UsageError, match=f"{line!r} is not NAME or NAME:PARTITIONS"):
        plugin._topic(line)


def test_a_configuration_that_is_wrong_says_so(tmp_path: Path) -> None:
    ini = "kafkalite_settings = num.partition=3\nkafkalite_brokers = 3"
    said = run_suite(tmp_path, "def test_shared(kafkalite): pass", ini)
    assert "broker 1 of 3 could not start: num.partition: no such setting; the nearest" in said


# --- names, factories, workers, other places ------------------------------------------------------

SHARED = """
    import os

    def test_one(kafkalite, kafkalite_topic, kafkalite_group):
        kafkalite.produce(kafkalite_topic, os.environ["PYTEST_XDIST_WORKER"])
        assert kafkalite.records(kafkalite_topic).one().text
        assert kafkalite_group.startswith(kafkalite_topic)

    def test_two(kafkalite, kafkalite_topic):
        kafkalite.create_topic("seen-by-" + os.environ["PYTEST_XDIST_WORKER"])
        kafkalite.produce("all", "here")

    def test_three(kafkalite, kafkalite_topic):
        kafkalite.produce("all", "here")

    def test_four(kafkalite, kafkalite_topic):
        kafkalite.produce("all", "here")
"""


def test_workers_share_the_broker_of_the_run(tmp_path: Path) -> None:
    suite = SHARED + """
    def test_is_elsewhere(kafkalite):
        assert type(kafkalite).__name__ == "OutsideKafka"
        kafkalite.records("all", count=1, timeout=20)

    def test_needs_control(kafkalite):
        kafkalite.clock.advance(days=1)

    def test_has_its_own(fresh_kafkalite):
        fresh_kafkalite.clock.advance(days=1)
    """
    said = run_suite(tmp_path, suite, "", "-n", "2", "--kafkalite-scope", "run", "-rs")
    assert "6 passed, 1 skipped" in said, said
    assert "`clock` needs a broker in this process" in said


def test_a_broker_of_the_run_that_cannot_start_is_a_mistake_in_the_configuration(tmp_path) -> None:
    options = "kafkalite_scope = run\nkafkalite_settings = num.partition=3"
    said = run_suite(tmp_path, SHARED, options, "-n", "2")
    assert "ERROR: `kafkalite` of the run: the broker could not start: num.partition: no" in said
    assert "INTERNALERROR" not in said


def test_each_worker_has_its_own_broker(tmp_path: Path) -> None:
    suite = SHARED + """
    def test_is_here(kafkalite):
        assert type(kafkalite).__name__ == "EmbeddedKafka"
    """
    said = run_suite(tmp_path, suite, "", "-n", "2")
    assert "5 passed" in said, said


def test_the_same_tests_on_a_kafka_elsewhere(tmp_path: Path) -> None:
    from kafkalite.testing.embedded import EmbeddedKafka

    suite = """
    def test_by_the_protocol(kafkalite, kafkalite_topic):
        kafkalite.produce(kafkalite_topic, "one")
        assert kafkalite.records(kafkalite_topic).one().text == "one"

    def test_needs_control(kafkalite):
        kafkalite.fail("Produce", error="NOT_LEADER_OR_FOLLOWER")

    def test_needs_its_own(fresh_kafkalite):
        assert False, "there is none"

    def test_makes_some(kafkalite_factory):
        assert False, "there are none"
    """
    with EmbeddedKafka() as kafka:
        url = kafka.bootstrap_servers
        said = run_suite(tmp_path, suite, "", f"--kafkalite-url={url}", "-rs")
    assert "1 passed, 3 skipped" in said, said
    assert "`fail` needs a broker in this process" in said
    assert f"needs a broker of its own, and --kafkalite-url says {url}" in said


@pytest.mark.parametrize("url", ["nowhere", "host:port", ""])
def test_an_address_that_is_none_is_said(tmp_path: Path, url: str) -> None:
    suite = "def test_one(kafkalite): pass"
    said = run_suite(tmp_path, suite, "", f"--kafkalite-url={url}")
    assert "expected HOST:PORT" in said, said


def test_a_factory_makes_brokers_that_end_with_the_test(tmp_path: Path) -> None:
    said = run_suite(
        tmp_path,
        """
        import pytest
        made = []

        @pytest.mark.kafkalite(topics=["orders"])
        def test_two(kafkalite_factory):
            one, other = kafkalite_factory(), kafkalite_factory(topics=["payments"], brokers=2)
            one.produce("orders", "a")
            other.produce("payments", "b")
            assert one.records("orders").one().text == "a"
            assert len(other.ports) == 2
            made.extend([one, other])

        def test_ended():
            assert [each.is_running for each in made] == [False, False]
        """,
    )
    assert "2 passed" in said, said


def test_the_report_of_a_failed_test_shows_what_was_said(tmp_path: Path) -> None:
    said = run_suite(
        tmp_path,
        """
        def test_one(kafkalite):
            kafkalite.produce("earlier", "not shown")

        def test_fails(kafkalite):
            with kafkalite.fail("Produce", error="NOT_LEADER_OR_FOLLOWER"):
                kafkalite.produce("orders", "a")
            kafkalite.fail("Produce", error="POLICY_VIOLATION", times=None)
            assert kafkalite.records("orders").one().text == "b"

        def test_goes_on(kafkalite):
            kafkalite.produce("orders", "c")
        """,
    )
    assert "1 failed, 2 passed" in said, said
    assert "what was said to kafkalite" in said
    assert "NOT_LEADER_OR_FOLLOWER" in said
    assert "Fetch" in said
    assert "earlier" not in said


def test_names_of_tests_are_names_of_topics(tmp_path: Path) -> None:
    said = run_suite(
        tmp_path,
        """
        import pytest

        NAMES = ["a/b", "\u00fc", "x" * 300, "\u65e5\u672c", "\u00b2", "", ".", "..", " "]

        @pytest.mark.parametrize("x", NAMES)
        def test_gr\u00f6\u00dfe(kafkalite, kafkalite_topic, kafkalite_group, x):
            kafkalite.produce(kafkalite_topic, "one")
            assert kafkalite.records(kafkalite_topic).one().text == "one"
        """,
        "disable_test_id_escaping_and_forfeit_all_rights_to_community_support = true",
    )
    assert "9 passed" in said


def test_a_test_leaves_the_clock_to_the_next_as_it_was(tmp_path: Path) -> None:
    said = run_suite(
        tmp_path,
        """
        from datetime import UTC, datetime

        def test_freezes(kafkalite):
            kafkalite.clock.freeze(1000)
            kafkalite.clock.advance(days=1)

        def test_next(kafkalite):
            ahead = kafkalite.clock.now - datetime.now(UTC)
            assert 86_390 < ahead.total_seconds() < 86_410
            kafkalite.clock.freeze(1000)
            kafkalite.stop()

        def test_behind_the_stop(kafkalite):
            ahead = kafkalite.clock.now - datetime.now(UTC)
            assert 86_390 < ahead.total_seconds() < 86_410
        """,
    )
    assert "3 passed" in said


def test_the_report_shows_also_what_fixtures_said(tmp_path: Path) -> None:
    said = run_suite(
        tmp_path,
        """
        import pytest

        @pytest.fixture
        def begins(kafkalite):
            kafkalite.create_topic("begun")
            kafkalite.produce("begun", "one")
            assert False

        @pytest.fixture
        def ends(fresh_kafkalite):
            yield
            fresh_kafkalite.produce("ended", "one")
            assert False

        def test_begins(begins):
            pass

        def test_ends(ends):
            pass
        """,
    )
    assert "2 errors" in said
    assert said.count("what was said to kafkalite") == 2
    assert "name=begun" in said
    assert "name=ended" in said
