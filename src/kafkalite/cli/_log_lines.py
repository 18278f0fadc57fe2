"""What a broker's process says on standard error: lines for people, or a line of JSON each.

Owns the form. In JSON nothing but JSON is said from when the command's words are understood:
`time` (UTC), `level`, `logger`, `message`, and of a failure its `exception` as Python prints it.
"""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime

import click

TEXT, JSON = "text", "json"
_LOG = logging.getLogger("kafkalite")
_FOR_PEOPLE = "%(asctime)s %(levelname)s %(message)s"

log_format_option = click.option(
    "--log-format", "log_format", type=click.Choice([TEXT, JSON]), default=TEXT, show_default=True,
    envvar="KAFKALITE_LOG_FORMAT", help="How the log is written; or in KAFKALITE_LOG_FORMAT.",
)  # fmt: skip


class JsonLines(logging.Formatter):
    """One line each, whatever is in a message."""

    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line = {
            "time": at.replace("+00:00", "Z"), "level": record.levelname, "logger": record.name,
            "message": record.getMessage(),
        }  # fmt: skip
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line)


def begin(log_format: str) -> None:
    """Of the whole process, once; who logs already, as tests do, goes on as before."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if log_format == JSON else logging.Formatter(_FOR_PEOPLE))
    logging.basicConfig(handlers=[handler], level=logging.INFO)


def say(sentence: str) -> None:
    """What people are told beside the log."""
    if any(isinstance(each.formatter, JsonLines) for each in logging.getLogger().handlers):
        _LOG.warning("%s", sentence)
    else:
        click.echo(sentence, err=True)
