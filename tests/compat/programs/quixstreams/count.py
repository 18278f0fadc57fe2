"""Counts words with quixstreams: BOOTSTRAP SOURCE TARGET COUNT GUARANTEE.

Counts live in a RocksDB store behind a changelog topic. It ends when it has counted so many lines.
"""

import sys

from quixstreams import Application, State


def main() -> None:
    bootstrap, source, target, count, guarantee = sys.argv[1:]
    app = Application(
        broker_address=bootstrap, consumer_group=f"{source}-count", state_dir="state",
        auto_offset_reset="earliest", processing_guarantee=guarantee, commit_interval=0.5,
        loglevel="WARNING",
    )
    lines = app.topic(source, key_deserializer="str", value_deserializer="str")
    counts = app.topic(target, key_serializer="str", value_serializer="str")

    def add(_: str, state: State) -> str:
        total = int(state.get("count", 0)) + 1
        state.set("count", total)
        return str(total)

    frame = app.dataframe(lines)
    frame = frame.apply(add, stateful=True)
    frame.to_topic(counts)
    app.run(count=int(count), timeout=30)


main()
