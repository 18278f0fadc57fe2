"""Where a group is to go on: moments and durations as Java reads them, files of offsets."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkalite.tools import reset_plans
from kafkalite.tools.consumer_groups import OPTIONS
from kafkalite.tools.failures import Failure
from kafkalite.tools.java_maps import partitions_in_map_order
from kafkalite.tools.options import Given


@pytest.mark.parametrize(("text", "moment_ms"), [
    ("1970-01-01T00:00:00.000", 0), ("1970-01-01T00:00:01.5", 1005),
    ("1970-01-02T00:00:00.000Z", 86_400_000), ("1970-01-01T02:00:00.000+02:00", 0),
    ("1970-01-01T00:00:00.001-01", 3_600_001),
])
def test_moments(text: str, moment_ms: int) -> None:
    assert reset_plans.moment_ms(text) == moment_ms


@pytest.mark.parametrize("text", ["2020-01-01", "2020-01-01T25:00:00.000", "2020-01-01T10:00"])
def test_what_is_no_moment(text: str) -> None:
    with pytest.raises(Failure, match=r"Error parsing timestamp|Unparseable date: .2020"):
        reset_plans.moment_ms(text)


@pytest.mark.parametrize(("text", "ms"), [
    ("PT1H", 3_600_000), ("P1DT1M", 86_460_000), ("-PT0.5S", -500), ("pt-2m", -120_000),
])
def test_durations(text: str, ms: int) -> None:
    assert reset_plans.duration_ms(text) == ms


@pytest.mark.parametrize("text", ["1H", "P", "PT", "P1DT", "PT1.5H"])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(Failure, match="Text cannot be parsed to a Duration"):
        reset_plans.duration_ms(text)


@pytest.mark.parametrize(("groups", "text", "found"), [
    (("a",), "t,0,5\nt,1,6\n", {"a": {("t", 0): 5, ("t", 1): 6}}),
    (("a",), "b,t,0,5\n", {"b": {("t", 0): 5}}),
    (("a", "b"), "b,t,0,5\n", {"b": {("t", 0): 5}}),
])
def test_files(
    groups: tuple[str, ...], text: str, found: object, tmp_path: Path
) -> None:
    path = tmp_path / "plan.csv"
    path.write_text(text)
    words = [word for group in groups for word in ("--group", group)]
    given = Given(OPTIONS).read([*words, "--from-file", str(path)])
    assert reset_plans.of_file(given) == found


def test_partitions_as_a_map_of_java_has_them() -> None:
    twelve = [("a-rather-long-topic-name", number) for number in range(12)]
    order = [number for _, number in partitions_in_map_order(twelve)]
    assert order == [11, 2, 1, 0, 6, 5, 4, 3, 10, 9, 8, 7]


def test_options_that_need_another() -> None:
    Given(OPTIONS).read(["--list", "--state"])
    with pytest.raises(Failure, match=r"Option\(s\) \[members, offsets\] are unavailable"):
        Given(OPTIONS).read(["--list", "--offsets", "--members"])
