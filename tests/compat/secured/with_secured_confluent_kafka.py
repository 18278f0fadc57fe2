"""confluent-kafka behind those commands of python/client.py that secured brokers are asked.

What keeps a client out it tells its error callback, of which the first word counts.
"""

import time
from typing import Any

from confluent_kafka import Consumer, Message, Producer

Command = dict[str, Any]
POLL_S = 0.1


class Told(Exception):
    """The name of an error, and its words."""


class Session:
    """Clients that come to one place in one way, until they are told another."""

    def __init__(self, bootstrap: str) -> None:
        self.config: dict[str, Any] = {"bootstrap.servers": bootstrap}

    def act(self, c: Command) -> Any:
        return getattr(self, c["do"])(c)

    def secure(self, c: Command) -> None:
        told = c["security"]
        self.config = {
            "bootstrap.servers": c["bootstrap"], "security.protocol": told["protocol"],
            "log_level": 0, **encryption(told), **login(told),
        }

    def produce(self, c: Command) -> list[dict[str, Any]]:
        errors: list[Any] = []
        placed: list[Message] = []

        def delivered(error: Any, message: Message) -> None:
            errors.extend([error] if error else [])
            placed.append(message)

        producer = Producer({**self.config, "error_cb": errors.append})
        for each in c["records"]:
            where = {"partition": c["partition"], "on_delivery": delivered}
            producer.produce(c["topic"], each["value"], **where)
        end = time.monotonic() + c["wait_ms"] / 1000
        while len(placed) < len(c["records"]) and not errors and time.monotonic() < end:
            producer.poll(POLL_S)
        if errors:
            producer.purge()
        check(errors)
        return [{"partition": at.partition(), "offset": at.offset()} for at in placed]

    def read(self, c: Command) -> list[dict[str, Any]]:
        errors: list[Any] = []
        own = {"group.id": c["topic"], "enable.auto.commit": False, "error_cb": errors.append}
        consumer = Consumer({**self.config, **own, "auto.offset.reset": "earliest"})
        consumer.subscribe([c["topic"]])
        found: list[Message] = []
        end = time.monotonic() + c["wait_ms"] / 1000
        try:
            while len(found) < c["count"] and not errors and time.monotonic() < end:
                message = consumer.poll(POLL_S)
                if message is not None and message.error() is not None:
                    errors.append(message.error())
                elif message is not None:
                    found.append(message)
        finally:
            consumer.close()
        check(errors)
        return [
            {"partition": each.partition(), "offset": each.offset(), "value": each.value()}
            for each in found
        ]


def check(errors: list[Any]) -> None:
    if errors:
        raise Told(f"{errors[0].name()}: {errors[0].str()}")


def encryption(told: dict[str, str]) -> dict[str, Any]:
    if not told["protocol"].endswith("SSL"):
        return {}
    own = told["certificate"]
    shown = {"ssl.certificate.location": own, "ssl.key.location": own} if own else {}
    return {"ssl.ca.location": told["ca"], **shown}


def login(told: dict[str, str]) -> dict[str, Any]:
    if not told["mechanism"]:
        return {}
    if told["mechanism"] == "OAUTHBEARER":
        return {
            "sasl.mechanism": "OAUTHBEARER",
            "oauth_cb": lambda _: (told["token"], time.time() + 3_600),
        }
    return {
        "sasl.mechanism": told["mechanism"], "sasl.username": told["user"],
        "sasl.password": told["password"],
    }
