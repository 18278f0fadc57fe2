"""Where a cell of the table ends otherwise in kafkalite than in Apache Kafka, and why."""

from __future__ import annotations

import re
from collections.abc import Callable

from tests.differential.group_cells import Cell

Verdict = list[str]
Lines = list[tuple[str, str]]


def _is_odd_subscription(cell: Cell, lines: Lines) -> bool:
    words = ("zoe join INCONSISTENT_GROUP_PROTOCOL", "zoe join UNKNOWN_SERVER_ERROR")
    return "odd subscription" in cell.act and lines == [words]


def _is_refusal_that_removes(cell: Cell, lines: Lines) -> bool:
    is_act = cell.act == "the consumer's id joins as a classic one"
    is_state = cell.state.startswith("consumer, empty")
    return is_act and is_state and all(
        theirs in ("not listed", "consumer GROUP_ID_NOT_FOUND: Group GROUP not found.")
        and re.match("listed Empty consumer|consumer NONE Empty", ours)
        for ours, theirs in lines
    )  # fmt: skip


def _is_not_written(cell: Cell, lines: Lines) -> bool:
    return lines == [("listed Empty classic ''", "not listed")]


def _is_chance_of_the_assignor(cell: Cell, lines: Lines) -> bool:
    return cell.act == "a consumer comes and goes" and all(
        re.fullmatch(r"\w+ beat NONE \d+( owns some)?", each) for pair in lines for each in pair
    )


def _is_rebalance_made_up_for(cell: Cell, lines: Lines) -> bool:
    is_cut_short = cell.state.startswith((
        "classic, joining", "classic, syncing", "classic, stable, one left",
        "both, the consumer left",
    ))  # fmt: skip
    brings_nothing_new = cell.act in (
        "the classic member's id enters as a consumer",
        "a static consumer comes under a known name",
    )
    return is_cut_short and brings_nothing_new and all(
        _is_an_epoch_later(ours, theirs) for ours, theirs in lines
    )


def _is_an_epoch_later(ours: str, theirs: str) -> bool:
    said = re.compile(r"(\w+ beat|consumer) NONE (Reconciling |Stable )?(\d+)")
    one, other = said.match(ours), said.match(theirs)
    if one is not None and other is not None:
        return one[1] == other[1] and int(one[3]) == int(other[3]) + 1
    listed = "listed Reconciling consumer 'consumer'"
    return (ours, theirs) == (listed, listed.replace("Reconciling", "Stable")) or (
        ours.endswith(" beat REBALANCE_IN_PROGRESS")
        and theirs == ours.replace("REBALANCE_IN_PROGRESS", "NONE")
    )


def _is_chance_of_who_holds_what(cell: Cell, lines: Lines) -> bool:
    """Only in acts of several steps: what one gives back may be what the other is to have."""
    is_act = cell.act.endswith((" follows", " goes on"))
    return is_act and all(_without_shares(one) == _without_shares(other) for one, other in lines)


def _without_shares(line: str) -> str:
    return re.sub(r"has \d+ of| owns some", "", line)


REASONS: dict[str, Callable[[Cell, Lines], bool]] = {
    "a subscription that cannot be read is its sender's mistake, and no unknown one of a server":
        _is_odd_subscription,
    "who is refused changes nothing: Apache Kafka misses the empty group for a moment":
        _is_refusal_that_removes,
    "a group of which nothing is written shows at once; in Apache Kafka with the next record":
        _is_not_written,
    "an upgrade in a rebalance begins an epoch: else nobody may have what was given up":
        _is_rebalance_made_up_for,
    "which member gets back what was to be another's depends on the hashes of ids":
        _is_chance_of_the_assignor,
    "who has to wait for whom depends on the hashes of ids":
        _is_chance_of_who_holds_what,
}  # fmt: skip


def allowed(cell: Cell, ours: Verdict, theirs: Verdict) -> str | None:
    """The reason."""
    if len(ours) != len(theirs):
        return None
    lines = [pair for pair in zip(ours, theirs, strict=True) if pair[0] != pair[1]]
    return next((reason for reason, covers in REASONS.items() if covers(cell, lines)), None)
