"""Files that cannot be opened for a while: none left, not there, or a disk that does not answer.

Owns which of them fail, how often, and how it is called. Whatever fails here fails at an opening,
at a start or in service; what has been written stays as it is.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

# What is about the process passes by itself, and is no disk's failure; the others go when somebody
# mends the disk.
OF_PROCESS = (errno.EMFILE, errno.ENFILE)
CODES = (*OF_PROCESS, errno.ENOENT, errno.EACCES, errno.EIO)
WHERE = ("/data/", "/data/__", "/data/__cluster_metadata-0/", "/data/t-", "/data/renewed-")
CHANCES = (0.02, 0.2, 1.0)


@dataclass(slots=True)
class Trouble:
    """Some openings of some files fail."""

    random: Random
    code: int
    where: str
    chance: float
    count: Callable[[str], None]

    @classmethod
    def drawn(cls, random: Random, count: Callable[[str], None]) -> Trouble:
        return cls(
            Random(random.random()), random.choice(CODES), random.choice(WHERE),
            random.choice(CHANCES), count,
        )

    def before_open(self, path: str) -> None:
        if path.startswith(self.where) and self.random.random() < self.chance:
            self.count(errno.errorcode[self.code])
            if "__cluster_metadata" in path:
                self.count("metadata")
            raise OSError(self.code, os.strerror(self.code), path)
