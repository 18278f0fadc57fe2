"""Chromium without a screen, by its driver's own protocol (WebDriver), and what a page must keep.

Owns the driver's process. What a page must keep is asked within it, by page_checks.js.
"""

from __future__ import annotations

import base64
import json
import re
import shutil
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
DRIVER = "chromedriver"
PATIENCE_S = 30
SIZE = "1280,800"
CHECKS = Path(__file__).with_name("page_checks.js").read_text()
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
ENTER, ESCAPE, DOWN, END = "\ue007", "\ue00c", "\ue015", "\ue010"


def missing() -> str | None:
    """What there is no browser for."""
    if shutil.which(DRIVER) is None:
        return f"there is no {DRIVER}: apt-get install chromium chromium-driver"
    if not any(map(shutil.which, CHROMIUM)):
        return "there is no chromium: apt-get install chromium chromium-driver"
    return None


class Browser:
    """One window."""

    def __init__(self, folder: Path) -> None:
        self._process = subprocess.Popen(
            [DRIVER, "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if found := re.search(r"started successfully on port (\d+)", line):
                self._base = f"http://127.0.0.1:{found[1]}"
                break
        binary = next(filter(None, map(shutil.which, CHROMIUM)))
        options = {
            "binary": binary,
            "args": ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                     "--force-color-profile=srgb", f"--window-size={SIZE}",
                     f"--user-data-dir={folder / 'profile'}"],
        }  # fmt: skip
        always = {"browserName": "chrome", "goog:chromeOptions": options,
                  "goog:loggingPrefs": {"browser": "ALL"}}  # fmt: skip
        made = self._ask("POST", "/session", {"capabilities": {"alwaysMatch": always}})
        self._session = f"/session/{made['sessionId']}"

    def _ask(self, method: str, path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            self._base + path, data, {"content-type": "application/json"}, method=method
        )
        try:
            with urllib.request.urlopen(request, timeout=90) as answer:
                return json.loads(answer.read())["value"]
        except urllib.error.HTTPError as error:
            told = json.loads(error.read())["value"]
            raise AssertionError(f"{told['error']}: {told['message'][:500]}") from None

    def _do(self, path: str, **body: Any) -> Any:
        return self._ask("POST", self._session + path, body)

    def open(self, url: str) -> None:
        self._do("/url", url=url)

    def run(self, script: str, *args: Any) -> Any:
        return self._do("/execute/sync", script=script, args=list(args))

    def until(self, script: str, *args: Any) -> Any:
        """What an expression comes to when it is neither null nor false."""
        deadline = time.monotonic() + PATIENCE_S
        while not (found := self.run(f"return {script}", *args)):
            if time.monotonic() > deadline:
                text = self.run("return document.body.innerText")
                raise AssertionError(f"never came: {script} {args}; the page says: {text[:1500]}")
            time.sleep(0.05)
        return found

    def sees(self, text: str, where: str = "body") -> None:
        self.until("document.querySelector(arguments[1])?.innerText.includes(arguments[0])",
                   text, where)  # fmt: skip

    def sees_no(self, text: str, where: str = "main") -> None:
        self.until("!document.querySelector(arguments[1])?.innerText.includes(arguments[0])",
                   text, where)  # fmt: skip

    def click(self, text: str, kind: str = "button, a", where: str = "body") -> None:
        """The last of what has exactly this text, or is labelled so; again when it is drawn anew in
        that moment."""
        try:
            self._click(text, kind, where)
        except AssertionError as error:
            if "stale element" not in str(error):
                raise
            self._click(text, kind, where)

    def _click(self, text: str, kind: str, where: str) -> None:
        found = self.until(
            "[...(document.querySelector(arguments[2]) ?? document.body).querySelectorAll("
            "arguments[1])].filter((each) => [each.innerText?.trim(), each.getAttribute("
            "'aria-label')].includes(arguments[0]) && !each.disabled).at(-1)", text, kind, where,
        )  # fmt: skip
        self._do(f"/element/{found[ELEMENT]}/click")

    def write(self, label: str, text: str, where: str = "body") -> None:
        """Into the control of a label."""
        found = self.until(
            "(() => { const root = document.querySelector(arguments[1]); if (!root) return null;"
            "const label = [...root.querySelectorAll('label')].find((each) =>"
            "each.innerText.trim() === arguments[0]);"
            "return label ? document.getElementById(label.htmlFor) : "
            "root.querySelector(`[aria-label=\"${arguments[0]}\"]`); })()", label, where,
        )  # fmt: skip
        if self.run("return arguments[0].tagName === 'SELECT'", found):
            self.run("arguments[0].value = arguments[1];"
                     "arguments[0].dispatchEvent(new Event('change'))", found, text)  # fmt: skip
            return
        if self.run("return arguments[0].type === 'checkbox'", found):
            self._do(f"/element/{found[ELEMENT]}/click")
            return
        self._do(f"/element/{found[ELEMENT]}/clear")
        if text:
            self._do(f"/element/{found[ELEMENT]}/value", text=text)

    def keys(self, *keys: str) -> None:
        """To whatever has the focus."""
        actions = [{"type": kind, "value": key} for key in keys for kind in ("keyDown", "keyUp")]
        self._do("/actions", actions=[{"type": "key", "id": "keys", "actions": actions}])

    def scheme(self, name: str) -> None:
        """light or dark."""
        features = [{"name": "prefers-color-scheme", "value": name}]
        self._do("/goog/cdp/execute", cmd="Emulation.setEmulatedMedia",
                 params={"media": "screen", "features": features})  # fmt: skip

    def screenshot(self, path: Path) -> None:
        data = base64.b64decode(self._ask("GET", f"{self._session}/screenshot"))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)

    def said(self) -> list[str]:
        """What the console of the browser said since it was last asked; a request that was
        refused, which the page tells, is said there, too."""
        entries = self._do("/se/log", type="browser")
        return [each["message"] for each in entries if each["source"] != "network"]

    def asked(self) -> list[str]:
        """Where all came from that the page has loaded."""
        found: list[str] = self.run(
            "return performance.getEntriesByType('resource').map((each) => each.name)"
        )
        return found

    def mistakes(self) -> list[str]:
        found: list[str] = self.run(CHECKS)
        return found

    def close(self) -> None:
        try:
            self._ask("DELETE", self._session)
        finally:
            self._process.terminate()
            self._process.communicate(timeout=20)


def timed(act: Callable[[], Any]) -> float:
    begin = time.monotonic()
    act()
    return time.monotonic() - begin
