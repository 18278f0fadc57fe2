"""The checksum of records, taken from the library without its package."""

import subprocess
import sys

import crc32c as library
import pytest

from kafkalite.records import checksum


@pytest.mark.parametrize("data", [b"", b"123456789", bytes(range(256)) * 40])
def test_it_is_the_library_s(data: bytes):
    assert checksum.crc32c(data) == library.crc32c(data)
    assert checksum.crc32c(memoryview(data), 7) == library.crc32c(data, 7)


def test_the_known_answer():
    assert checksum.crc32c(b"123456789") == 0xE3069283


def test_a_start_imports_neither_package_nor_progress_bars():
    """Each takes a start 15 ms or more, and few starts have a use for them."""
    program = (
        "import sys, kafkalite.cli.serve\n"
        "print([each for each in ('crc32c', 'importlib.metadata', 'rich', 'asyncio') "
        "if each in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["['asyncio']"]


def test_a_library_without_it_is_named():
    with pytest.raises(ImportError, match="json has no _crc32c: pip install --upgrade json"):
        checksum._beneath("json", "_crc32c")
