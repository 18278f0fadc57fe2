"""Apache Kafka's own reader of log files over everything that both brokers have written.

Owns which decoder reads which log, and what counts as a complaint of it.
"""

from __future__ import annotations

import re
from pathlib import Path

from tests.compat.java_tools import JavaTools

TOOL = "org.apache.kafka.tools.DumpLogSegments"
DECODERS = {
    "__cluster_metadata": "--cluster-metadata-decoder",
    "__consumer_offsets": "--offsets-decoder",
    "__share_group_state": "--share-group-state-decoder",
    "__transaction_state": "--transaction-log-decoder",
}
COMPLAINT = re.compile(
    r"^.*(?:isvalid: false|could not|exception|mismatch|unknown|corrupt).*$",
    re.IGNORECASE | re.MULTILINE,
)
RECORD = re.compile(r"^\| offset: ", re.MULTILINE)


def dump(log_dirs: list[Path], tools: JavaTools) -> tuple[list[str], int]:
    """What the tool complains of, and how many records it read."""
    said: list[str] = []
    count = 0
    for log in sorted(one for log_dir in log_dirs for one in log_dir.glob("*-*") if one.is_dir()):
        decoder = DECODERS.get(log.name.rpartition("-")[0], "--print-data-log")
        kinds = (".log", ".checkpoint") if decoder == "--cluster-metadata-decoder" else (".log",)
        files = [str(one) for one in sorted(log.iterdir()) if one.suffix in kinds]
        words = [decoder] if decoder != "--print-data-log" else ["--deep-iteration"]
        text = tools.run(TOOL, *words, "--files", ",".join(files)) if files else ""
        count += len(RECORD.findall(text))
        said += [f"{log.name}: {line}" for line in COMPLAINT.findall(text)]
    return said, count
