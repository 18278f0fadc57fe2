"""Changes of settings, asked of kafkalite and Apache Kafka side by side: a sample of those that
`python -m tests.differential.settings` asks. Nothing is changed for the brokers themselves, which
other tests share: what would be done to them is only judged."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.compat import brokers
from tests.differential.setting_cases import BROKER, Case, all_cases
from tests.differential.setting_quotas import quota_cases
from tests.differential.setting_verdicts import Judge, Pair, Verdict
from tests.differential.settings import Asker, Tally, ask_each, ask_quotas

SECONDS, CASES, QUOTAS = 12, 1500, 60
# They name addresses, which the two shared brokers do not have alike.
OF_ADDRESSES = ("listeners", "listener.security.protocol.map", "cordoned.log.dirs")


@pytest.fixture(scope="module")
def pair(run_folder: Path) -> Iterator[Pair]:
    shared = [brokers.shared(kind, run_folder) for kind in brokers.BROKERS]
    askers = [Asker(each.host, each.port) for each in shared]
    yield Pair(*(Judge(each, {}) for each in askers))
    for each in askers:
        each.close()


def a_sample() -> list[Case]:
    cases = [case for case in all_cases() if case.steps[0][0] not in OF_ADDRESSES]
    return [
        replace(case, validate_only=True) if case.kind == BROKER else case
        for case in random.Random("sample").sample(cases, CASES)
    ]


def test_changes_of_settings_are_judged_alike(pair: Pair) -> None:
    tally = Tally()
    ask_each(pair, a_sample(), SECONDS, tally)
    assert not tally.differing, "\n".join(tally.told)
    assert sum(tally.asked.values()) > CASES / 5, f"too few were asked\n{tally}"


def test_client_quotas_are_judged_alike(pair: Pair) -> None:
    tally = Tally()
    ask_quotas(pair, tally, random.Random("sample").sample(list(quota_cases()), QUOTAS))
    assert not tally.differing, "\n".join(tally.told)
    assert sum(tally.asked.values()) == QUOTAS


class Liar(Judge):
    """Takes whatever it is asked."""

    def alter(self, case: Case) -> Verdict:
        super().alter(case)
        return Verdict(0, None)


def test_a_planted_difference_is_found(pair: Pair) -> None:
    tally = Tally()
    lied_to = Pair(Liar(pair.ours.broker, {}), pair.theirs)
    ask_each(lied_to, [case for case in a_sample()[:100] if case.validate_only], SECONDS, tally)
    assert tally.differing["broker"] > 10
    assert tally.exit_code == 1


def test_that_nothing_was_asked_is_no_success() -> None:
    assert Tally().exit_code == 1
