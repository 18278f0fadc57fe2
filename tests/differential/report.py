"""Prints what was found: a conversation that differs, and which versions were asked how often."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kafkalite.client.rendering import as_text, plain_message
from tests.differential.batches import Batch
from tests.differential.pieces import Piece
from tests.differential.running import Outcome


def show(outcome: Outcome) -> str:
    """Each request as data, then where the last answers differ."""
    lines = []
    for number, step in enumerate(outcome.steps, 1):
        lines.append(f"{number}. {step.api} v{step.version}")
        plain = plain_message(step.request, step.version, _describe)
        lines += [f"   {line}" for line in as_text(plain).splitlines()]
    lines += [str(each) for each in outcome.differences]
    return "\n".join(lines)


def _describe(records: Any) -> Any:
    return repr(records) if isinstance(records, Batch) else len(records)


def show_piece(piece: Piece, served: Mapping[str, range]) -> None:
    print(table(piece.asked, served))
    for line in piece.ledger.lines():
        print(line)
    for reason, count in piece.allowed.most_common():
        print(f"{count:6} allowed: {reason}")
    for (api, path), count in piece.unexplained.most_common():
        print(f"{count:6} unexplained: {api} {path}")
    for (api, path), count in piece.unconfirmed.most_common():
        print(f"{count:6} seen once and not when it was repeated: {api} {path}")
    if piece.acts:
        print(f"{piece.acts.total()} acts: {dict(sorted(piece.acts.items()))}")
    print(piece, flush=True)


def table(asked: Mapping[tuple[str, int], int], served: Mapping[str, range]) -> str:
    """A row for each API that both brokers serve: how often each version was asked."""
    lines = []
    for api, versions in served.items():
        counts = " ".join(f"v{each}:{asked.get((api, each), 0)}" for each in versions)
        lines.append(f"{api:32} {counts}")
    total = sum(map(len, served.values()))
    missing = [f"{api} v{each}" for api, versions in served.items() for each in versions
               if (api, each) not in asked]
    lines.append(f"{total - len(missing)} of {total} versions that both serve were asked")
    return "\n".join(lines)
