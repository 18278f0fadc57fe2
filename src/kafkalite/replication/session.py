"""The session of one broker with another that it copies from (KIP-227): what is not said again.

Owns what the leader was told of each partition, and the number of the next question. It asks nobody
and waits for nobody. Invariant: what a question leaves out the leader knows from earlier ones, each
of which it has answered; after any doubt the next one says everything.
"""

from __future__ import annotations

from kafkalite.env.dataclasses import dataclass, field
from kafkalite.env.slicing import Steps
from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import FetchResponse
from kafkalite.replication.follower import FetchFrom
from kafkalite.replication.partition import Partition

NO_SESSION = INITIAL_EPOCH = 0
MAX_EPOCH = 2**31 - 1
COMPARED_PER_STEP = 64

Key = tuple[bytes, int]
Wanted = dict[Key, tuple[Partition, FetchFrom]]

# The leader forgot it, or is elsewhere in it: nothing is wrong but that.
LOST = (
    Error.FETCH_SESSION_ID_NOT_FOUND,
    Error.INVALID_FETCH_SESSION_EPOCH,
    Error.FETCH_SESSION_TOPIC_ID_ERROR,
)


@dataclass(slots=True, frozen=True)
class Question:
    """What is to be said, of all that is wanted."""

    session_id: int
    epoch: int
    news: Wanted
    forgotten: list[Key]


@dataclass(slots=True)
class Session:
    """With one leader; none until it has given one."""

    id: int = NO_SESSION
    epoch: int = INITIAL_EPOCH
    _told: dict[Key, FetchFrom] = field(default_factory=dict)

    def question(self, wanted: Wanted) -> Steps[Question]:
        """About all of these, and nothing else."""
        if self.epoch == INITIAL_EPOCH:
            self._told = {}
        told, news = self._told, Wanted()
        for count, (key, (partition, asked)) in enumerate(wanted.items(), 1):
            if told.get(key) != asked:
                told[key] = asked
                news[key] = (partition, asked)
            if count % COMPARED_PER_STEP == 0:
                yield
        forgotten = [key for key in told if key not in wanted] if len(told) > len(wanted) else []
        for key in forgotten:
            del told[key]
        return Question(self.id, self.epoch, news, forgotten)

    def answered(self, response: FetchResponse) -> None:
        """To the last question."""
        if response.error_code != Error.NONE:
            self.failed()
        elif response.session_id == NO_SESSION:
            self.id, self.epoch = NO_SESSION, INITIAL_EPOCH
        else:
            self.id = response.session_id
            self.epoch = 1 if self.epoch == MAX_EPOCH else self.epoch + 1

    def failed(self) -> None:
        """Whether the leader has heard the last question nobody knows, or what it answered counts
        for nothing: the next one ends what it has, and begins anew."""
        self.epoch = INITIAL_EPOCH
