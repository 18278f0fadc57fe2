"""The table of what requests ask, as a page: `python -m tests.unit.security.page > PAGE`."""

from __future__ import annotations

from kafkalite.security.asks import asks

_HOW = {"all": "the request", "each": "each entry", "own": "at its own place"}


def as_page() -> str:
    lines = [
        "# Which request asks what",
        "",
        "With an authorizer, before a request of these APIs does something, it is asked whether",
        "its sender may. Made from `security/asks.py`, which drives the checks; do not edit.",
        "",
        "| API | refused is | asks | remark |",
        "| --- | --- | --- | --- |",
    ]
    for api, rows in asks().items():
        if not rows:
            lines.append(f"| {api} | | nothing | |")
        for ask in rows:
            note = ask.note
            if len(ask.versions) < 2**15:
                note = f"from version {ask.versions.start} on {note}".strip()
            if ask.is_for_controllers:
                note = f"at a controller's listener {note}".strip()
            lines.append(f"| {api} | {_HOW[ask.how]} | {ask} | {note} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(as_page(), end="")
