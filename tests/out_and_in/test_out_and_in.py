"""A sample of `python -m tests.out_and_in`, and that it would see what it looks for."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.out_and_in.complaints import complaints
from tests.out_and_in.directory import INITIAL, Format, java_tools
from tests.out_and_in.rounds import Round, differences, run

pytestmark = pytest.mark.compat


@pytest.mark.timeout(240)
def test_a_directory_goes_out_and_comes_back_in_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "classes").mkdir()
    with java_tools(tmp_path / "classes") as tools:
        outcome = run(
            1, tmp_path / "round", tools, lambda _: None, Format(INITIAL, "4.2", False, 3)
        )
    assert outcome.findings == []
    assert outcome.is_good
    assert len(outcome.switches) >= 3


def test_a_difference_in_any_answer_is_found() -> None:
    before = {"topics": {"a": 1, "b": 2}, "groups": {}}
    assert differences(before, {"topics": {"a": 1, "b": 2}, "groups": {}}) == []
    for after in (
        {"topics": {"a": 1, "b": 3}, "groups": {}},
        {"topics": {"a": 1}, "groups": {}},
        {"topics": {"a": 1, "b": 2}, "groups": {"new": 1}},
        {"topics": {"a": 1, "b": 2}},
    ):
        assert len(differences(before, after)) == 1, after


def test_a_round_that_compared_nothing_is_no_good_round() -> None:
    outcome = Round(1, Format(INITIAL, "4.2", is_finalized=False, log_dirs=1))
    assert not outcome.is_good
    outcome.switches.append("k stop")
    assert not outcome.is_good


def test_warnings_and_errors_are_found_but_for_those_with_a_reason() -> None:
    log = (
        "2026-11-19 04:41:26,806 ERROR kafka.Kafka$ Exiting Kafka due to fatal exception\n"
        "java.lang.RuntimeException: of a stack\n"
        "2026-11-19 04:41:26,806 INFO nothing to see\n"
        "2026-11-19 04:41:26,806 WARNING process.roles has no effect: there is one role\n"
        "2026-11-19 04:41:26,820 ERROR o.a.k.c.c.r.CoordinatorRuntime [GroupCoordinator id=1] "
        "Failed to load metadata from __consumer_offsets-0 with epoch 1 due to Stopped loading"
        " records from __consumer_offsets-0 because the partition is not online or is no longer the"
        " leader..\n"
        "2026-11-19 04:41:26,821 ERROR o.a.k.c.c.r.CoordinatorRuntime [GroupCoordinator id=1] "
        "Failed to load metadata from __consumer_offsets-0 with epoch 1 due to Unknown record"
        " type\n"
        "2026-11-19 04:41:26,806 WARNING set aside as -stray\n"
    )
    assert [line[24:] for line in complaints(log)] == [
        "ERROR kafka.Kafka$ Exiting Kafka due to fatal exception",
        "ERROR o.a.k.c.c.r.CoordinatorRuntime [GroupCoordinator id=1] Failed to load metadata from"
        " __consumer_offsets-0 with epoch 1 due to Unknown record type",
        "WARNING set aside as -stray",
    ]
