"""What is said of addresses and of hosts, and which of it holds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkalite.quotas.connection_rates import ConnectionRates

HERE, THERE = "10.0.0.1", "10.0.0.2"


@pytest.fixture
def rates() -> ConnectionRates:
    return ConnectionRates()


def test_a_host_that_moves_leaves_what_is_said_of_its_new_address(rates: ConnectionRates) -> None:
    rates.set(THERE, 3)
    rates.set("host", 7)
    rates.is_at("host", HERE)
    assert (rates.of(HERE), rates.of(THERE)) == (7, 3)
    rates.is_at("host", THERE)
    assert (rates.of(HERE), rates.of(THERE)) == (None, 3)
    rates.set(THERE, None)
    assert rates.of(THERE) == 7
    rates.set("host", None)
    assert rates.of(THERE) is None


def test_what_is_taken_back_of_a_host_stays_said_of_its_address(rates: ConnectionRates) -> None:
    rates.set("host", 7)
    rates.is_at("host", HERE)
    rates.set(HERE, 3)
    rates.set("host", None)
    rates.is_at("host", HERE)  # looked up too late
    assert rates.of(HERE) == 3


def test_of_two_hosts_the_one_that_was_named_last_counts(rates: ConnectionRates) -> None:
    for host, rate in (("a", 1), ("b", 2), ("a", 3)):
        rates.set(host, rate)
        rates.is_at(host, HERE)
    assert rates.of(HERE) == 3
    rates.set("a", None)
    assert rates.of(HERE) == 2


def test_a_host_that_is_nobody_any_more_holds_for_nobody(rates: ConnectionRates) -> None:
    rates.set(None, 9)
    rates.set("host", 7)
    rates.is_at("host", HERE)
    rates.is_at("host", None)
    assert rates.of(HERE) == 9


ACTS = st.lists(st.tuples(
    st.sampled_from(["a", "b", HERE, THERE, "::ffff:10.0.0.1", "10.2"]),
    st.one_of(st.none(), st.integers(0, 9)),
    st.sampled_from([HERE, THERE, None]),
))  # fmt: skip
NUMBERS = {HERE: HERE, THERE: THERE, "::ffff:10.0.0.1": HERE, "10.2": THERE}


@given(ACTS)
def test_it_is_what_somebody_finds_who_goes_over_all(
    acts: list[tuple[str, int | None, str | None]],
) -> None:
    rates, said = ConnectionRates(), dict[str, tuple[int, str | None]]()
    for host, rate, address in acts:
        rates.set(host, rate)
        said.pop(host, None)
        if rate is not None:
            said[host] = rate, NUMBERS.get(host, address)
        if host not in NUMBERS:
            rates.is_at(host, address)
    for address in (HERE, THERE):
        here = {host: rate for host, (rate, at) in said.items() if at == address}
        of_itself = [rate for host, rate in here.items() if host in NUMBERS]
        assert rates.of(address) == next(reversed(of_itself or [*here.values()]), None)
