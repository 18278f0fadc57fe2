"""ListTransactions: every id of this coordinator, and the filters over them."""

from __future__ import annotations

from typing import Any

import pytest

from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import ListTransactionsRequest
from tests.unit.handlers.whole_broker import WholeBroker
from tests.unit.handlers.writer import Writer, writer


def ask(broker: WholeBroker, version: int = 2, **filters: Any) -> Any:
    return broker.ask(ListTransactionsRequest(**filters), version)


def listed(broker: WholeBroker, version: int = 2, **filters: Any) -> list[str]:
    answer = ask(broker, version, **filters)
    assert answer.error_code == 0
    return sorted(one.transactional_id for one in answer.transaction_states)


@pytest.fixture
def three(broker: WholeBroker) -> dict[str, Writer]:
    """An id that never began, one with an open transaction, one that committed."""
    made = {name: writer(broker, name) for name in ("app-idle", "app-open", "other-done")}
    made["app-open"].write(b"a")
    made["other-done"].transact(b"b", commit=True)
    return made


def test_nobody(broker: WholeBroker) -> None:
    assert listed(broker) == []


@pytest.mark.parametrize("version", range(3))
def test_all_of_them_with_their_states(
    broker: WholeBroker, three: dict[str, Writer], version: int
) -> None:
    found = {one.transactional_id: one for one in ask(broker, version).transaction_states}
    assert {name: one.transaction_state for name, one in found.items()} == {
        "app-idle": "Empty", "app-open": "Ongoing", "other-done": "CompleteCommit",
    }  # fmt: skip
    for name, who in three.items():
        assert found[name].producer_id == who.producer_id


def test_by_state(broker: WholeBroker, three: dict[str, Writer]) -> None:
    assert listed(broker, state_filters=["Ongoing"]) == ["app-open"]
    assert listed(broker, state_filters=["Ongoing", "Empty"]) == ["app-idle", "app-open"]


def test_a_state_that_nobody_knows_is_told_back(
    broker: WholeBroker, three: dict[str, Writer]
) -> None:
    answer = ask(broker, state_filters=["Ongoing", "Sleeping"])
    assert answer.unknown_state_filters == ["Sleeping"]
    assert [one.transactional_id for one in answer.transaction_states] == ["app-open"]
    answer = ask(broker, state_filters=["Sleeping"])
    assert (answer.error_code, answer.transaction_states) == (0, [])


def test_by_producer_id(broker: WholeBroker, three: dict[str, Writer]) -> None:
    wanted = three["app-idle"].producer_id
    assert listed(broker, producer_id_filters=[wanted, 999]) == ["app-idle"]
    assert listed(broker, producer_id_filters=[wanted], state_filters=["Ongoing"]) == []


def test_by_duration(broker: WholeBroker, three: dict[str, Writer]) -> None:
    broker.clock.advance(1_000)
    assert "app-open" in listed(broker, duration_filter=999)
    assert "app-open" not in listed(broker, duration_filter=1_000)


def test_by_pattern_of_the_whole_id(broker: WholeBroker, three: dict[str, Writer]) -> None:
    assert listed(broker, transactional_id_pattern="app-.*") == ["app-idle", "app-open"]
    assert listed(broker, transactional_id_pattern="app") == []
    assert len(listed(broker, transactional_id_pattern="")) == 3


def test_what_is_no_pattern(broker: WholeBroker, three: dict[str, Writer]) -> None:
    answer = ask(broker, transactional_id_pattern="app-(")
    assert answer.error_code == Error.INVALID_REGULAR_EXPRESSION


@pytest.mark.parametrize("pattern", ["(?=app).*", "(?!x).*", r"(a)\1", "a{1001}"])
def test_what_a_linear_engine_cannot_do_is_refused(broker: WholeBroker, pattern: str) -> None:
    answer = ask(broker, transactional_id_pattern=pattern)
    assert answer.error_code == Error.INVALID_REGULAR_EXPRESSION


def test_a_pattern_that_would_explode_holds_nobody(broker: WholeBroker) -> None:
    writer(broker, "a" * 40 + "!")
    assert listed(broker, transactional_id_pattern="(a+)+$") == []
    assert listed(broker, transactional_id_pattern="(a|aa)+!") == ["a" * 40 + "!"]


def test_patterns_are_of_the_dialect_of_apache_kafka(broker: WholeBroker) -> None:
    for name in ("äb", "12", "١", "a.b"):
        writer(broker, name)
    assert listed(broker, transactional_id_pattern=r"\pL+") == ["äb"]
    assert listed(broker, transactional_id_pattern=r"\d+") == ["12"]
    assert listed(broker, transactional_id_pattern=r"\Qa.b\E") == ["a.b"]
    assert listed(broker, transactional_id_pattern="(?<n>1)[[:digit:]]") == ["12"]
