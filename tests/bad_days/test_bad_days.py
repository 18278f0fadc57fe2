"""A sample of the bad days, and the count that judges them: it must see what is wrong."""

import json
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest

from tests.bad_days.__main__ import run_one
from tests.bad_days.commands import COMMANDS, FRAME, is_bad
from tests.bad_days.counting import Record, compare, out_of_order, rows, told_lost
from tests.bad_days.days import DAYS
from tests.bad_days.page import PAGE, cell, load, page, text_of
from tests.bad_days.scene import Scene
from tests.compat.brokers import BROKERS, KAFKALITE

MADE = [Record(number % 2, number // 2, b"k", b"%05d" % number) for number in range(8)]
VALUES = [each.value for each in MADE]


def test_what_is_as_it_should_be_has_no_fault() -> None:
    assert compare(MADE, MADE, VALUES, set()).faults == []
    assert compare(MADE, MADE[:3], VALUES[:5], set()).faults == []
    assert compare(MADE, MADE, VALUES[1:], {VALUES[0]}).faults == []


@pytest.mark.parametrize(
    ("found", "said"),
    [
        ([*VALUES, VALUES[3]], "1 doubled, the first b'00003'"),
        (VALUES[2:], "2 lost without a word, the first b'00000'"),
        ([*VALUES, b"x"], "1 that nobody wrote, the first b'x'"),
    ],
)
def test_what_is_wrong_is_told(found: list[bytes], said: str) -> None:
    assert compare(MADE, MADE, found, set()).faults == [said]


def test_a_copy_in_another_order_or_partition_is_told() -> None:
    assert out_of_order(MADE, MADE) == []
    swapped = [MADE[2], MADE[0], *MADE[4::2], *MADE[1::2]]
    assert out_of_order(swapped, MADE) == [b"00000"]
    assert out_of_order([Record(1, 0, b"k", b"00000")], MADE) == [b"00000"]


def test_ranges_that_are_told_lost_are_values(tmp_path: Path) -> None:
    assert told_lost(tmp_path, MADE) == set()
    (tmp_path / "kafkalite").mkdir()
    ranges = [{"partition": 1, "start": 1, "end": 3}, {"partition": 0, "start": 3, "end": None}]
    (tmp_path / "kafkalite/lost-ranges.json").write_text(json.dumps(ranges))
    assert told_lost(tmp_path, MADE) == {b"00003", b"00005", b"00006"}


def test_only_files_that_a_table_has_are_read(tmp_path: Path) -> None:
    def write(name: str) -> None:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        pyarrow.parquet.write_table(pyarrow.table({"name": [name]}), tmp_path / name)

    for name in ("a.parquet", "b.parquet", "batch=0/c.parquet", "batch=1/_temporary/d.parquet"):
        write(name)
    log = tmp_path / "_delta_log"
    log.mkdir()
    (log / "00000000000000000000.json").write_text('{"add":{"path":"a.parquet"}}\n')
    second = '{"remove":{"path":"a.parquet"}}\n{"add":{"path":"b.parquet"}}\n{"commitInfo":{}}\n'
    (log / "00000000000000000001.json").write_text(second)
    assert rows(tmp_path, "delta") == [{"name": "b.parquet"}]
    assert rows(tmp_path, "parquet") == [{"name": "batch=0/c.parquet"}]


def test_a_rule_sees_numbers_in_a_frame_as_well() -> None:
    plain = [b"%05dxx" % number for number in (6, 7)]
    framed = [FRAME + b"\x01\xc8\x01" + each for each in plain]
    assert [is_bad(each) for each in (*plain, *framed)] == [False, True] * 2


def test_the_page_tells_what_held_and_what_did_not() -> None:
    held = {"exits": [None, 0], "faults": [], "killed_at": ["written n"]}
    broken = {"exits": [0, 1], "faults": ["1 doubled"], "killed_at": []}
    day = "driver killed at each step"
    lines = list(page({KAFKALITE: {day: {"mirror": held, "dlq": broken}}}))
    (row,) = [line for line in lines if line.startswith(f"| {day} |") and "†" in line]
    assert row.split("|")[4:7] == [" **0 1** ", "  ", " † 0 "]
    assert f"- {day}, dlq: 1 doubled" in lines
    assert "- mirror: written n" in lines
    assert any(line.startswith("2 of ") and "; 1 were not as" in line for line in lines)
    assert cell(None) == ""


def test_the_page_says_what_was_found() -> None:
    assert PAGE.read_text(encoding="utf-8") == text_of(load()), "write it: see its first line"


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
@pytest.mark.timeout(600)
@pytest.mark.full
@pytest.mark.parametrize("kind", BROKERS)
@pytest.mark.parametrize("command", ["mirror", "to-lake-parquet"])
def test_a_bad_day_leaves_nothing_lost_or_doubled(tmp_path: Path, kind: str, command: str) -> None:
    scene = Scene(kind, tmp_path)
    try:
        day = DAYS["driver and broker killed"]
        outcome = run_one(scene, day, COMMANDS[command], is_quick=True)
    finally:
        scene.close()
    assert outcome.faults == []
    assert outcome.exits == [None, 0]
