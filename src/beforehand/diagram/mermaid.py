"""Write a diagram as a sequence diagram of Mermaid, which GitHub and many wikis draw."""

from __future__ import annotations

import re

from beforehand.diagram.story import VIOLATION, Arrow, Step, Story

PLAIN = set(" .,-_+/()=*")
END = re.compile(r"\bend\b")
"""A keyword that ends a block, wherever it stands."""
INSTANT = {"deliver": "delivers", "receive": "receives", "broadcast": "broadcasts", "send": "sends"}


def mermaid_text(story: Story) -> str:
    actor = {node: f"n{at}" for at, node in enumerate(story.nodes)}
    lines = ["sequenceDiagram", f"  %% {_comment(story.summary)}"]
    lines += [f"  participant {actor[node]} as {_escape(node)}" for node in story.nodes]
    into: dict[int, list[Arrow]] = {}
    for arrow in story.arrows:
        into.setdefault(arrow.effect, []).append(arrow)
    for at, step in enumerate(story.steps):
        for arrow in into.get(at, ()):
            cause = story.steps[arrow.cause]
            line = "->>" if arrow.is_hop else "-->>"
            words = _escape(step.message or cause.message or step.kind)
            lines.append(f"  {actor[cause.node]}{line}{actor[step.node]}: {words}")
        lines.append(f"  Note over {actor[step.node]}: {_escape(_words(step))}")
    lines += [f"  %% {_comment(note)}" for note in story.notes]
    return "\n".join(lines) + "\n"


def _words(step: Step) -> str:
    verb = INSTANT.get(step.kind, step.kind)
    mark = "VIOLATION: " if step.mark == VIOLATION else ""
    return f"{mark}{verb} {step.message}".rstrip()


def _escape(text: str) -> str:
    """Return text that Mermaid reads as text: letters, digits and a few signs, others by code."""
    coded = "".join(c if c.isalnum() or c in PLAIN else f"#{ord(c)};" for c in text)
    return END.sub("#101;nd", coded) or "#32;"


def _comment(text: str) -> str:
    """Return the text of a comment, in which Mermaid would read braces as a directive."""
    return text.replace("{", "(").replace("}", ")").replace("\n", " ")
