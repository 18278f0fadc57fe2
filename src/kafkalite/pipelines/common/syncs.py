"""What a mirror knows of the offsets of its copies, batch by batch, also after a restart.

Owns the files: one for each batch, and one for all before it, which takes their place now and then.
Before that one is whole none of them goes, so a kill at any moment loses nothing.
"""

import json
import re
from dataclasses import astuple

from kafkalite.pipelines.common.offsets import TopicPartition
from kafkalite.pipelines.common.ownership import Files
from kafkalite.pipelines.common.translation import Sync, follow

FOLDER = "offset-syncs"
# So many files at least until one takes their place, and as many as that one has entries.
FOLD_AFTER = 100
# Of one batch, or of all up to it; not what a killed run has left of one.
_NAME = re.compile(r"(?P<all>upto-)?(?P<batch>\d+)\.json")


class Syncs:
    """By source partition, in order."""

    def __init__(self, notes: Files) -> None:
        self._notes = notes
        self.found: dict[TopicPartition, list[Sync]] = {}
        files = self._files()
        folded = max((batch for batch, is_all in files if is_all), default=None)
        if folded is not None:
            self._take(_name(folded, is_all=True))
        ahead = sorted(batch for batch, is_all in files if folded is None or batch > folded)
        for batch in ahead:
            self._take(_name(batch))
        self._since = len(ahead)

    def note(self, batch: int, new: dict[TopicPartition, Sync]) -> None:
        """One batch, which may come again."""
        self._notes.write(_name(batch), _dump({key: [sync] for key, sync in new.items()}))
        for key, sync in new.items():
            follow(self.found.setdefault(key, []), sync)
        self._since += 1
        if self._since >= max(FOLD_AFTER, sum(map(len, self.found.values()))):
            self._fold(batch)

    def _fold(self, batch: int) -> None:
        self._notes.write(_name(batch, is_all=True), _dump(self.found))
        for old, is_all in self._files():
            if old < batch or (old == batch and not is_all):
                self._notes.delete(_name(old, is_all))
        self._since = 0

    def _files(self) -> list[tuple[int, bool]]:
        names = (_NAME.fullmatch(name) for name in self._notes.names(FOLDER))
        return [(int(found["batch"]), found["all"] is not None) for found in names if found]

    def _take(self, name: str) -> None:
        for topic, partition, *span in json.loads(self._notes.read(name) or "[]"):
            # Notes of before there were runs have none.
            start, end, to_start, to_end, runs = [*span, ()][:5]
            sync = Sync(start, end, to_start, to_end, tuple((f, n) for f, n in runs))
            follow(self.found.setdefault((topic, partition), []), sync)


def _name(batch: int, is_all: bool = False) -> str:
    return f"{FOLDER}/{'upto-' if is_all else ''}{batch}.json"


def _dump(syncs: dict[TopicPartition, list[Sync]]) -> str:
    return json.dumps([[*key, *astuple(each)] for key, found in syncs.items() for each in found])
