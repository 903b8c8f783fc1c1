"""Drive Firefox without a screen over Marionette, its own protocol: no driver, no extra package.

A message is JSON with its length before it, over a connection on the loopback interface.
"""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import time
from pathlib import Path
from typing import Any

EXECUTABLE = shutil.which("firefox-esr") or shutil.which("firefox")
PATIENCE_S = 120


class Firefox:
    """One browser with one tab. Use it in a `with`."""

    def __init__(self, profile: Path) -> None:
        assert EXECUTABLE, "firefox is not installed"
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        (profile / "user.js").write_text(f'user_pref("marionette.port", {port});\n')
        flags = ("--headless", "--marionette", "--no-remote", "--profile", str(profile))
        silent = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
        self._process = subprocess.Popen([EXECUTABLE, *flags], **silent)
        self._link = self._connect(port)
        self._number = 0
        self._receive()  # its greeting
        self.call("WebDriver:NewSession", capabilities={})

    def _connect(self, port: int) -> socket.socket:
        end = time.monotonic() + PATIENCE_S
        while True:
            try:
                return socket.create_connection(("127.0.0.1", port), PATIENCE_S)
            except ConnectionRefusedError:
                assert time.monotonic() < end, "Firefox does not answer"
                assert self._process.poll() is None, "Firefox ended"
                time.sleep(0.1)

    def __enter__(self) -> Firefox:
        return self

    def __exit__(self, *_: object) -> None:
        self._link.close()
        self._process.terminate()
        self._process.wait(PATIENCE_S)

    def _receive(self) -> Any:
        head = b""
        while not head.endswith(b":"):
            head += self._link.recv(1)
        body = b""
        while len(body) < int(head[:-1]):
            body += self._link.recv(int(head[:-1]) - len(body))
        return json.loads(body)

    def call(self, command: str, **arguments: Any) -> Any:
        """Return the browser's answer."""
        self._number += 1
        body = json.dumps([0, self._number, command, arguments]).encode()
        self._link.sendall(f"{len(body)}:".encode() + body)
        _, _, error, value = self._receive()
        assert error is None, error
        return value

    def evaluate(self, expression: str) -> Any:
        script = f"return {expression}"
        return self.call("WebDriver:ExecuteScript", script=script, args=[])["value"]

    def wait(self, condition: str) -> None:
        end = time.monotonic() + PATIENCE_S
        while not self.evaluate(f"Boolean({condition})"):
            assert time.monotonic() < end, condition
            time.sleep(0.05)

    def resize(self, width: int, height: int) -> None:
        self.call("WebDriver:SetWindowRect", width=width, height=height)

    def open(self, page: Path, *, until: str) -> None:
        self.call("WebDriver:Navigate", url=page.as_uri())
        self.wait(until)

    def press(self, key: str) -> None:
        """Press a key: a letter, or the code that WebDriver has for another one."""
        presses = [{"type": kind, "value": key} for kind in ("keyDown", "keyUp")]
        self.call(
            "WebDriver:PerformActions", actions=[{"type": "key", "id": "k", "actions": presses}]
        )

    def click(self, x: float, y: float) -> None:
        move = {"type": "pointerMove", "x": round(x), "y": round(y), "duration": 0}
        steps = [move, *({"type": kind, "button": 0} for kind in ("pointerDown", "pointerUp"))]
        mouse = {"type": "pointer", "id": "m", "parameters": {"pointerType": "mouse"}}
        self.call("WebDriver:PerformActions", actions=[{**mouse, "actions": steps}])
