"""Runs the commands on docs/pipelines.md against a broker and writes what they print under them.

    python -m tests.compat.spark_docs

Each block that begins with ```console is run line by line, in one empty folder.
"""

import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from kafkalite.pipelines.counts import ProducerCounts
from tests.compat import brokers

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "pipelines.md"
# The same size of everything in each run of this program.
SEED = 7
NOISE = re.compile(r"^(WARNING: Using incubator|Setting default log|To adjust logging)")
LONGEST_LINE = 160
RECORDS, STEP_MS = 5_000, 250


def fill(bootstrap: str) -> None:
    chance = random.Random(SEED)
    start_ms = int(time.time() * 1000) - RECORDS * STEP_MS
    admin = AdminClient({"bootstrap.servers": bootstrap})
    topics = [NewTopic("orders", 2), NewTopic("orders.dead", 1), NewTopic("customers", 1)]
    topics += [NewTopic("counts", 1), NewTopic("orders.again", 1)]
    for future in admin.create_topics(topics).values():
        future.result(30)
    producer = Producer({"bootstrap.servers": bootstrap})
    counts = ProducerCounts("shop-1")
    for number in range(RECORDS):
        amount = round(chance.uniform(-1, 50), 2)
        value = json.dumps({"id": number, "amount": amount}) if number % 1000 else "not json"
        timestamp = start_ms + number * STEP_MS
        producer.produce(
            "orders", value, str(number % 97), partition=number % 2, timestamp=timestamp
        )
        counts.count("orders", timestamp)
    for event in counts.events():
        producer.produce("counts", event)
    for number in range(300):
        name = json.dumps({"name": f"customer {number}"})
        producer.produce("customers", None if number % 10 == 9 else name, str(number % 50))
    producer.flush(60)
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "billing"})
    places = [TopicPartition("orders", 0, 1200), TopicPartition("orders", 1, 1250)]
    consumer.commit(offsets=places, asynchronous=False)
    consumer.close()


def run(command: str, bootstrap: str, folder: str) -> str:
    """What it prints, without the lines of the JVM's start."""
    environment = {
        **os.environ,
        "KAFKALITE_BOOTSTRAP_SERVERS": bootstrap,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }
    done = subprocess.run(
        command,
        shell=True,
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    text = (done.stdout + done.stderr).replace(bootstrap, "localhost:9092")
    lines = [line.rstrip()[:LONGEST_LINE] for line in text.splitlines() if not NOISE.match(line)]
    return "\n".join(line for line in lines if line)


def fill_in(page: str, bootstrap: str, folder: str) -> str:
    def block(found: re.Match[str]) -> str:
        printed = []
        for line in found[1].splitlines():
            if line.startswith("$ "):
                print(line, flush=True)
                printed += [line, run(line[2:], bootstrap, folder)]
        return "```console\n" + "\n".join(printed) + "\n```"

    return re.sub(r"```console\n(.*?)```", block, page, flags=re.DOTALL)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        broker = brokers.start(brokers.KAFKALITE, Path(folder, "broker"))
        try:
            fill(broker.bootstrap)
            work = Path(folder, "work")
            work.mkdir()
            PAGE.write_text(fill_in(PAGE.read_text(), broker.bootstrap, str(work)))
        finally:
            broker.stop()


if __name__ == "__main__":
    main()
