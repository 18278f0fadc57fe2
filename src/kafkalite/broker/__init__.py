"""The broker: all rooms, tied together."""

from kafkalite.broker.broker import Broker

__all__ = ["Broker"]
