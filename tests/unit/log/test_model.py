"""Random lives of a log against a list: appends, rolls, cuts, retention, look-ups, restarts."""

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from kafkalite.log.config import LogConfig, LogSettings
from kafkalite.records.batch import iterate_headers
from tests.unit.log.making import START_MS, World, batch, committed, read_all

CONFIG = LogConfig(
    segment_bytes=600, index_interval_bytes=100, retention_ms=-1, file_delete_delay_ms=10
)
QUIET = LogSettings(log_cleaner_enable=False, log_retention_check_interval_ms=1 << 40)


class LogLife(RuleBasedStateMachine):
    """The log beside a list of (offset, timestamp, value), and where the list begins."""

    @initialize()
    def begin(self):
        self.world = World(CONFIG, settings=QUIET)
        self.records: list[tuple[int, int, bytes]] = []
        self.starts: list[int] = []  # the first offset of every batch
        self.end = 0
        self.log_start = 0
        self.epoch = 0
        self.world.log()

    @rule(
        values=st.lists(st.binary(max_size=60), min_size=1, max_size=5),
        time=st.integers(-200, 200),
        step=st.integers(0, 5),
    )
    def append(self, values, time, step):
        timestamp = max(0, START_MS + time)
        result = self.world.log().append_as_leader(
            batch(values, timestamp=timestamp, step_ms=step), self.epoch
        )
        assert result.base_offset == self.end
        self.starts.append(self.end)
        for index, value in enumerate(values):
            self.records.append((self.end + index, timestamp + index * step, value))
        self.end += len(values)
        committed(self.world.log())

    @rule()
    def lead_again(self):
        self.epoch += 1

    @rule()
    def roll(self):
        self.world.log().roll()

    @rule(passed=st.integers(1, 100_000))
    def wait(self, passed):
        self.world.clock.advance(passed)

    @precondition(lambda self: self.end > self.log_start)
    @rule(data=st.data())
    def truncate(self, data):
        offset = data.draw(st.integers(0, self.end))
        first = self.world.log().segments[0].base_offset
        # A batch that spans the offset goes as a whole.
        boundaries = [start for start in self.starts if start >= first] + [self.end]
        end = max((one for one in boundaries if one <= offset), default=offset)
        if offset <= first:
            end = offset
        self.world.log().truncate_to(offset)
        self.end = end
        self.starts = [start for start in self.starts if start < self.end]
        self.records = [record for record in self.records if record[0] < self.end]
        self.log_start = min(self.log_start, self.end)
        committed(self.world.log())

    @precondition(lambda self: self.end > self.log_start)
    @rule(data=st.data())
    def delete_records(self, data):
        offset = data.draw(st.integers(self.log_start, self.end))
        self.world.log().delete_records_before(offset)
        self.world.manager.periodic.retain()
        self.log_start = offset
        self.records = [record for record in self.records if record[0] >= offset]

    @rule(clean=st.booleans())
    def restart(self, clean):
        if not clean:
            # Where the log starts may be forgotten by a process that dies; not what is in it.
            self.world.manager.checkpoint("log-start-offset-checkpoint")
        committed(self.world.restart(clean=clean))

    @rule(target_time=st.integers(-250, 250))
    def look_up_time(self, target_time):
        wanted = START_MS + target_time
        found = self.world.log().offset_for_time(wanted)
        expected = next(
            ((time, offset) for offset, time, _ in self.records if time >= wanted), None
        )
        assert (None if found is None else (found.timestamp, found.offset)) == expected

    @rule()
    def look_up_newest(self):
        found = self.world.log().offset_for_time(-3)
        kept = [record for record in self.records if record[0] >= self.log_start]
        if kept and self.log_start == 0:
            newest = max(time for _, time, _ in kept)
            assert found is not None
            assert found.timestamp == newest
            assert found.offset == next(offset for offset, time, _ in kept if time == newest)

    @precondition(lambda self: self.end > self.log_start)
    @rule(data=st.data(), max_bytes=st.integers(1, 2000))
    def read_somewhere(self, data, max_bytes):
        offset = data.draw(st.integers(self.log_start, self.end - 1))
        limit = data.draw(st.integers(offset, self.end))
        found = self.world.log().read(offset, max_bytes, limit)
        if found.range is None:
            return
        headers = list(iterate_headers(found.range.read()))
        assert headers[0].last_offset >= offset
        assert headers[0].base_offset <= offset or headers[0].base_offset in self.starts
        assert found.end_offset >= headers[-1].next_offset

    @invariant()
    def holds_the_same(self):
        if not hasattr(self, "world"):
            return
        log = self.world.log()
        assert (log.log_start_offset, log.log_end_offset) == (self.log_start, self.end)
        found = [(r.offset, r.timestamp, r.value) for r in read_all(log, 300)]
        assert found == self.records
        assert log.log_start_offset <= log.last_stable_offset <= log.high_watermark
        assert log.high_watermark <= log.log_end_offset
        assert [s.base_offset for s in log.segments] == log.bases
        assert log.epochs.entries() == sorted(set(log.epochs.entries()))


LogLife.TestCase.settings = settings(
    max_examples=30,
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
TestLogLife = LogLife.TestCase
