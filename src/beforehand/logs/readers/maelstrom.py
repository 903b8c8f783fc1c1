"""Read the logs of Maelstrom's nodes: the finest view of a broadcast."""

from __future__ import annotations

import json
import re
from typing import Any

from beforehand.logs.model import Event, Reading, Run
from beforehand.logs.source import Source

RECEIVED = re.compile(
    r"^\S+ (?:\S+ )?Received \{(?P<src>\S+) (?P<dst>\S+) (?P<body>\{.*\})\}$", re.M
)
SENT = re.compile(r"^\S+ (?:\S+ )?Sent (?P<json>\{.*\})$", re.M)


def is_node_log(source: Source) -> str:
    return "lines `Received {c4 n0 {...}}`" if RECEIVED.search(source.head) else ""


def read_node_logs(sources: list[Source], why: str) -> Reading:
    """Return one run of all nodes: a broadcast of a client, and first receipts as deliveries."""
    reading = Reading("maelstrom-node", why, [], [source.name for source in sources])
    name = sources[0].short if len(sources) == 1 else sources[0].folder.rpartition("/")[2]
    run = Run(name, "messages")
    between = again = sent = 0
    for source in sources:
        seen: set[str] = set()
        matched = 0
        for match in RECEIVED.finditer(source.text):
            matched += 1
            body = _json(match["body"])
            is_client = match["src"][0] == "c"
            between += not is_client
            kind = body.get("type")
            values = body.get("messages") if kind == "gossip" and "message" not in body else None
            values = values if isinstance(values, list) else [body.get("message")]
            if kind not in ("broadcast", "gossip"):
                continue
            for value in values:
                message = json.dumps(value)
                if message in seen:
                    again += 1
                    continue
                seen.add(message)
                line = source.line_at(match.start())
                event = Event(match["dst"], "deliver", source.name, line, message=message)
                event.kind = "broadcast" if is_client else "deliver"
                event.text = match[0][-80:]
                run.events.append(event)
        for match in SENT.finditer(source.text):
            matched += 1
            sent += str(_json(match["json"]).get("dest", ""))[:1] == "n"
        reading.skipped["lines that are no messages"] += (
            sum(bool(line.strip()) for line in source.lines) - matched
        )
    reading.skipped = +reading.skipped
    run.notes.append(f"{between:,} messages between nodes were received, of {sent:,} sent")
    if again:
        run.notes.append(f"{again:,} further receipts are gossip, and no second deliveries")
    _doubt(run)
    reading.assumed.append("the first receipt of a message at a node is its delivery")
    reading.runs = [run]
    return reading


def _json(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _doubt(run: Run) -> None:
    nodes = {event.node for event in run.events}
    broadcasts = {event.message for event in run.events if event.kind == "broadcast"}
    missed = len(nodes) * len(broadcasts) - len(run.events)
    if broadcasts and missed > 0:
        run.notes.append(f"{missed:,} (node, message) pairs were missed for good")
