"""What the process may have open: one limit for files, connections and all else.

Owns how the descriptors are shared out. The system gives out the lowest number that is free, so the
number of a descriptor tells that at least so many are in use. Connections stop well before the
limit, and kept files a little before it: what is left is for files that cannot wait.
"""

from __future__ import annotations

import errno

from kafkalite.env import unix
from kafkalite.env.dataclasses import dataclass

OUT_OF_DESCRIPTORS = (errno.EMFILE, errno.ENFILE)
LEAST_RESERVE = 64


@dataclass(frozen=True, slots=True)
class Descriptors:
    """How far each may go."""

    limit: int

    @classmethod
    def of_process(cls) -> Descriptors:
        return cls(unix.open_files())

    @property
    def reserve(self) -> int:
        """What connections leave for files."""
        return min(max(LEAST_RESERVE, self.limit // 10), self.limit // 4)

    @property
    def connections_end(self) -> int:
        """No connection is taken while this many are in use."""
        return self.limit - self.reserve

    @property
    def kept_files_end(self) -> int:
        """From here on a file that is opened takes the place of one that is kept open."""
        return self.limit - self.reserve // 4
