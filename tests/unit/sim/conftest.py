"""What tests of simulated worlds share: nobody hears what brokers say there."""

import logging
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """A broker that is killed or broken complains, as it should."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)
