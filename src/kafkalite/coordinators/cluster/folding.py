"""Many records folded into a copy of the image, a step at a time, which then takes its place.

Owns nothing of the image and changes nothing of it before that. What a batch comes to is seen at
once, as by clients of Apache Kafka, and however much it is the turn in which it is seen is short. A
copy shares with its image what the records do not touch.
"""

from __future__ import annotations

from kafkalite.coordinators.cluster.changes import Changes
from kafkalite.coordinators.cluster.image import Image
from kafkalite.env.dataclasses import dataclass, fields, replace
from kafkalite.env.slicing import Steps

AT_ONCE = 16  # records
_PARTS = tuple(each.name for each in fields(Image) if each.name != "own")


@dataclass(slots=True, frozen=True)
class Folded:
    """The image as it is to be, and what is changed by that."""

    image: Image
    changes: Changes


def folded(image: Image, messages: list[object]) -> Steps[Folded]:
    """The image with these folded in; nothing else may be, before it is put in place."""
    copy, changes = replace(image, own=set()), Changes()
    for name in _PARTS:
        part = getattr(copy, name)
        if isinstance(part, dict):
            setattr(copy, name, dict(part))
            yield
    for number, message in enumerate(messages):
        copy.apply(message, changes)
        if (number + 1) % AT_ONCE == 0:
            yield
    return Folded(copy, changes)


def put_in_place(image: Image, what: Folded) -> None:
    """Who has the image finds it changed; who has a part of it, that part as it was."""
    for name in _PARTS:
        setattr(image, name, getattr(what.image, name))
