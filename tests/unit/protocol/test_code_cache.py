"""Kept code is what was stored, or nothing: never what was made from something else."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafkalite.protocol import code_cache

# All tests share the directory of kept files, and so do the processes that run them side by side.
MESSAGE = f"NoMessageOfAnySpec{os.getpid()}"


@pytest.fixture
def spec_file(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "no_message.spec"
    path.write_text("message of a test")
    yield path
    code_cache.file_of(MESSAGE).unlink(missing_ok=True)
    code_cache.forget()


def test_what_was_stored_is_there_in_the_next_run(spec_file: Path) -> None:
    code = compile("value = 7", "<test>", "exec")
    code_cache.store(MESSAGE, spec_file, "one", (code, {"name": ("kind", "detail")}))
    code_cache.store(MESSAGE, spec_file, "two", 2)
    code_cache.forget()
    found, recipes = code_cache.load(MESSAGE, spec_file, "one")
    names: dict[str, object] = {}
    exec(found, names)
    assert names["value"] == 7
    assert recipes == {"name": ("kind", "detail")}
    assert code_cache.load(MESSAGE, spec_file, "two") == 2
    assert code_cache.load(MESSAGE, spec_file, "three") is None


def test_nothing_is_kept_of_another_spec(spec_file: Path) -> None:
    code_cache.store(MESSAGE, spec_file, "one", 1)
    spec_file.write_text("message of a test, changed")
    code_cache.forget()
    assert code_cache.load(MESSAGE, spec_file, "one") is None
    code_cache.store(MESSAGE, spec_file, "one", 2)
    code_cache.forget()
    assert code_cache.load(MESSAGE, spec_file, "one") == 2


def test_a_damaged_file_is_no_file(spec_file: Path) -> None:
    code_cache.store(MESSAGE, spec_file, "one", 1)
    whole = code_cache.file_of(MESSAGE).read_bytes()
    for end in range(len(whole)):
        code_cache.file_of(MESSAGE).write_bytes(whole[:end])
        code_cache.forget()
        assert code_cache.load(MESSAGE, spec_file, "one") is None
    code_cache.file_of(MESSAGE).write_bytes(b"no marshalled object")
    code_cache.forget()
    assert code_cache.load(MESSAGE, spec_file, "one") is None


def test_where_nothing_can_be_written_nothing_is_kept(spec_file: Path) -> None:
    code_cache.file_of(MESSAGE).mkdir(parents=True)  # in the way of the file
    try:
        code_cache.store(MESSAGE, spec_file, "one", 1)
        assert code_cache.load(MESSAGE, spec_file, "one") == 1
        code_cache.forget()
        assert code_cache.load(MESSAGE, spec_file, "one") is None
    finally:
        code_cache.file_of(MESSAGE).rmdir()
