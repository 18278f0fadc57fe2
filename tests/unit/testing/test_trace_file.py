"""The file of a trace: whole lines on a full disk, and an older trace until there is a new one."""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from kafkalite.testing.recording import scribe as scribes
from kafkalite.testing.recording.said import Said
from kafkalite.testing.recording.scribe import Scribe
from kafkalite.testing.recording.trace_file import TraceFile

OLDER = "an older trace\n"


def said(text: str, frame: bytes = b"") -> Said:
    return Said("request", 1, 1, "h:1", None, reason=text, frame=frame)


def trace_file(path: Path | str) -> TraceFile:
    return TraceFile(str(path), lambda said: said.reason)


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """What goes beyond is refused, after as much of it as fits: as on a full disk."""
    old_limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    old_handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, old_limit[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old_limit)
        signal.signal(signal.SIGXFSZ, old_handler)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "trace.jsonl"
    path.write_text(OLDER)
    return path


def test_an_older_trace_stays_until_there_is_a_line(path: Path) -> None:
    file = trace_file(path)
    assert path.read_text() == OLDER
    file.write(said("first"))
    assert path.read_text() == "first\n"
    file.write(said("second"))
    assert path.read_text() == "first\nsecond\n"
    file.close()
    assert os.listdir(path.parent) == [path.name]


def test_an_older_trace_stays_when_nothing_was_said(path: Path) -> None:
    trace_file(path).close()
    assert path.read_text() == OLDER


def test_an_older_trace_stays_when_there_is_no_room_for_the_first_line(path: Path) -> None:
    file = trace_file(path)
    with largest_file(10), pytest.raises(OSError, match="File too large"):
        file.write(said("a line that is longer"))
    file.close()
    assert path.read_text() == OLDER
    assert os.listdir(path.parent) == [path.name]


def test_a_full_disk_leaves_whole_lines(path: Path) -> None:
    file = trace_file(path)
    with largest_file(10):
        file.write(said("12345"))
        with pytest.raises(OSError, match="File too large"):
            file.write(said("123456789"))
        assert path.read_text() == "12345\n"
    file.close()


def test_a_link_leads_to_the_file(path: Path) -> None:
    link = path.with_name("link")
    link.symlink_to(path)
    file = trace_file(link)
    file.write(said("line"))
    file.close()
    assert link.is_symlink()
    assert path.read_text() == "line\n"


def test_an_older_trace_stays_until_a_line_lasts(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[str] = []
    sync, replace = os.fsync, os.replace

    def noted(name: str, call: Callable[..., None]) -> Callable[..., None]:
        def calling(*words: Any) -> None:
            order.append(name)
            call(*words)

        return calling

    monkeypatch.setattr(os, "fsync", noted("sync", sync))
    monkeypatch.setattr(os, "replace", noted("replace", replace))
    file = trace_file(path)
    file.write(said("first"))
    file.close()
    assert order == ["sync", "replace", "sync"]


def test_any_name_of_a_file_will_do(tmp_path: Path) -> None:
    """Also one so long that nothing may be added to it."""
    for name in ("n" * 255, "-", "ä b\n%", ".jsonl"):
        path = tmp_path / name
        path.write_text("older")
        file = trace_file(path)
        file.write(said("first"))
        file.close()
        assert path.read_text() == "first\n"
    assert len(list(tmp_path.iterdir())) == 4


def test_a_pipe_is_written_to_as_it_is(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()))
    reader.start()
    file = trace_file(pipe)
    file.write(said("line"))
    file.close()
    reader.join()
    assert read == ["line\n"]


def test_a_folder_that_is_not_there_is_told_before_anything_is_said(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="there is no folder"):
        trace_file(tmp_path / "nowhere" / "trace")


# --- the thread -----------------------------------------------------------------------------------


def test_all_that_was_heard_is_written_in_order() -> None:
    written: list[str] = []
    scribe = Scribe(lambda said: written.append(said.reason), written.append)
    for number in range(1000):
        scribe.hear(said(str(number)))
    scribe.close()
    assert written == [str(number) for number in range(1000)]
    assert (scribe.heard, scribe.written, scribe.failure) == (1000, 1000, None)


TROUBLES = [OSError(28, "No space left on device"), ValueError("odd"), RecursionError("deep")]


@pytest.mark.parametrize("trouble", TROUBLES)
def test_a_failure_is_told_once_and_what_is_counted_was_written(trouble: Exception) -> None:
    told: list[str] = []

    def write(said: Said) -> None:
        if int(said.reason) >= 3:
            raise trouble

    scribe = Scribe(write, told.append)
    for number in range(10):
        scribe.hear(said(str(number)))
    scribe.close()
    assert (scribe.heard, scribe.written) == (10, 3)
    [text] = told
    assert str(getattr(trouble, "strerror", None) or trouble) in text


def test_a_pipe_that_nobody_reads_does_not_keep_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scribes, "STUCK_SECONDS", 0.2)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    told: list[str] = []
    file = trace_file(pipe)
    scribe = Scribe(file.write, told.append)
    scribe.hear(said("first"))
    scribe.close()
    assert (scribe.heard, scribe.written) == (1, 0)
    assert scribe.failure is not None
    assert told == [scribe.failure]
    reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)  # lets the thread go
    scribe._thread.join(5)
    os.close(reading)
    file.close()


def test_a_slow_writer_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scribes, "STUCK_SECONDS", 0.2)
    scribe = Scribe(lambda _: time.sleep(0.05), print)
    for number in range(12):
        scribe.hear(said(str(number)))
    scribe.close()
    assert (scribe.written, scribe.failure) == (12, None)


def test_who_speaks_waits_while_much_is_to_be_written() -> None:
    gate = threading.Event()

    def write(_: Said) -> None:
        gate.wait()

    scribe = Scribe(write, print)

    async def speak() -> None:
        await scribe.room()
        frame = bytes(scribes.WAITING_BYTES)
        for _ in range(2):
            scribe.hear(said("large", frame))
        waiting = asyncio.create_task(scribe.room())
        await asyncio.sleep(0.01)
        assert not waiting.done()
        gate.set()
        await asyncio.wait_for(waiting, 5)

    asyncio.run(speak())
    scribe.close()
    assert scribe.written == 2
