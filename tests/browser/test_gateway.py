"""The chat page of a gateway in a browser, with a member behind another gateway."""

import json
import re
import subprocess
import sys
import time
import urllib.request
from contextlib import contextmanager

import pytest

from beforehand.runtime.crypto.keys import new_group
from tests.browser.chromium import PATIENCE_S, Chromium
from tests.runtime.fixtures.overlays import free_ports

pytest.importorskip("aiohttp")
pytestmark = pytest.mark.browser


@contextmanager
def gateway(folder, name, listen, *peers):
    """Run a gateway; yield the address that it prints."""
    command = [
        *(sys.executable, "-m", "beforehand", "-q", "gateway", "harbour", "--name", name),
        *("--port", "0", "--listen", f"127.0.0.1:{listen}", "--no-discover", "--durable", "os"),
        *(word for peer in peers for word in ("--peer", f"127.0.0.1:{peer}")),
    ]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()
            process.wait(PATIENCE_S)


def ask(address, path, data=None):
    """Send a request with the token of the printed address."""
    base, token = re.fullmatch(r"(http://127\.0\.0\.1:\d+)/#token=([\w-]+)", address).groups()
    headers = {"Authorization": f"Bearer {token}"}
    request = urllib.request.Request(base + path, data, headers)
    with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
        return json.load(answer)


def test_a_browser_takes_part_in_a_group_through_a_gateway(tmp_path):
    new_group("harbour").write(tmp_path / "harbour.key")
    first, second = free_ports(2)
    with (
        gateway(tmp_path, "ann", first) as ann,
        gateway(tmp_path, "bob", second, first) as bob,
        Chromium(tmp_path / "profile") as browser,
    ):
        browser.events.clear()
        browser.call("Page.navigate", url=ann)
        browser.wait("document.getElementById('state')?.textContent === 'connected as ann'")
        ask(bob, "/messages", b"<b>fog</b> at pier 4")
        browser.wait("document.querySelector('#messages li')?.textContent.includes('pier 4')")
        shown = browser.evaluate("document.querySelector('#messages li').textContent")
        assert shown == "bob<b>fog</b> at pier 4"
        browser.evaluate("document.getElementById('text').value = 'seen'")
        browser.evaluate("document.getElementById('send').click()")
        deadline = time.monotonic() + PATIENCE_S
        texts = []
        while texts[-1:] != ["seen"]:
            assert time.monotonic() < deadline
            texts = [m["text"] for m in ask(bob, "/messages?after=1&wait=5")["messages"]]
        browser.wait("document.querySelectorAll('#messages .own').length === 1")
        assert browser.complaints() == []
        origin = ann.partition("#")[0]
        assert {url.startswith(origin) for url in browser.requests()} == {True}
        # With a wrong token the page is told so, and shows nothing.
        browser.call("Page.navigate", url="about:blank")
        browser.wait("location.href === 'about:blank'")
        browser.call("Page.navigate", url=f"{origin}#token=wrong")
        browser.wait("document.getElementById('state')?.textContent.startsWith('wrong token')")
        assert browser.evaluate("document.querySelectorAll('#messages li').length") == 0
