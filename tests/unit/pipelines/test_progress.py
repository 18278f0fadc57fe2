"""The figures of a run, as far as they need no Spark."""

from kafkalite.pipelines.common.progress import Progress, Rate, Reading, Stage

RUN, OTHER = "3b1f", "77aa"


def stage(number: int, run: str, batch: int, rows: int) -> Stage:
    return Stage(number, f"to-lake lake\nid = 1\nrunId = {run}\nbatch = {batch}", rows, 4, 1)


def test_a_rate_is_of_the_last_half_minute() -> None:
    times = iter([0.0, 10.0, 20.0, 40.0, 60.0])
    rate = Rate(lambda: next(times))
    assert rate.of(1_000) == 100.0
    assert rate.of(3_000) == 150.0
    # From here on the first seconds count no more.
    assert rate.of(3_000) == (3_000 - 1_000) / 30
    assert rate.of(3_000) == 0.0


def test_a_rate_is_never_below_nothing() -> None:
    times = iter([0.0, 0.0, 1.0, 2.0])
    rate = Rate(lambda: next(times))
    assert rate.of(500) == 0.0
    assert rate.of(500) == 500.0
    assert Rate(lambda: 0.0).of(0) == 0.0


def test_what_a_batch_reads_is_the_most_of_its_own_stages() -> None:
    stages: list[Stage] = []
    reading = Reading(lambda: stages, lambda: 0)
    assert reading.of(RUN, None, 0) == 0
    stages = [stage(9, RUN, 12, 70), stage(8, OTHER, 1, 900), stage(7, RUN, 1, 800)]
    assert reading.of(RUN, 12, 1_000) == 70
    assert reading.of(RUN, 1, 1_000) == 800
    # A stage that is through is told of no more; the next one reads the same again.
    stages = [stage(10, RUN, 1, 5)]
    assert reading.of(RUN, 1, 1_000) == 800
    assert reading.of(RUN, 2, 1_000) == 0


def test_what_consumers_fetched_counts_from_where_the_batch_began() -> None:
    fetched = iter([1_000, 1_000, 1_300, 2_500, 2_600, 2_700])
    reading = Reading(list, lambda: next(fetched))
    assert reading.of(RUN, None, 0) == 0
    assert reading.of(RUN, 0, 900) == 300
    # They fetch ahead, and what is fetched again is no more of the batch.
    assert reading.of(RUN, 0, 900) == 900
    assert reading.of(RUN, 1, 900) == 100
    assert reading.of(RUN, None, 0) == 0


def test_what_is_left_is_what_no_batch_has_read() -> None:
    progress = Progress(100, behind={("t", 0): 60, ("t", 1): 40}, reading=20, rows_per_s=8.0)
    assert (progress.lag, progress.is_behind, progress.seconds_left) == (100, True, 10.0)
    assert progress.bytes_per_s is None
    progress = Progress(100, behind={("t", 0): 0})
    assert (progress.lag, progress.is_behind, progress.seconds_left) == (0, False, None)
