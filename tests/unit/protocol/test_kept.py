"""Kept code is what was stored, or nothing: never what was made from something else."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafkalite.protocol import kept

# All tests share the directory of kept files, and so do the processes that run them side by side.
MESSAGE = f"NoMessageOfAnySpec{os.getpid()}"


@pytest.fixture
def spec_file(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "no_message.spec"
    path.write_text("message of a test")
    yield path
    kept.file_of(MESSAGE).unlink(missing_ok=True)
    kept.forget()


def test_what_was_stored_is_there_in_the_next_run(spec_file: Path) -> None:
    code = compile("value = 7", "<test>", "exec")
    kept.store(MESSAGE, spec_file, "one", (code, {"name": ("kind", "detail")}))
    kept.store(MESSAGE, spec_file, "two", 2)
    kept.forget()
    found, recipes = kept.load(MESSAGE, spec_file, "one")
    names: dict[str, object] = {}
    exec(found, names)
    assert names["value"] == 7
    assert recipes == {"name": ("kind", "detail")}
    assert kept.load(MESSAGE, spec_file, "two") == 2
    assert kept.load(MESSAGE, spec_file, "three") is None


def test_nothing_is_kept_of_another_spec(spec_file: Path) -> None:
    kept.store(MESSAGE, spec_file, "one", 1)
    spec_file.write_text("message of a test, changed")
    kept.forget()
    assert kept.load(MESSAGE, spec_file, "one") is None
    kept.store(MESSAGE, spec_file, "one", 2)
    kept.forget()
    assert kept.load(MESSAGE, spec_file, "one") == 2


def test_a_damaged_file_is_no_file(spec_file: Path) -> None:
    kept.store(MESSAGE, spec_file, "one", 1)
    whole = kept.file_of(MESSAGE).read_bytes()
    for end in range(len(whole)):
        kept.file_of(MESSAGE).write_bytes(whole[:end])
        kept.forget()
        assert kept.load(MESSAGE, spec_file, "one") is None
    kept.file_of(MESSAGE).write_bytes(b"no marshalled object")
    kept.forget()
    assert kept.load(MESSAGE, spec_file, "one") is None


def test_where_nothing_can_be_written_nothing_is_kept(spec_file: Path) -> None:
    kept.file_of(MESSAGE).mkdir(parents=True)  # in the way of the file
    try:
        kept.store(MESSAGE, spec_file, "one", 1)
        assert kept.load(MESSAGE, spec_file, "one") == 1
        kept.forget()
        assert kept.load(MESSAGE, spec_file, "one") is None
    finally:
        kept.file_of(MESSAGE).rmdir()
