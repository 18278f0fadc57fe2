"""What may be asked over HTTP, and what is done: each by a public call of `EmbeddedKafka`.

Owns the ids of faults and snapshots, and how much of them is kept. Any thread may call.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from itertools import count, groupby
from typing import TYPE_CHECKING, Any, TypeVar

from kafkalite import __version__
from kafkalite.testing import control_values as values
from kafkalite.testing.control_shape import Endpoint, Field, Mistake
from kafkalite.testing.faults import Act, Fault
from kafkalite.testing.legal import KINDS
from kafkalite.testing.where import Where

if TYPE_CHECKING:
    from kafkalite.testing.embedded import EmbeddedKafka, Snapshot
    from kafkalite.testing.exploring import Explorer

MOST_FAULTS = 1000
MOST_SNAPSHOTS = 100
MOST_RECORDS = 10_000
MOST_WAIT_SECONDS = 60

T = TypeVar("T")
Given = dict[str, Any]


class Kept(dict[str, T]):
    """Things by the ids that they were given."""

    def __init__(self, kind: str, most: int) -> None:
        super().__init__()
        self._kind, self._most = kind, most
        self._ids = count(1)
        self._guard = threading.Lock()

    def add(self, make: Callable[[], T]) -> str:
        with self._guard:
            if len(self) >= self._most:
                raise Mistake(
                    409, f"there are {self._most} {self._kind}s: DELETE those that are done with"
                )
            id_ = str(next(self._ids))
            self[id_] = make()
            return id_

    def of(self, id_: str) -> T:
        found = self.get(id_)
        if found is None:
            raise Mistake(404, f"there is no {self._kind} {id_!r}: GET /{self._kind}s lists them")
        return found


class Acts:
    """On one EmbeddedKafka; each method is given what was asked, and returns what is answered."""

    def __init__(self, kafka: EmbeddedKafka) -> None:
        self._kafka = kafka
        self._faults: Kept[tuple[Fault, Given]] = Kept("fault", MOST_FAULTS)
        self._snapshots: Kept[Snapshot] = Kept("snapshot", MOST_SNAPSHOTS)
        self._explorer: Explorer | None = None
        kafka.keep_exchanges()

    def health(self, _: Given) -> Given:
        if not self._kafka.is_running:
            raise Mistake(503, "the broker has ended: its log says why; start `kafkalite serve`")
        return {
            "status": "serving",
            "bootstrap_servers": self._kafka.bootstrap_servers,
            "version": __version__,
        }

    # --- time -------------------------------------------------------------------------------------

    def clock(self, _: Given) -> Given:
        clock = self._kafka.clock
        now = clock.now
        return {
            "now": now.isoformat(timespec="milliseconds"),
            "now_ms": round(now.timestamp() * 1000),
            "is_frozen": clock.is_frozen,
        }

    def freeze(self, given: Given) -> Given:
        self._kafka.clock.freeze(values.moment(given["at"]))
        return self.clock(given)

    def unfreeze(self, given: Given) -> Given:
        self._kafka.clock.unfreeze()
        return self.clock(given)

    def advance(self, given: Given) -> Given:
        self._kafka.clock.advance(**given)
        return self.clock(given)

    # --- faults -----------------------------------------------------------------------------------

    def add_fault(self, given: Given) -> Given:
        return {"id": self._faults.add(lambda: (self._fault(given), given))}

    def _fault(self, given: Given) -> Fault:
        kafka, act = self._kafka, given["act"]
        more: Given = {}
        for name, acts in (("error", ("refuse",)), ("ms", ("delay", "throttle"))):
            if act in acts and given[name] is None:
                raise Mistake(400, f"act {act!r} needs the field {name!r}")
            if act not in acts and given[name] is not None:
                raise Mistake(400, f"act {act!r} has no {name!r}: it is for {' and '.join(acts)}")
            if act in acts:
                more[name] = given[name]
        where = None if given["where"] is None else Where(**given["where"])
        calls: dict[str, Callable[..., Fault]] = {
            "refuse": kafka.fail, "delay": kafka.delay, "throttle": kafka.throttle,
            "disconnect": kafka.drop_connection, "lose-reply": kafka.lose_reply, "hold": kafka.hold,
        }  # fmt: skip
        return calls[act](given["api"], times=given["times"], when=where, **more)

    def faults(self, _: Given) -> Given:
        return {"faults": [self._shown(id_, *each) for id_, each in list(self._faults.items())]}

    def _shown(self, id_: str, fault: Fault, given: Given) -> Given:
        where = given["where"] or {}
        return {
            **given,
            "id": id_,
            "api": fault.api,
            "where": {name: value for name, value in where.items() if value is not None},
            "count": fault.count,
            "left": fault.left,
            "held": fault.held,
        }

    def fault(self, given: Given) -> Given:
        return self._shown(given["id"], *self._faults.of(given["id"]))

    def remove_fault(self, given: Given) -> Given:
        found = self.fault(given)
        self._faults.of(given["id"])[0].remove()
        self._faults.pop(given["id"], None)
        return found

    def remove_faults(self, _: Given) -> Given:
        ids = list(self._faults)
        for id_ in ids:
            found = self._faults.pop(id_, None)
            if found is not None:
                found[0].remove()
        return {"removed": ids}

    def release_fault(self, given: Given) -> Given:
        fault, _ = self._faults.of(given["id"])
        if fault.act is not Act.HOLD:
            raise Mistake(409, f"fault {given['id']} holds nothing: its act is not 'hold'")
        held = fault.held
        fault.release()
        return {"released": held}

    # --- exploring --------------------------------------------------------------------------------

    def explore(self, given: Given) -> Given:
        wanted = {name: value for name, value in given.items() if value is not None}
        if "schedule" in wanted:
            wanted["schedule"] = [
                {name: value for name, value in step.items() if value is not None}
                for step in wanted["schedule"]
            ]
        self._explorer = self._kafka.explore(**wanted)
        return self.explored({})

    def explored(self, _: Given) -> Given:
        explorer = self._explorer
        if explorer is None:
            raise Mistake(404, "nothing is explored: POST /explore begins")
        return {
            "seed": explorer.seed,
            "kinds": list(explorer.kinds),
            "rate": explorer.rate,
            "schedule": [step.values() for step in explorer.schedule],
        }

    def stop_exploring(self, given: Given) -> Given:
        found = self.explored(given)
        if self._explorer is not None:
            self._explorer.stop()
            self._explorer = None
        return found

    # --- what was said ----------------------------------------------------------------------------

    def exchanges(self, given: Given) -> Given:
        known, since, limit = self._kafka.exchanges, given["since"], given["limit"]
        last = known[-1].index if known else 0
        found = [each for each in known if since is None or each.index > since]
        if given["api"] is not None:
            wanted = values.api_named(given["api"])
            found = [each for each in found if each.api == wanted]
        is_cut = len(found) > limit
        if since is None:
            found = found[-limit:]
            shown = values.bounded(map(values.exchange, reversed(found)))[::-1]
        else:
            found = found[:limit]
            shown = values.bounded(map(values.exchange, found))
        is_cut = is_cut or len(shown) < len(found)
        if is_cut and since is not None and shown:
            last = shown[-1]["index"]
        return {"exchanges": shown, "last": last, "is_cut": is_cut}

    def forget_exchanges(self, _: Given) -> Given:
        found = len(self._kafka.exchanges)
        self._kafka.keep_exchanges()
        return {"removed": found}

    # --- data -------------------------------------------------------------------------------------

    def take_snapshot(self, _: Given) -> Given:
        return {"id": self._snapshots.add(self._kafka.snapshot)}

    def snapshots(self, _: Given) -> Given:
        return {"snapshots": list(self._snapshots)}

    def restore_snapshot(self, given: Given) -> Given:
        self._kafka.restore(self._snapshots.of(given["id"]))
        return {"restored": given["id"]}

    def remove_snapshot(self, given: Given) -> Given:
        self._snapshots.of(given["id"])
        self._snapshots.pop(given["id"], None)
        return {"removed": given["id"]}

    def reset(self, _: Given) -> Given:
        self._kafka.reset()
        return {"status": "reset"}

    def disconnect(self, _: Given) -> Given:
        self._kafka.disconnect()
        return {"status": "disconnected"}

    def quiesce(self, _: Given) -> Given:
        self._kafka.quiesce()
        return {"status": "quiet"}

    def move_leader(self, given: Given) -> Given:
        self._kafka.move_leader(given["topic"], given["partition"], to=given["to"])
        return {"leader": given["to"]}

    def create_topic(self, given: Given) -> Given:
        self._kafka.create_topic(given["name"], given["partitions"], given["configs"])
        return {"name": given["name"]}

    def produce(self, given: Given) -> Given:
        """Records that stand beside each other and share partition and headers go together."""
        records = given["records"]
        if len(records) > MOST_RECORDS:
            raise Mistake(400, f"{len(records)} records at once: send {MOST_RECORDS} at a time")
        written = [
            (each["partition"], values.headers_of(each), values.pair_of(each)) for each in records
        ]
        for (partition, headers), pairs in groupby(written, lambda each: each[:2]):
            self._kafka.produce(
                given["topic"], *(pair for _, _, pair in pairs), partition=partition,
                headers=headers,
            )  # fmt: skip
        return {"written": len(records)}

    def records(self, given: Given) -> Given:
        found = self._kafka.records(
            given["topic"], count=given["count"], timeout=given["timeout"],
            committed=given["committed"],
        )  # fmt: skip
        shown = values.bounded(map(values.record, found[: given["limit"]]))
        return {"records": shown, "count": len(found), "is_cut": len(shown) < len(found)}


# --- the table ------------------------------------------------------------------------------------

_WHERE = (
    Field("topic", "string null", "The topic's name; found by its id as well."),
    Field("partition", "integer null", "Of that topic, or of any.", least=0),
    Field("group", "string null", "The id of a group."),
    Field("client_id", "string null", "The client.id of who asks."),
    Field("transactional_id", "string null", "The transactional.id."),
)
_FAULT = (
    Field("api", "string", "Such as Produce, Fetch, join_group; * for all.", is_required=True),
    Field("act", "string", "What becomes of the request.", is_required=True,
          choices=("refuse", "delay", "throttle", "disconnect", "lose-reply", "hold")),
    Field("error", "string integer null", "Of refuse: its name, or its code."),
    Field("ms", "number null", "Of delay and throttle: for how long.", least=0, most=3_600_000),
    Field("times", "integer null", "How many requests meet it; null for all.", default=1, least=1),
    Field("where", "object null", "Only requests that name all of these.", fields=_WHERE),
)  # fmt: skip
_KEPT_FAULT = (
    Field("id", "string", "Its id."),
    *_FAULT,
    Field("count", "integer", "How many requests have met it."),
    Field("left", "integer null", "How many still will; null for no end."),
    Field("held", "integer", "How many wait for its release now."),
)
_STEPS = Field("schedule", "array null", "What is done, instead of a seed.", fields=(
    Field("kind", "string", "One of the kinds.", is_required=True, choices=tuple(KINDS)),
    Field("number", "integer", "The so-manieth request where it is legal.", default=1, least=1),
    Field("api", "string null", "Only of this API."),
    Field("of", "string null", "Only about this: partitions, a group, a transactional id."),
    Field("by", "string null", "Only by this client."),
))  # fmt: skip
_EXPLORE = (
    Field("seed", "integer string null", "What choices are drawn from."),
    Field("kinds", "array null", "Only these kinds; else all."),
    Field("rate", "number null", "At this share of requests; else 0.1.", least=0, most=1),
    _STEPS,
)
_EXPLORED = (
    Field("seed", "integer string null", "Null where a schedule is followed."),
    Field("kinds", "array", "What may be chosen."),
    Field("rate", "number", "At which share of requests."),
    replace(_STEPS, types="array", about="What was done so far."),
)
_CLOCK = (
    Field("now", "string", "What the broker's clock says, in ISO 8601."),
    Field("now_ms", "integer", "The same in milliseconds since 1970."),
    Field("is_frozen", "boolean", "Whether it stands still."),
)
_AT = Field("at", "integer string null", "Milliseconds since 1970, or ISO 8601 with a time zone.")
_DURATION = tuple(
    Field(name, "number", f"So many {name}.", default=0, least=0, most=most)
    for name, most in (
        ("days", 36_525), ("hours", 876_600), ("minutes", 52_596_000), ("seconds", 3_155_760_000),
        ("milliseconds", 3_155_760_000_000),
    )
)  # fmt: skip
_EXPIRE = Field("expire_members", "boolean", "Members of groups go, too.", default=False)
_ID = Field("id", "string", "Its id.")
_STATUS = Field("status", "string", "That it is done.")
_LIMIT = Field("limit", "integer", "How many at most.", default=1000, least=1, most=10_000)
_IS_CUT = Field("is_cut", "boolean", "Whether there are more than are shown.")
_NEW_RECORD = (
    Field("key", "", "Text, or what is written as JSON; null for none."),
    Field("value", "", "Text, or what is written as JSON; null for none."),
    Field("key_base64", "string null", "Bytes in the key's place."),
    Field("value_base64", "string null", "Bytes in the value's place."),
    Field("headers", "object null", "Texts or null, by their names."),
    Field("partition", "integer null", "Where to; by the key without it.", least=0),
)
_RECORD = (
    Field("topic", "string", "Its topic."),
    Field("partition", "integer", "Its partition."),
    Field("offset", "integer", "Its offset."),
    Field("timestamp_ms", "integer", "Milliseconds since 1970."),
    Field("key", "string null", "As text; null also where it is none."),
    Field("value", "string null", "As text; null also where it is none."),
    Field("key_base64", "string null", "Its bytes, where they are no text."),
    Field("value_base64", "string null", "Its bytes, where they are no text."),
    Field("headers", "object", "Texts or null, by their names."),
)
_EXCHANGE = (
    Field("index", "integer", "The so-manieth request: what `since` takes."),
    Field("connection", "integer", "The so-manieth connection."),
    Field("time_ms", "integer", "When it was asked, by the broker's clock."),
    Field("replied_ms", "integer null", "When it was replied to."),
    Field("api", "string null", "Its API; null for what is none."),
    Field("version", "integer null", "In which version."),
    Field("client_id", "string null", "Who asked."),
    Field("request", "object null", "Its fields, as in Apache Kafka's protocol."),
    Field("response", "object null", "The same of its reply."),
    Field("errors", "array", "The names of all errors in the reply."),
    Field("outcome", "string", "The reply in one line, or why there is none."),
)
_OF_TOPIC = Field("topic", "string", "The topic's name.", is_required=True)

ENDPOINTS = (
    Endpoint("GET", "/health", "Whether it serves, and where clients connect.", Acts.health, (
        _STATUS,
        Field("bootstrap_servers", "string", "What clients are told."),
        Field("version", "string", "kafkalite's version."),
    )),
    Endpoint("GET", "/clock", "The broker's clock.", Acts.clock, _CLOCK),
    Endpoint("POST", "/clock/freeze", "The clock stands still.", Acts.freeze, _CLOCK, body=(_AT,)),
    Endpoint("POST", "/clock/unfreeze", "It goes on from there.", Acts.unfreeze, _CLOCK),
    Endpoint("POST", "/clock/advance", "All time is that much later; done when what fell due is.",
             Acts.advance, _CLOCK, body=(*_DURATION, _EXPIRE)),
    Endpoint("POST", "/faults", "Has requests go wrong.", Acts.add_fault, (_ID,), body=_FAULT,
             status=201),
    Endpoint("GET", "/faults", "All faults, and how often each was met.", Acts.faults, (
        Field("faults", "array", "In the order of their ids.", fields=_KEPT_FAULT),
    )),
    Endpoint("DELETE", "/faults", "Takes all back; what is held goes on.", Acts.remove_faults, (
        Field("removed", "array", "Their ids."),
    )),
    Endpoint("GET", "/faults/{id}", "One fault.", Acts.fault, _KEPT_FAULT),
    Endpoint("DELETE", "/faults/{id}", "Takes it back; what it holds goes on.", Acts.remove_fault,
             _KEPT_FAULT),
    Endpoint("POST", "/faults/{id}/release", "Has what it holds go on.", Acts.release_fault, (
        Field("released", "integer", "How many requests those were."),
    )),
    Endpoint("POST", "/explore", "Makes choices that a real broker may make at any time.",
             Acts.explore, _EXPLORED, body=_EXPLORE, status=201),
    Endpoint("GET", "/explore", "What was done so far.", Acts.explored, _EXPLORED),
    Endpoint("DELETE", "/explore", "Nothing more is chosen; what was done.", Acts.stop_exploring,
             _EXPLORED),
    Endpoint("GET", "/exchanges", "What clients asked and were told, the newest last.",
             Acts.exchanges, (
        Field("exchanges", "array", "The last of them; behind `since` the first.",
              fields=_EXCHANGE),
        Field("last", "integer", "What to give as `since` next time."),
        _IS_CUT,
    ), query=(
        Field("api", "string", "Only those of an API."),
        Field("since", "integer", "Only those behind this index.", least=0),
        Field("limit", "integer", "How many at most.", default=100, least=1, most=1000),
    )),
    Endpoint("DELETE", "/exchanges", "Forgets them.", Acts.forget_exchanges, (
        Field("removed", "integer", "How many."),
    )),
    Endpoint("POST", "/snapshots", "Keeps all that is in memory; connections go on.",
             Acts.take_snapshot, (_ID,), status=201),
    Endpoint("GET", "/snapshots", "All snapshots.", Acts.snapshots, (
        Field("snapshots", "array", "Their ids."),
    )),
    Endpoint("POST", "/snapshots/{id}/restore", "Goes on with what it holds; connections go on.",
             Acts.restore_snapshot, (Field("restored", "string", "Its id."),)),
    Endpoint("DELETE", "/snapshots/{id}", "Forgets it.", Acts.remove_snapshot, (
        Field("removed", "string", "Its id."),
    )),
    Endpoint("POST", "/reset", "Goes on with nothing but the topics that it began with. Clock and "
             "faults stay.", Acts.reset, (_STATUS,)),
    Endpoint("POST", "/disconnect", "Breaks off all connections.", Acts.disconnect, (_STATUS,)),
    Endpoint("POST", "/quiesce", "Done when nothing is under way.", Acts.quiesce, (_STATUS,)),
    Endpoint("POST", "/leaders", "Has a replica lead a partition, which is in sync.",
             Acts.move_leader, (Field("leader", "integer", "Who leads now."),), body=(
        _OF_TOPIC,
        Field("partition", "integer", "Which.", default=0, least=0),
        Field("to", "integer", "The id of its broker; who leads already begins a new epoch.",
              is_required=True),
    )),
    Endpoint("POST", "/topics", "Creates a topic; it can be used when this is done.",
             Acts.create_topic, (Field("name", "string", "Its name."),), body=(
        Field("name", "string", "Its name.", is_required=True),
        Field("partitions", "integer", "How many; -1 for the broker's own number.", default=1),
        Field("configs", "object null", "Its settings: texts, numbers, true or false."),
    ), status=201),
    Endpoint("POST", "/produce", "Writes records, each once.", Acts.produce, (
        Field("written", "integer", "How many."),
    ), body=(
        _OF_TOPIC,
        Field("records", "array", "At most 10,000.", is_required=True, fields=_NEW_RECORD),
    ), status=201, waits=True),
    Endpoint("GET", "/records", "The records of a topic, in the order of partitions and offsets.",
             Acts.records, (
        Field("records", "array", "The first of them.", fields=_RECORD),
        Field("count", "integer", "How many there are."),
        _IS_CUT,
    ), query=(
        _OF_TOPIC,
        Field("count", "integer", "Waits until there are so many.", default=0, least=0),
        Field("timeout", "number", "For so many seconds at most.", default=10, least=0,
              most=MOST_WAIT_SECONDS),
        Field("committed", "boolean", "Without those of open transactions.", default=True),
        _LIMIT,
    ), waits=True),
)  # fmt: skip
