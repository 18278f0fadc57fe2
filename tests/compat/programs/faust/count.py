"""Counts words with faust: BOOTSTRAP SOURCE TARGET COUNT GUARANTEE.

Counts live in a table behind a changelog topic. It ends when it has counted so many lines.
"""

import asyncio
import sys

import faust

PARTITIONS = 2
PATIENCE_S = 60


def main() -> None:
    bootstrap, source, target, count, guarantee = sys.argv[1:]
    app = faust.App(
        f"{source}-count", broker=f"kafka://{bootstrap}", store="memory://",
        topic_partitions=PARTITIONS, processing_guarantee=guarantee, web_enabled=False,
        consumer_auto_offset_reset="earliest", broker_commit_interval=0.5,
        topic_disable_leader=True,
    )
    words = {"key_type": str, "key_serializer": "raw", "value_type": str, "value_serializer": "raw"}
    lines, counts = app.topic(source, **words), app.topic(target, **words)
    totals = app.Table("totals", default=int, partitions=PARTITIONS)
    done = asyncio.Event()
    seen = 0

    async def add(stream) -> None:
        nonlocal seen
        async for event in stream.events():
            totals[event.key] += 1
            await counts.send(key=event.key, value=str(totals[event.key]))
            seen += 1
            if seen == int(count):
                done.set()

    app.agent(lines)(add)

    async def run() -> None:
        async with app:
            await asyncio.wait_for(done.wait(), PATIENCE_S)

    asyncio.run(run())


main()
