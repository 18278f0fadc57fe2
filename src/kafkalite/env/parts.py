"""Parts of what a link sends, as they are read and as they go.

Owns nothing: whoever sends them keeps them.
"""

from __future__ import annotations

import errno

from kafkalite.env.disk import FileRange
from kafkalite.env.network import Part


def read_part(part: FileRange) -> bytes:
    """All of a part of a file: its length has been announced to the peer."""
    data = part.read()
    if len(data) != len(part):
        raise ends_early(part)
    return data


def ends_early(part: FileRange) -> OSError:
    return OSError(errno.EIO, f"{part.file.path} ends before {part.position + part.length}")


def rest_of(part: Part, sent: int) -> Part:
    """What is left of a part."""
    if isinstance(part, FileRange):
        return FileRange(part.file, part.position + sent, part.length - sent)
    return memoryview(part)[sent:]


def start_of(part: Part, count: int) -> bytes | memoryview:
    """That many of its first bytes, or all there are."""
    if isinstance(part, FileRange):
        return read_part(FileRange(part.file, part.position, min(count, part.length)))
    return memoryview(part)[:count]
