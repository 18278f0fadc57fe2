"""What kafka-python and aiokafka have in common: names of settings, and a log that says more than
what is raised.
"""

import logging
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

WHY = re.compile("authenticat|authoriz|handshake|certificate", re.IGNORECASE)


@contextmanager
def told_of(logger: str) -> Iterator[None]:
    """Adds to what is raised the first error of the log that tells why, if there is one: which of
    the others comes first is chance."""
    said = _Said()
    logging.getLogger(logger).addHandler(said)
    try:
        yield
    except Exception as error:
        for why in filter(WHY.search, said.errors):
            error.add_note(f"[{why}]")
            break
        raise
    finally:
        logging.getLogger(logger).removeHandler(said)


class _Said(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.errors: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.errors.append(record.getMessage())


def login(told: dict[str, str], provider: Callable[[str], Any]) -> dict[str, Any]:
    """`provider` makes of a token what the library asks for it."""
    if not told["mechanism"]:
        return {}
    if told["mechanism"] == "OAUTHBEARER":
        given = provider(told["token"])
        return {"sasl_mechanism": "OAUTHBEARER", "sasl_oauth_token_provider": given}
    return {
        "sasl_mechanism": told["mechanism"], "sasl_plain_username": told["user"],
        "sasl_plain_password": told["password"],
    }
