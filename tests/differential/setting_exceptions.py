"""Where kafkalite says otherwise to a change of settings than Apache Kafka, and why."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tests.differential.setting_cases import Case

if TYPE_CHECKING:
    from tests.differential.setting_quotas import QuotaCase
    from tests.differential.setting_verdicts import Verdict

INTERVALS = re.compile(r"group\.(consumer|share|streams)\.assignment\.interval\.ms")


def _is_odd_number(case: Case, ours: Verdict, theirs: Verdict) -> bool:
    odd = re.fullmatch(r"\+1|\u0661", case.resource) is not None
    return case.kind == 4 and theirs.is_made and odd


def _is_blank_interval(case: Case, ours: Verdict, theirs: Verdict) -> bool:
    named = any(INTERVALS.fullmatch(name) for name, _, _ in case.steps)
    blank = any(value is not None and value != value.strip() for _, _, value in case.steps)
    return case.kind == 4 and named and blank and ours.is_made and theirs.is_made


def _are_lags(case: Case, ours: Verdict, theirs: Verdict) -> bool:
    message = ours.message or ""
    return case.kind == 4 and message.startswith("log.cleaner.min.compaction.lag.ms (")


def _is_new_listener(case: Case, ours: Verdict, theirs: Verdict) -> bool:
    return "kafkalite opens its listeners when it starts" in (ours.message or "")


def _is_java_pattern(case: Case, ours: Verdict, theirs: Verdict) -> bool:
    return case.kind == 16 and any(
        name == "match" and value is not None and re.search(r"[(\\\[{*+]", value)
        for name, _, value in case.steps
    )


def _are_several(case: Case | QuotaCase, ours: Verdict, theirs: Verdict) -> bool:
    return len(case.steps) > 1 and ours.code == theirs.code != 0


def _is_of_its_broker(case: Case, ours: Verdict, theirs: Verdict) -> bool:
    named = re.search(r"for configuration ([\w.]+):", theirs.message or "")
    if case.kind != 2 or not ours.is_made or named is None:
        return False
    return named[1] not in {name for name, _, _ in case.steps}


Row = tuple[str, Callable[[Any, "Verdict", "Verdict"], bool]]
SEVERAL: Row = (
    "of several bad values one is named, and which is Java's order of hashes",
    _are_several,
)
ALLOWED: tuple[Row, ...] = (
    (
        "a broker's number is written in ASCII and without a sign: what is set for another text "
        "has no effect in Apache Kafka",
        _is_odd_number,
    ),
    (
        "blanks around an assignment interval make Apache Kafka ignore all dynamic settings",
        _is_blank_interval,
    ),
    (
        "Apache Kafka takes compaction lags that contradict each other, and then refuses every "
        "change of a topic",
        _are_lags,
    ),
    (
        "listeners are opened at the start only, so a new one is refused and not promised",
        _is_new_listener,
    ),
    SEVERAL,
    (
        "a broker's setting that no topic may have keeps no other setting of a topic from changing",
        _is_of_its_broker,
    ),
    ("patterns of subscriptions are read in Python's dialect so far", _is_java_pattern),
)


def allowed(case: Case | QuotaCase, ours: Verdict, theirs: Verdict) -> str | None:
    """Why the two may differ, None where they may not."""
    rows = ALLOWED if isinstance(case, Case) else (SEVERAL,)
    return next((why for why, holds in rows if holds(case, ours, theirs)), None)
