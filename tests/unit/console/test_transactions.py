"""Transactions that are asked for one by one: not for longer than a page can wait."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from kafkalite.client import transactions as asked
from kafkalite.client.cluster import TryAgain
from kafkalite.client.transactions import Listed
from kafkalite.console import transactions
from kafkalite.console.given import Given
from kafkalite.console.transactions import MOST_SECONDS, PATIENCE_SECONDS

MANY = 50


def test_a_coordinator_that_is_away_is_not_waited_for_once_more_for_each(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now_s = [100.0]

    def away(admin: Any, name: str) -> None:
        now_s[0] += PATIENCE_SECONDS
        raise TryAgain("nobody answers")

    rows = [Listed(f"t{each}", 1, each, "Ongoing") for each in range(MANY)]
    monkeypatch.setattr(transactions, "time", SimpleNamespace(monotonic=lambda: now_s[0]))
    monkeypatch.setattr(asked, "listed", lambda *given: iter(rows))
    monkeypatch.setattr(asked, "described", away)
    found = transactions.listed(None, Given({}))  # type: ignore[arg-type]
    assert [each["state"] for each in found["transactions"]] == ["Ongoing"] * MANY
    assert now_s[0] - 100 < MOST_SECONDS + PATIENCE_SECONDS
