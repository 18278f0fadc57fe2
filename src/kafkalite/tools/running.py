"""Starts a tool, and what all tools have in common at their beginning and end."""

from __future__ import annotations

import os
import signal
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from kafkalite.tools.failures import Failure, WrongUse
from kafkalite.tools.options import VERSION, Given
from kafkalite.tools.streams import lose_what_cannot_be_written, take_up
from kafkalite.tools.table import CLASSES, MODULES

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_KILLED = 128  # and the number of the signal


class Ended(KeyboardInterrupt):
    """By a signal: what has begun is brought to its end."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.code = _KILLED + number


def program(words: Sequence[str]) -> int:
    """A process that is a tool: as Java's, it goes on without who reads it, and takes words that
    are no UTF-8."""
    if not sys.warnoptions:
        warnings.simplefilter("ignore")  # of patterns that Java takes otherwise
    take_up()
    lose_what_cannot_be_written()
    for number in _ENDING:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, _end)
    return main([os.fsencode(word).decode(errors="replace") for word in words])


def _end(number: int, _: Any) -> None:
    """A signal that was sent to the process and to its group comes twice."""
    for each in _ENDING:
        signal.signal(each, signal.SIG_IGN if each == number else signal.SIG_DFL)
    raise Ended(number)


def main(words: Sequence[str]) -> int:
    """Runs the tool that the first word names, by the name of its script or of its class."""
    name = _name_of(words[0]) if words else None
    if name is None:
        print(f"kafkalite.tools: no such tool; there are {', '.join(MODULES)}", file=sys.stderr)
        return 2
    tool = import_module(f"kafkalite.tools.{MODULES[name]}")
    try:
        code: int = tool.main(list(words[1:]))
    except Ended as ended:
        code = ended.code
    sys.stdout.flush()
    return code


def _name_of(word: str) -> str | None:
    by_class = {each: name for name, each in CLASSES.items()}
    name = by_class.get(word, word.rpartition("/")[2].removesuffix(".sh"))
    return name if name in MODULES else None


def begin(given: Given, words: Sequence[str], about: str) -> int | None:
    """Reads the words. The exit code when they ask for no more than the version; a wrong use when
    there are none, or for help."""
    if not words:
        raise WrongUse(about)
    return help_or_version(given.read(words), about)


@contextmanager
def wrong_words() -> Iterator[None]:
    """Words that cannot be read are a wrong use, and no failure."""
    try:
        yield
    except Failure as failure:
        raise WrongUse(failure.message) from failure


def help_or_version(given: Given, about: str) -> int | None:
    """The exit code when only that is asked for."""
    if given.has("help"):
        raise WrongUse(about)
    if given.has("version"):
        print(VERSION)
        return 0
    return None


def tell(message: str) -> None:
    """On standard error, behind what was written to standard output."""
    sys.stdout.flush()
    print(message, file=sys.stderr, flush=True)


def print_table(rows: Sequence[Sequence[str]]) -> None:
    """In columns, with a tab behind each."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print("".join(f"{cell:{width}}\t" for cell, width in zip(row, widths, strict=True)))


def tell_use(wrong: WrongUse, given: Given) -> int:
    """What is wrong with the words, and the help."""
    from kafkalite.tools import help

    tell(f"{wrong}\n{help.text(given.options)}".removesuffix("\n"))
    return 1


def tell_uncaught(failure: Failure) -> int:
    """As Java ends when a tool leaves an exception to it."""
    tell(f'Exception in thread "main" {failure.stack()}'.removesuffix("\n"))
    return 1


def tell_error(message: str, failure: Failure | None = None) -> None:
    """An error on standard output, and its stack on that of errors."""
    print(f"\nError: {message}")
    if failure is not None:
        tell(failure.stack().removesuffix("\n"))


def tell_failure(failure: Failure) -> int:
    """A failure's message and its stack, as most tools end."""
    tell(failure.message)
    tell(failure.stack())
    return 1


def log(level: str, message: str, name: str) -> None:
    """A line of a tool's own log, as Apache Kafka's configuration for tools prints it."""
    from datetime import UTC, datetime

    now = datetime.now(UTC).astimezone()
    moment = f"{now:%Y-%m-%d %H:%M:%S},{now.microsecond // 1000:03}"
    tell(f"[{moment}] {level} {message} ({CLASSES.get(name, name)})")
