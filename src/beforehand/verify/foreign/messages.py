"""Judge logs of sends and receives: each receive has its send, and none comes before it."""

from __future__ import annotations

from collections.abc import Sequence

from beforehand.logs.model import RECEIVE, SEND, Event, Run
from beforehand.verify.foreign.chains import Graph, Place
from beforehand.verify.foreign.findings import Finding, Judged, Order, name_some

WHOLE_HINT = "if the files are the whole run, pass `--whole`"


def judge_messages(run: Run, *, is_whole: bool = False) -> Judged:
    """Judge sends and receives.

    is_whole: whether the log has every event of the run, so that a message without a send is a
    violation.
    """
    order = Order(run, run.events)
    judged = Judged(doubts=[*order.doubts, *order.gaps()], notes=order.notes)
    judged.edges = sum(len(sequence) - 1 for sequence in order.sequences)
    sends: dict[str, list[Place]] = {}
    receives: dict[str, list[Place]] = {}
    for number, sequence in enumerate(order.sequences):
        for index, event in enumerate(sequence):
            if event.kind in (SEND, RECEIVE) and not event.message:
                judged.notes.append(f"{event.where} names no message")
            elif event.kind in (SEND, RECEIVE):
                kept = sends if event.kind == SEND else receives
                kept.setdefault(event.message, []).append((number, index))
    pairs = _pairs(order.sequences, sends, receives, judged, is_whole)
    effects: dict[Place, list[Place]] = {}
    for send, receive in pairs:
        effects.setdefault(send, []).append(receive)
        judged.messages += 1
        judged.edge(_at(order.sequences, send), _at(order.sequences, receive))
    if run.is_total:
        _judge_positions(order.sequences, pairs, judged)
    else:
        _judge_order(Graph(order.sequences, effects), pairs, judged)
    never = sorted(message for message in sends if message not in receives)
    if never:
        judged.notes.append(name_some(never, "messages were sent and never received"))
    return judged


def _at(sequences: Sequence[Sequence[Event]], place: Place) -> Event:
    return sequences[place[0]][place[1]]


def _pairs(
    sequences: list[list[Event]],
    sends: dict[str, list[Place]],
    receives: dict[str, list[Place]],
    judged: Judged,
    is_whole: bool,
) -> list[tuple[Place, Place]]:
    """Return the sends with their receives, and judge messages whose numbers do not match."""
    pairs = []
    unsent, unsure = [], []
    for message, gets in sorted(receives.items()):
        puts = sends.get(message, [])
        if len(puts) > 1:
            unsure.append(message)
        if len(puts) == 1:
            pairs += [(puts[0], get) for get in gets[:1]]
        if not puts and not is_whole:
            unsent.append(message)
            continue
        events = [_at(sequences, place) for place in (*puts, *gets)]
        if not puts:
            judged.add(
                "receive without send", f"`{message}` is received, and was never sent", *events
            )
        elif len(gets) > len(puts):
            what = f"`{message}` is sent {len(puts)} times and received {len(gets)} times"
            judged.add("receive too many", what, *events)
    if unsent:
        judged.doubts.append(f"{name_some(unsent, 'received messages have no send')}; {WHOLE_HINT}")
    if unsure:
        what = "messages are sent several times: which one was received is not known"
        judged.doubts.append(name_some(unsure, what))
    return pairs


def _judge_positions(
    sequences: list[list[Event]], pairs: list[tuple[Place, Place]], judged: Judged
) -> None:
    """Find receives before their sends where the positions order all events of the run."""
    for send, receive in pairs:
        put, got = _at(sequences, send), _at(sequences, receive)
        if (got.position or 0) < (put.position or 0):
            what = f"`{got.node}` received `{got.message}` before `{put.node}` sent it"
            judged.add("receive before send", what, got, put)


def _judge_order(graph: Graph, pairs: list[tuple[Place, Place]], judged: Judged) -> None:
    """Find receives that precede their own send in every possible order."""
    send_of = {receive: send for send, receive in pairs}
    at = [0] * len(graph.sequences)
    waiting: dict[Place, list[int]] = {}
    ready = list(range(len(at)))
    forced: set[Place] = set()
    while True:
        while ready:
            number = ready.pop()
            while at[number] < len(graph.sequences[number]):
                place = (number, at[number])
                send = send_of.get(place)
                if send and at[send[0]] <= send[1] and place not in forced:
                    waiting.setdefault(send, []).append(number)
                    break
                at[number] += 1
                ready += waiting.pop(place, ())
        stuck = sorted((n, at[n]) for n in range(len(at)) if at[n] < len(graph.sequences[n]))
        if not stuck:
            return
        place = next(p for p in stuck if _follows(graph, p, send_of[p]))
        _report(graph, place, send_of[place], judged)
        forced.add(place)
        waiting[send_of[place]].remove(place[0])
        ready.append(place[0])


def _follows(graph: Graph, receive: Place, send: Place) -> bool:
    return (receive[0] == send[0] and receive[1] < send[1]) or bool(graph.path(receive, send))


def _report(graph: Graph, receive: Place, send: Place, judged: Judged) -> None:
    got, put = _at(graph.sequences, receive), _at(graph.sequences, send)
    what = f"`{got.node}` received `{got.message}` before `{put.node}` sent it, in every order"

    def chain() -> list[Event]:
        if receive[0] == send[0]:
            return [got, put]
        return graph.path(receive, send)

    judged.findings.append(Finding("receive before send", what, chain))
