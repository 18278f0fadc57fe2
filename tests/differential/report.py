"""Prints a conversation that differs: each request as data, then where the last answers differ."""

from __future__ import annotations

from typing import Any

from kafkalite.cli._rendering import as_text, plain_message
from tests.differential.batches import Batch
from tests.differential.running import Outcome


def show(outcome: Outcome) -> str:
    lines = []
    for number, step in enumerate(outcome.steps, 1):
        lines.append(f"{number}. {step.api} v{step.version}")
        plain = plain_message(step.request, step.version, _describe)
        lines += [f"   {line}" for line in as_text(plain).splitlines()]
    lines += [str(each) for each in outcome.differences]
    return "\n".join(lines)


def _describe(records: Any) -> Any:
    return repr(records) if isinstance(records, Batch) else len(records)
