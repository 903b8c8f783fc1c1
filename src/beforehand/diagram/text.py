"""Write a diagram as plain ASCII: a column per node, time from top to bottom."""

from __future__ import annotations

import textwrap

from beforehand.diagram.story import VIOLATION, Arrow, Step, Story

COLUMN = 12
WIDTH = 100
SIGNS = {
    "broadcast": "*",
    "send": "*",
    "deliver": "D",
    "receive": "r",
    "local": "o",
    "expire": "x",
    "drop": "d",
    "crash": "#",
    "recover": "+",
}
LEGEND = {
    "*": "broadcast or send",
    "D": "delivered",
    "r": "received",
    "o": "local",
    "x": "expired",
    "d": "dropped",
    "#": "crash",
    "+": "recovered",
    "?": "other event",
    "!": "violation",
}


def plain_text(story: Story) -> str:
    """Return the diagram in printable ASCII; other characters of names become `?`."""
    place = {node: COLUMN * at for at, node in enumerate(story.nodes)}
    heads = "".join(f"{_cut(node, COLUMN - 2):<{COLUMN}}" for node in story.nodes)
    causes: dict[int, list[Arrow | None]] = {}
    for arrow in story.arrows:
        causes.setdefault(arrow.effect, []).append(arrow)
    lines = [*textwrap.wrap(story.summary, WIDTH), "", heads.rstrip()]
    for at, step in enumerate(story.steps):
        lines += [_line(story, place, step, arrow) for arrow in causes.get(at, (None,))]
    used = dict.fromkeys(_sign(step) for step in story.steps)
    legend = ", ".join(f"{sign} {LEGEND[sign]}" for sign in used)
    arrows = "--> from the peer that sent it" + (
        ", ..> from the broadcast (hops not shown)"
        if any(not arrow.is_hop for arrow in story.arrows)
        else ""
    )
    notes = ("causal order, not to scale", *story.notes)
    lines += ["", *textwrap.wrap(f"{legend}; {arrows}", WIDTH)]
    for note in notes:
        lines += textwrap.wrap(f"- {note}", WIDTH, subsequent_indent="  ")
    text = "\n".join(lines) + "\n"
    return "".join(c if c == "\n" or (c.isascii() and c.isprintable()) else "?" for c in text)


def _sign(step: Step) -> str:
    return "!" if step.mark == VIOLATION else SIGNS.get(step.kind, "?")


def _cut(words: str, most: int) -> str:
    return words if len(words) <= most else f"{words[: most - 1]}~"


def _line(story: Story, place: dict[str, int], step: Step, arrow: Arrow | None) -> str:
    row = [" "] * (COLUMN * len(story.nodes))
    for at in place.values():
        row[at] = "|"
    here = place[step.node]
    if arrow is not None:
        there = place[story.steps[arrow.cause].node]
        shaft = "-" if arrow.is_hop else "."
        for at in range(min(here, there) + 1, max(here, there)):
            row[at] = shaft
        if there != here:
            row[here - 1 if there < here else here + 1] = ">" if there < here else "<"
    row[here] = _sign(step)
    back = ", before it was sent" if arrow is not None and story.is_backward(arrow) else ""
    mark = " VIOLATION" if step.mark == VIOLATION else " (proof)" if step.mark else ""
    note = f" [{step.note}]" if step.note else ""
    return f"{''.join(row)}  {step.words}{back}{note}{mark}".rstrip()
