"""Every change of a dynamic setting is judged as Apache Kafka judged it: held to a recorded table.

The table is written by `python -m tests.differential.settings --record`, from what a running Apache
Kafka said and showed.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.compat.brokers import COMMON
from tests.differential.setting_cases import Case, dynamic_settings
from tests.differential.setting_exceptions import allowed
from tests.differential.setting_record import recorded
from tests.differential.setting_verdicts import Judge, Verdict
from tests.unit.handlers.world import World

LISTENERS = "PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}"
LOCAL = {"{dir}": "/1/a", "{port}": "39092", "{controller}": "39093"}
KINDS = {"topics": 2, "brokers": 4, "client metrics": 16, "groups": 32}
TABLE = list(recorded())
# One of so many cases of brokers' settings is enough for every day.
SHARE = 5


@pytest.fixture(scope="module")
def judge() -> Iterator[Judge]:
    listeners = LISTENERS.replace("{port}", "39092").replace("{controller}", "39093")
    world = World(settings={**COMMON, "listeners": listeners})
    judge = Judge(world, LOCAL)
    judge.make_topic()
    judge.put_back(Case(4, "", ()))
    yield judge
    world.close()


def compare(judge: Judge, cases: list[tuple[Case, Verdict]]) -> None:
    """Every case that is told differently without a reason, together."""
    differing = []
    for case, theirs in cases:
        ours = judge.judge(case)
        if ours != theirs and allowed(case, ours, theirs) is None:
            differing.append((str(case), ours, theirs))
    asked = len(cases)
    assert not differing, f"{len(differing)} of {asked} differ, the first: {differing[:3]}"
    assert asked > 200, "too few to prove anything"


@pytest.mark.parametrize("kind", list(KINDS))
def test_says_what_apache_kafka_says(judge: Judge, kind: str) -> None:
    cases = [each for each in TABLE if each[0].kind == KINDS[kind]]
    compare(judge, cases[:: SHARE if kind == "brokers" else 1])


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_says_of_every_broker_setting_what_apache_kafka_says(judge: Judge) -> None:
    compare(judge, [each for each in TABLE if each[0].kind == KINDS["brokers"]])


def test_the_table_has_every_dynamic_setting() -> None:
    """One that is added to the tables of settings is recorded as well."""
    named = {(case.kind, case.resource, name) for case, _ in TABLE for name, _, _ in case.steps}
    missing = [
        (kind, resource, setting.name)
        for kind, resource, setting in dynamic_settings()
        if (kind, resource, setting.name) not in named
    ]
    assert not missing
