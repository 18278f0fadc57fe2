"""What a broker said in its log of a directory that the other had before it.

Owns the list of what it may say, with the reason for each. Anything else is a finding.
"""

from __future__ import annotations

import re

LINE = re.compile(r"^\d{4}-\d\d-\d\d \S+ (WARN|WARNING|ERROR|FATAL|CRITICAL) (.*)$", re.MULTILINE)

ALLOWED = {
    r"Performing controller activation\.(?! Aborting)":
        "how its controller begins, also where no other broker has ever been",
    r"Attempting to close NetworkClient that has already been closed":
        "how it stops",
    r"Expected partition \S+ with topic id \S+ to exist, but it was missing\. Creating":
        "how it adds partitions to a topic, also where no other broker has ever been",
    r"AssignmentsManager id=1\] handleResponse: unexpected callback exception":
        "its own race: a log has moved to another directory before its controller has answered",
    r"AssignReplicasToDirsRequest from broker 1 references unknown topic ID":
        "its own race: a topic is deleted before its controller is told where its log is",
    r"ReplicaAlterLogDirsThread-\d+\]: Truncate fully and reset fetch offset"
    r"|Failed atomic move of \S+-future/"
    r"|Non-monotonic update of high watermark from \(offset=\d+, segment=\[\d+:0\]\)":
        "how it moves a log whose first records are deleted, also where no other broker has been",
    r"Failed to load metadata from __\S+ with epoch \d+ due to Stopped loading records from":
        "its own race: its registration, or its stop, takes the lead from a partition that is being"
        " read; it reads it again when it leads it again, or the answers differ",
    r"Upgrading metadata\.version from ":
        "somebody finalizes a newer version",
    r"nobody was served for \d+ ms":
        "a machine that is busy with others held its loop up: nothing about the directory",
    r" ha(s|ve) no effect: ":
        "a setting of the file that this broker has no use for, named once at the start",
}  # fmt: skip
_ALLOWED = re.compile("|".join(ALLOWED))


def complaints(log: str) -> list[str]:
    """Lines of warning or worse, but for those that have a reason."""
    return [
        found.group()
        for found in LINE.finditer(log)
        if not _ALLOWED.search(found.group())
    ]  # fmt: skip
