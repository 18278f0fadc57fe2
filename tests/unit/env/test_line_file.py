"""Lines that are added to a file by its name, whoever else has it in hand."""

import os
import stat
from pathlib import Path

import pytest

from kafkalite.env.line_file import add


def test_lines_are_added_and_the_file_is_its_owners(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    add(str(path), b"one\n")
    add(str(path), b"two\n")
    assert path.read_bytes() == b"one\ntwo\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_file_that_was_moved_away_is_begun_anew(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    add(str(path), b"one\n")
    path.rename(tmp_path / "audit.log.1")
    add(str(path), b"two\n")
    assert path.read_bytes() == b"two\n"


def test_a_pipe_that_nobody_reads_is_an_error_and_no_wait(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    with pytest.raises(OSError, match="No such device"):
        add(str(path), b"one\n")
