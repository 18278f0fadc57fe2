"""Plants differences in replies, one at a time: in every field, element and order of every answer.

The comparison has to report each. `survey` says how many were planted and which rows of the table
let some pass: that list is a file of its own, and its every line is a place where the brokers may
differ unseen. Run as `python -m tests.differential.planting`.
"""

from __future__ import annotations

import argparse
import copy
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from kafkalite.client.wire import NoReply
from kafkalite.protocol import spec
from kafkalite.protocol.errors import Error
from kafkalite.protocol.files import api_files
from kafkalite.protocol.messages import message_class
from kafkalite.testing.comparison.comparing import GATHERED, Comparison, Difference
from kafkalite.testing.comparison.differences import explain, unexplained
from kafkalite.testing.comparison.names import Names
from kafkalite.testing.comparison.views import Unknown, View
from tests.differential.odd_requests import ODD_REQUESTS
from tests.differential.replies import reply
from tests.differential.scenes import SCENES, Scene

GOLDEN = Path(__file__).parent / "planted.txt"
DAY_MS = 86_400_000
NEW_ID = "an id that is new to both"
IN_ONE_PLACE = "what stands in several places of a list is one"


@dataclass(frozen=True, slots=True)
class Plant:
    """A change of a reply. `do` changes the view, which is a copy."""

    path: str
    change: str
    do: Callable[[Any], None]


@dataclass(slots=True)
class Survey:
    planted: int = 0
    fields: set[tuple[str, int, str]] = field(default_factory=set)
    passed: dict[tuple[str, str, str, str], set[int]] = field(
        default_factory=lambda: defaultdict(set)
    )  # by API, path, change and row: the versions
    unseen: list[str] = field(default_factory=list)

    def lines(self) -> Iterator[str]:
        apis = {api for api, _, _ in self.fields}
        versions = {(api, version) for api, version, _ in self.fields}
        yield (
            f"{self.planted} differences planted in {len(self.fields)} fields of"
            f" {len(versions)} versions of {len(apis)} APIs; {len(self.unseen)} not seen"
        )
        by_row: Counter[str] = Counter()
        for (_, _, _, row), found in self.passed.items():
            by_row[row] += len(found)
        for row, count in sorted(by_row.items()):
            yield f"{count:6} passed by: {row}"
        for (api, path, change, row), found in sorted(self.passed.items()):
            yield f"{api} v{_listed(found)} {path}: {change} ({row})"


def _listed(numbers: Iterable[int]) -> str:
    return ",".join(map(str, sorted(numbers)))


def asked_apis() -> list[spec.Api]:
    """Every API that a client can ask for."""
    apis = (spec.api(key) for key in sorted(api_files()))
    return [api for api in apis if "broker" in api.listeners]


def survey(apis: Iterable[spec.Api]) -> Survey:
    """In the last version of each layout of their answers."""
    done = Survey()
    for api in apis:
        for version in every_layout(api):
            plant_all(done, api.name, version, message_class(f"{api.name}Request")(), "")
        for name, asked in ODD_REQUESTS.get(api.name, {}).items():
            last = api.stable[-1]
            plant_all(done, api.name, last, asked, f" asked: {name}")
        for scene in SCENES:
            if scene.api == api.name:
                _plant_beside(done, scene, api.stable[-1])
    return done


def plant_all(done: Survey, api: str, version: int, asked: Any, how: str) -> None:
    for refused in (False, True):
        message = reply(api, version, refused=refused)
        for is_new in (False, True) if not how and not refused else (False,):
            _plant_in(done, message, version, asked, how, is_new=is_new)
    _plant_outcomes(done, api, version, asked, how)


def _plant_in(
    done: Survey, message: Any, version: int, asked: Any, how: str, *, is_new: bool
) -> None:
    """In each place of a view, on either side; `is_new` leaves ids that nobody has seen so far."""
    api = message.SPEC.api.name
    names = Names(), Names()
    comparison = Comparison(*names)
    views = [View(each) for each in names]
    if not is_new:
        comparison.learn(*(each.of(message, version) for each in views))
    whole = [each.of(message, version) for each in views]
    assert comparison.differences(api, version, whole[0], whole[1], asked) == []
    for plant in plants("", whole[0]):
        if is_new and "id" not in plant.change.split():
            continue
        for side in (0, 1):
            pair = list(whole)
            pair[side] = _copied(whole[side])
            plant.do(pair[side])
            found = comparison.differences(api, version, pair[0], pair[1], asked)
            done.planted += 1
            done.fields.add((api, version, plant.path))
            where = f"{api} v{version} {plant.path}: {plant.change}{how}"
            side_name = ("ours", "theirs")[side]
            if not found:
                if is_new:
                    done.passed[api, plant.path, plant.change, NEW_ID].add(version)
                else:
                    done.unseen.append(f"{where} {side_name}")
            elif not unexplained(found):
                rows = sorted({row.name for row in map(explain, found) if row})
                key = (api, plant.path, f"{plant.change}, {side_name}{how}", ", ".join(rows))
                done.passed[key].add(version)


def _plant_beside(done: Survey, scene: Scene, version: int) -> None:
    """In each place of two views that differ already, as a row says: what else it lets pass."""
    names = Names(), Names()
    comparison = Comparison(*names)
    message = reply(scene.api, version)
    views = [View(each) for each in names]
    comparison.learn(*(each.of(message, version) for each in views))
    whole = [each.of(message, version) for each in views]
    scene.part(*whole)

    def compared(pair: list[Any]) -> list[Difference]:
        return comparison.differences(scene.api, version, pair[0], pair[1], scene.asked)

    base = compared(whole)
    assert scene.row in {row.name for row in map(explain, base) if row}, scene
    assert unexplained(base) == [], scene
    known = set(map(str, base))
    for side, side_name in enumerate(("ours", "theirs")):
        for plant in plants("", whole[side]):
            pair = list(whole)
            pair[side] = _copied(whole[side])
            plant.do(pair[side])
            if pair[side] == whole[side]:
                continue
            found = compared(pair)
            done.planted += 1
            new = [each for each in found if str(each) not in known]
            rows = {row.name for row in map(explain, new) if row}
            key = scene.api, plant.path, f"{plant.change}, {side_name} beside: {scene.row}"
            if set(map(str, found)) == known and scene.api in GATHERED:
                done.passed[*key, IN_ONE_PLACE].add(version)
            elif set(map(str, found)) == known:
                done.unseen.append(" ".join(key))
            elif scene.row in rows and not unexplained(found):
                done.passed[*key, ", ".join(sorted(rows))].add(version)


def _copied(view: Any) -> Any:
    if isinstance(view, dict):
        return {name: _copied(value) for name, value in view.items()}
    return [_copied(each) for each in view] if isinstance(view, list) else view


def _plant_outcomes(done: Survey, api: str, version: int, asked: Any, how: str) -> None:
    names = Names(), Names()
    view = View(names[0]).of(reply(api, version), version)
    for outcome in (each.value for each in NoReply):
        for ours, theirs in ((view, outcome), (outcome, view)):
            found = Comparison(*names).differences(api, version, ours, theirs, asked)
            done.planted += 1
            if not found:
                done.unseen.append(f"{api} v{version} {outcome}{how}")
            elif not unexplained(found):
                row = explain(found[0])
                assert row is not None
                done.passed[api, found[0].path, f"instead of an answer{how}", row.name].add(version)


# --- changes --------------------------------------------------------------------------------------


def plants(path: str, view: Any) -> Iterator[Plant]:
    """Every change of what is in this view."""
    for name, value in view.items():
        inner = f"{path}.{name}" if path else name
        yield from _of_value(inner, value, _setter(name))
        if isinstance(value, dict):
            yield from _inside(plants(inner, value), name)
        elif isinstance(value, list):
            yield from _inside(_of_list(inner, value), name)


def _of_list(path: str, values: list[Any]) -> Iterator[Plant]:
    """Changes of its elements, and of which there are."""
    if not values:
        return
    yield Plant(f"{path}[]", "first dropped", lambda target: target.pop(0))
    yield Plant(f"{path}[]", "last dropped", lambda target: target.pop())
    yield Plant(f"{path}[]", "all dropped", lambda target: target.clear())
    yield Plant(f"{path}[]", "one twice", lambda target: target.append(copy.deepcopy(target[0])))
    if len(values) > 1 and values[0] != values[1]:
        yield Plant(f"{path}[]", "swapped", _swap)
    seen: set[str] = set()
    for number, value in enumerate(values):
        changes = (
            plants(f"{path}[]", value)
            if isinstance(value, dict)
            else _of_value(f"{path}[]", value, _setter(number))
        )
        if isinstance(value, dict):
            changes = _inside(changes, number)
        kind = f"{value.keys()} {value.get('attributes')}" if isinstance(value, dict) else ""
        if kind not in seen:  # of like elements one is enough
            seen.add(kind)
            yield from changes


def _swap(target: list[Any]) -> None:
    target[0], target[1] = target[1], target[0]


def _of_value(path: str, value: Any, put: Callable[..., None]) -> Iterator[Plant]:
    for change, other in _others(value):
        yield Plant(path, change, partial(put, value=other))
    if value is not None:
        yield Plant(path, "null", partial(put, value=None))


def _others(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Unknown):
        yield "another id", Unknown(value.kind, _another(value.actual))
    elif isinstance(value, bool):
        yield "the opposite", not value
    elif isinstance(value, int):
        yield "one more", value + 1
        yield "a day more", value + DAY_MS
        yield "none", -2 if value == -1 else -1
    elif isinstance(value, float):
        yield "one more", value + 1
    elif isinstance(value, str):
        yield "another", "UNKNOWN_SERVER_ERROR" if value in Error.__members__ else f"{value}, not"
        yield "empty", ""
    elif isinstance(value, bytes):
        yield "another", _another(value)
        yield "empty", b""


def _another(value: Any) -> Any:
    if isinstance(value, bytes):
        return bytes(255 - each for each in value) or b"x"
    return f"{value}, not" if isinstance(value, str) else value + 7


def _setter(name: Any) -> Callable[..., None]:
    def put(target: Any, value: Any) -> None:
        target[name] = value

    return put


def _inside(changes: Iterable[Plant], name: Any) -> Iterator[Plant]:
    for each in changes:
        yield Plant(each.path, each.change, partial(_do_inside, each, name))


def _do_inside(plant: Plant, name: Any, target: Any) -> None:
    plant.do(target[name])


# --- asked by hand --------------------------------------------------------------------------------


def every_layout(api: spec.Api) -> Iterable[int]:
    """The last version of each layout of the answer."""
    root = spec.message(f"{api.name}Response").root
    layouts = {repr(_layout(root, version)): version for version in api.versions}
    return sorted(layouts.values())


def _layout(struct: spec.Struct, version: int) -> list[Any]:
    return [
        (each.name, version in each.nullable, each.struct and _layout(each.struct, version))
        for each in struct.fields
        if each.is_in(version)
    ]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.differential.planting")
    parser.add_argument("--write", action="store_true", help="write planted.txt anew")
    options = parser.parse_args()
    done = survey(asked_apis())
    text = "".join(f"{line}\n" for line in done.lines())
    for each in done.unseen:
        print(f"not seen: {each}")
    print(next(iter(done.lines())))
    if options.write:
        GOLDEN.write_text(text, encoding="utf-8")
        return len(done.unseen)
    is_same = GOLDEN.read_text(encoding="utf-8") == text
    print("what passes is what planted.txt says" if is_same else "planted.txt says otherwise")
    return len(done.unseen) + (not is_same)


if __name__ == "__main__":
    raise SystemExit(1 if main() else 0)
