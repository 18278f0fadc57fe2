"""The supervisor of a cluster's processes: all end, also one that does not."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from kafkalite.cli import _supervisor
from kafkalite.cli._banner import READY
from kafkalite.cli._members import members_of
from kafkalite.cli._signals import ENDING, hang_ups

SERVES = """
import signal, sys
if {is_deaf}:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
print({line!r}, flush=True)
sys.stdin.read()
"""


def stand_in(process: _supervisor._Process) -> subprocess.Popen[bytes]:
    """Serves at once; broker 2 does not hear that it is to stop."""
    node_id = process.member.node_id
    line = READY[0].format(node=node_id)
    script = SERVES.format(is_deaf=node_id == 2, line=line)
    return subprocess.Popen(
        [sys.executable, "-c", script],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


@pytest.mark.parametrize("number", [signal.SIGTERM, *hang_ups()])
def test_one_that_does_not_stop_is_killed(
    number: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    def start(process: _supervisor._Process) -> None:
        process.running = stand_in(process)

    monkeypatch.setattr(_supervisor._Process, "start", start)
    monkeypatch.setattr(_supervisor, "STOP_S", 0.5)
    before = {each: signal.getsignal(each) for each in (*ENDING, *hang_ups())}
    members = members_of(2, "127.0.0.1", 9092, str(tmp_path), {})
    supervisor = _supervisor.Supervisor(members, ())
    monkeypatch.setattr(supervisor, "_show_banner", lambda: os.kill(os.getpid(), number))
    rescue = threading.Timer(10, lambda: os.kill(os.getpid(), signal.SIGTERM))
    rescue.start()
    try:
        assert supervisor.run() == 1
    finally:
        rescue.cancel()
        for each, handler in before.items():
            signal.signal(each, handler)
    assert "[broker 2] does not stop within 0.5 s, and is killed" in capfd.readouterr().err
