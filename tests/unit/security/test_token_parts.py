"""Parts of tokens: large ones are read as small ones are, and nobody stands still meanwhile."""

import sys
import time
from collections.abc import Iterator
from threading import Event, Thread

import pytest

from kafkalite.security.token_parts import LARGE, MalformedPart, read_json


class Other(Thread):
    """Somebody else, who counts its turns."""

    def __init__(self) -> None:
        super().__init__()
        self.turns = 0
        self.is_over = Event()

    def run(self) -> None:
        while not self.is_over.is_set():
            self.turns += 1
            time.sleep(0)  # lets go of the interpreter


@pytest.fixture
def other() -> Iterator[Other]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(0.000_01)
    other = Other()
    other.start()
    yield other
    other.is_over.set()
    other.join()
    sys.setswitchinterval(before)


def test_others_have_their_turns_while_a_large_part_is_read(other: Other) -> None:
    data = b'{"a":[' + b"[]," * 100_000 + b"1]}"
    before = other.turns
    read_json(data)
    assert other.turns - before > 50


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": [1, -2.5, 3e2, true, null, "é\\n"]}', {"a": [1, -2.5, 300.0, True, None, "é\n"]}),
        ("[[[]], {}]", [[[]], {}]),
        ("7", 7),
    ],
)
def test_a_large_part_comes_to_what_a_small_one_does(text: str, value: object) -> None:
    found = read_json(text.encode())
    assert found == value
    inner = f'["{"x" * LARGE}", {text}]'
    assert read_json(inner.encode())[1] == found


@pytest.mark.parametrize(
    "text",
    ['{"a":1,"a":2}', "NaN", "[-Infinity]", "1\u0663", "1.\u0663", "1\u06632", "[1,]", "{'a':1}",
     "[" * 5_000, '"\n"', "01", "+1", ""],
)  # fmt: skip
def test_what_is_none_is_none_in_a_large_part_too(text: str) -> None:
    for each in (text, f'["{"x" * LARGE}", {text}]'):
        with pytest.raises(MalformedPart):
            read_json(each.encode())
