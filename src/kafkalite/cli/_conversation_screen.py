"""Shows what clients and brokers say to each other: a headline and the fields, coloured on a
terminal."""

from __future__ import annotations

import errno
import sys
from datetime import UTC, datetime

from rich.console import Console
from rich.text import Text

from kafkalite.cli._frames import describe_records
from kafkalite.client.rendering import as_text, plain_bytes, plain_message
from kafkalite.testing.recording.trace import REQUEST, Said


class _Out(Console):
    def on_broken_pipe(self) -> None:
        """The writer's to handle; rich would end the program."""
        raise BrokenPipeError(errno.EPIPE, "nobody reads what is printed")


# Wide when nobody looks, so that a pipe gets whole lines.
OUT = _Out() if sys.stdout.isatty() else _Out(width=160, soft_wrap=True)
ERR = _Out(stderr=True)
_ARROWS = {True: ("→", "cyan"), False: ("←", "green")}


def show(said: Said) -> None:
    arrow, colour = _ARROWS[said.kind == REQUEST]
    when = datetime.fromtimestamp(said.time_ms / 1000, UTC).strftime("%H:%M:%S.%f")[:-3]
    what = "?" if said.api is None else f"{said.api} v{said.version}"
    line = Text.assemble(
        (when, "dim"), f" {said.connection} ", (f"{arrow} {what}", f"bold {colour}"),
        (f"  {said.broker} #{said.correlation_id} {said.client_id or ''}", "dim"),
    )
    OUT.print(line, soft_wrap=True)
    OUT.print(_body(said), soft_wrap=True)


def _body(said: Said) -> Text:
    if said.message is None:
        return Text(f"    {said.reason}: {plain_bytes(said.frame)}", style="red")
    assert said.version is not None
    plain = plain_message(said.message, said.version, describe_records)
    lines = as_text(plain).splitlines() if plain else []
    text = Text("\n".join(f"    {line}" for line in lines))
    text.highlight_regex(r"(?m)^ *-? *([a-z_0-9]+:)", "dim")
    text.highlight_regex(r'error_code: "(?!NONE)\w+"', "bold red")
    return text
