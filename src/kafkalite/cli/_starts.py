"""Where in a topic something begins, as people type it."""

from __future__ import annotations

import re
from datetime import datetime
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from kafkalite.client.consuming import Start


WHERE = (
    "beginning, end, an offset, -N (the last N of each partition), or @TIME: milliseconds since "
    "1970, or 2026-01-31T12:00:00+01:00."
)


def begin_at(text: str, option: str) -> Start:
    """BadParameter says what it is not."""
    from kafkalite.client.consuming import EARLIEST, LATEST, Start

    text = text.removeprefix("s") if text.startswith("s@") else text  # as kcat has it
    if text in ("beginning", "earliest"):
        return Start(timestamp=EARLIEST)
    if text in ("end", "latest"):
        return Start(timestamp=LATEST)
    if text.startswith("@"):
        return Start(timestamp=_milliseconds(text[1:], option))
    if re.fullmatch(r"-?[0-9]{1,18}", text):
        return Start(offset=int(text)) if text != "-0" else Start(timestamp=LATEST)
    raise click.BadParameter(
        f"{text!r} is none of beginning, end, an offset, -N and @TIME", param_hint=option
    )


def _milliseconds(text: str, option: str) -> int:
    if re.fullmatch(r"[0-9]{1,18}", text):
        return int(text)
    try:
        return max(round(datetime.fromisoformat(text).timestamp() * 1000), 0)
    except ValueError:
        raise click.BadParameter(
            f"@{text}: expected milliseconds since 1970, or a time such as "
            "2026-01-31T12:00:00+01:00 (without a zone: this machine's)", param_hint=option,
        ) from None  # fmt: skip
