"""What checkpoints tell of logs that are gone, taken back before others have their places.

Owns the order of it: a checkpoint without them lasts before the files of the next log are made, or
where the one before began, say, would be said of it. Off the event loop, but for a start.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from kafkalite.log.checkpoints import TopicPartition
from kafkalite.log.directory import LogDirectory
from kafkalite.log.home import LogHome
from kafkalite.log.log_table import LogTable
from kafkalite.log.making import Made, NewLog


def forget(
    logs: LogTable, new: Sequence[NewLog], then: Callable[[set[LogHome]], None]
) -> None:
    """`then` is told in which directories a checkpoint cannot be written."""
    left: list[tuple[LogDirectory, list[TopicPartition]]] = []
    for directory in logs.directories:
        keys = [(each.topic, each.partition) for each in new if each.home is directory.home]
        if keys and directory.may_tell_of(keys):
            left.append((directory, keys))
    _forget_in(logs, left, set(), then)


def _forget_in(
    logs: LogTable,
    left: list[tuple[LogDirectory, list[TopicPartition]]],
    refusing: set[LogHome],
    then: Callable[[set[LogHome]], None],
) -> None:
    if not left:
        then(refusing)
        return
    directory, keys = left.pop()

    def forgotten(is_done: bool) -> None:
        if not is_done:
            refusing.add(directory.home)
        _forget_in(logs, left, refusing, then)

    directory.forget_later(keys, partial(logs.offsets, directory), forgotten)


def make_now(logs: LogTable, new: NewLog) -> Made:
    """The files of a log, however long that takes."""
    directory = next(each for each in logs.directories if each.home is new.home)
    try:
        directory.forget_now((new.topic, new.partition), partial(logs.offsets, directory))
    except OSError as error:
        return error
    return new.make_files()
