"""Read logs of actors: CAF, and the interleavings of Concuerror."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from beforehand.logs.model import Event, Reading, Run
from beforehand.logs.source import Source

CAF = re.compile(r"^\d+ caf\S* [A-Z]+ actor(?P<node>\d+) \d+ ")
CAF_MESSAGE = re.compile(
    r"(?P<kind>SEND|RECEIVE) ; (?:TO = (?P<to>\d+)@\S+ ; )?FROM = (?P<source>\S+) ; "
    r"STAGES = \[.*?\] ; CONTENT = (?P<content>.*)",
    re.DOTALL,
)
RUN = re.compile(r"^Interleaving #(?P<run>\d+)$")
STEP = re.compile(r"^ *(?P<at>\d+): (?P<node>P(?:\.\d+)*): (?P<text>.*)$")
SEND = re.compile(r"^(?P<content>.*) = (?P<to>\S+) ! (?P=content)$")
RECEIVE = re.compile(r"^receives message \((?P<content>.*)\)$")
REGISTER = re.compile(r"erlang:register\((?P<name>[^,]+), *(?P<node>P(?:\.\d+)*)\)")
INSTANT = "{instant_delivery,true}"


def is_caf(source: Source) -> str:
    lines = [line for line in source.head.split("\n") if line.strip()]
    return (
        "lines of CAF: a component, a level and an actor" if lines and CAF.match(lines[0]) else ""
    )


def read_caf(sources: list[Source], why: str) -> Reading:
    """Return the sends and receives of actors. CAF gives messages no ids."""
    reading = Reading("caf", why, [], [source.name for source in sources])
    reading.assumed.append("a message is its sender, its receiver and its content")
    for source in sources:
        run = Run(source.short, "messages")
        run.doubts.append("CAF writes no ids of messages: they are paired by their content")
        for line, node, text in _caf_records(source):
            match = CAF_MESSAGE.search(text)
            if match is None:
                reading.skipped["lines that neither send nor receive"] += 1
                continue
            is_send = match["kind"] == "SEND"
            name = f"{match['source']} to {match['to'] if is_send else node}: {match['content']}"
            event = Event(f"actor{node}", "send" if is_send else "receive", source.name, line)
            event.message, event.text = name.strip(), match["content"][:200]
            run.events.append(event)
        reading.runs.append(run)
    return reading


def _caf_records(source: Source) -> Iterator[tuple[int, str, str]]:
    """Yield the line, the actor and the text of each record; contents may have line breaks."""
    begin, node, text = 0, "", ""
    for number, line in enumerate(source.lines, 1):
        if match := CAF.match(line):
            if begin:
                yield begin, node, text
            begin, node, text = number, match["node"], line
        else:
            text += "\n" + line
    if begin:
        yield begin, node, text


def is_concuerror(source: Source) -> str:
    lines = source.head.split("\n")
    is_found = any(map(RUN.match, lines)) and any(map(STEP.match, lines))
    return "Concuerror: `Interleaving #` and numbered steps of processes" if is_found else ""


def read_concuerror(sources: list[Source], why: str) -> Reading:
    """Return one run per interleaving.

    A mailbox keeps the order of sends if messages are delivered at once. So the k-th receive of a
    content at a process is the k-th send of that content to it.
    """
    reading = Reading("concuerror", why, [], [source.name for source in sources])
    for source in sources:
        run = None
        names: dict[str, str] = {}
        counts: Counter[tuple[str, str, str]] = Counter()
        for number, line in enumerate(source.lines, 1):
            if found := RUN.match(line):
                run = Run(f"{source.short}#{found['run']}", "messages")
                run.is_total = True
                if INSTANT not in source.head:
                    run.doubts.append("messages may overtake each other, and have no ids")
                reading.runs.append(run)
                names, counts = {}, Counter()
            elif run is not None and (step := STEP.match(line)):
                run.events.append(_step(step, source, number, names, counts))
            elif line.startswith("* "):
                reading.skipped["lines about errors"] += 1
    return reading


def _step(
    step: re.Match[str],
    source: Source,
    line: int,
    names: dict[str, str],
    counts: Counter[tuple[str, str, str]],
) -> Event:
    """Return the event of one step.

    names: the process of each registered name so far.
    counts: how often each content was sent to, and received by, each process so far.
    """
    event = Event(step["node"], "local", source.name, line, text=step["text"][:200])
    event.position = int(step["at"])
    if found := REGISTER.search(step["text"]):
        names[found["name"]] = found["node"]
    sent, received = SEND.match(step["text"]), RECEIVE.match(step["text"])
    match = sent or received
    if match:
        event.kind = "send" if sent else "receive"
        target = names.get(sent["to"], sent["to"]) if sent else event.node
        key = (event.kind, target, match["content"])
        counts[key] += 1
        event.message = f"{match['content']} to {target} #{counts[key]}"
    return event
