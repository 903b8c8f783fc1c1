"""Write a diagram as SVG with real text: a line per node, effects right of their causes."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from xml.sax.saxutils import escape, quoteattr

from beforehand.diagram.story import VIOLATION, Arrow, Step, Story, brief

FONT = "Helvetica, Arial, 'Liberation Sans', 'DejaVu Sans', sans-serif"
ROW, COLUMN, EDGE, TEXT = 58.0, 46.0, 16.0, 6.2
"""Heights and widths in pixels; TEXT is the width of a letter of 11 pixels, on average."""
LETTERS_MAX = 18
INK, SOFT, LINE = "#1c2530", "#5d6878", "#a4aebb"
HAS, WAITS, WRONG = "#0a6cb4", "#d27f00", "#c2211b"
WORDS_OF = {
    "broadcast": "broadcast",
    "send": "send",
    "deliver": "delivered",
    "receive": "received",
    "local": "local event",
    "expire": "expired",
    "drop": "dropped",
    "crash": "crash",
    "recover": "recovered",
}
NOT_TO_SCALE = "Time goes from left to right in causal order, not to scale."


def svg_text(story: Story) -> str:
    return _Picture(story).text()


def _tag(name: str, content: str = "", **attributes: object) -> str:
    pairs = "".join(
        f" {key.rstrip('_').replace('_', '-')}={quoteattr(_show(value))}"
        for key, value in attributes.items()
    )
    return f"<{name}{pairs}>{content}</{name}>" if content else f"<{name}{pairs}/>"


def _show(value: object) -> str:
    return f"{value:.1f}".removesuffix(".0") if isinstance(value, float) else str(value)


def _text(x: float, y: float, words: str, **attributes: object) -> str:
    return _tag("text", escape(words), x=x, y=y, **attributes)


HALO = {"stroke": "#ffffff", "stroke_width": 3, "paint_order": "stroke"}
"""Around text that an arrow may cross."""


class _Picture:
    def __init__(self, story: Story) -> None:
        self.story = story
        self.row = {node: at for at, node in enumerate(story.nodes)}
        longest = max((len(brief(node, LETTERS_MAX)) for node in story.nodes), default=1)
        self.left = EDGE + longest * 7 + 14
        self.x = self._places(story.columns())
        self.width = max(420.0, max(self.x, default=0) + 70)
        letters = int((self.width - 2 * EDGE) / TEXT)
        self.head = textwrap.wrap(story.summary, int(letters * 0.8)) or [""]
        self.notes = [
            line
            for note in (NOT_TO_SCALE, *story.notes)
            for line in textwrap.wrap(note[:1].upper() + note[1:], letters)
        ]
        self.top = EDGE + 18 * len(self.head) + 34
        self.bottom = self.top + ROW * max(1, len(story.nodes)) - ROW / 2

    def _places(self, columns: list[int]) -> list[float]:
        """Return the x of each step: its column, moved right where labels would meet."""
        starts = dict.fromkeys(sorted(set(columns)), self.left + 30)
        last: dict[str, tuple[float, float]] = {}
        end = self.left + 30 - COLUMN
        for column in starts:
            mine = [step for at, step in enumerate(self.story.steps) if columns[at] == column]
            x = end + COLUMN
            for step in mine:
                half = _label_width(step) / 2
                x = max(x, self.left + half + 4)
                if step.node in last:
                    before, width = last[step.node]
                    x = max(x, before + width + half + 8)
            for step in mine:
                last[step.node] = (x, _label_width(step) / 2)
            starts[column] = end = x
        return [starts[column] for column in columns]

    def y(self, node: str) -> float:
        return self.top + ROW * self.row[node]

    def text(self) -> str:
        legend = list(self._legend())
        height = self.bottom + 12 + 24 + 16 * len(self.notes) + EDGE
        parts = [
            _tag("title", escape(self.story.summary)),
            _tag("desc", escape("; ".join(f"{s.node}: {s.words}" for s in self.story.steps))),
            _tag("rect", width=self.width, height=height, fill="#ffffff"),
            _head(self.head),
            *self._lines(),
            *self._waits(),
            *(self._arrow(arrow) for arrow in self.story.arrows),
            *(self._step(at, step) for at, step in enumerate(self.story.steps)),
            *legend,
            *(
                _text(EDGE, self.bottom + 48 + 16 * at, line, fill=SOFT, font_size=11)
                for at, line in enumerate(self.notes)
            ),
        ]
        body = "\n".join(["", *parts, ""])
        return (
            _tag(
                "svg",
                body,
                xmlns="http://www.w3.org/2000/svg",
                width=self.width,
                height=height,
                viewBox=f"0 0 {_show(self.width)} {_show(height)}",
                font_family=FONT,
                font_size=11,
                role="img",
            )
            + "\n"
        )

    def _lines(self) -> Iterator[str]:
        for node in self.story.nodes:
            y = self.y(node)
            end = self.width - EDGE
            yield _tag("line", x1=self.left, y1=y, x2=end, y2=y, stroke=LINE, stroke_width=1)
            name = brief(node, LETTERS_MAX)
            yield _text(
                self.left - 10, y + 4, name, text_anchor="end", font_size=12, font_weight="bold"
            )

    def _waits(self) -> Iterator[str]:
        for received, delivered in self.story.waits:
            y = self.y(self.story.steps[received].node)
            x, width = self.x[received], self.x[delivered] - self.x[received]
            yield _tag("rect", x=x, y=y - 4, width=width, height=8.0, fill=WAITS, fill_opacity=0.55)

    def _arrow(self, arrow: Arrow) -> str:
        steps = self.story.steps
        x1, y1 = self.x[arrow.cause], self.y(steps[arrow.cause].node)
        x2, y2 = self.x[arrow.effect], self.y(steps[arrow.effect].node)
        colour = WRONG if self.story.is_backward(arrow) else HAS
        length = max(1.0, ((x2 - x1) ** 2 + (y2 - y1) ** 2) ** 0.5)
        dx, dy = (x2 - x1) / length, (y2 - y1) / length
        x2, y2 = x2 - 8 * dx, y2 - 8 * dy
        line = _tag(
            "line",
            x1=x1 + 7 * dx,
            y1=y1 + 7 * dy,
            x2=x2,
            y2=y2,
            stroke=colour,
            stroke_width=1.4,
            **({} if arrow.is_hop else {"stroke_dasharray": "5 3"}),
        )
        wing = [(-7 * dx - 3.5 * dy, -7 * dy + 3.5 * dx), (-7 * dx + 3.5 * dy, -7 * dy - 3.5 * dx)]
        points = " ".join(f"{x2 + a:.1f},{y2 + b:.1f}" for a, b in [(0.0, 0.0), *wing])
        return line + _tag("polygon", points=points, fill=colour)

    def _step(self, at: int, step: Step) -> str:
        x, y = self.x[at], self.y(step.node)
        colour = WRONG if step.mark == VIOLATION else INK
        weight = "bold" if step.mark else "normal"
        words, aligned = brief(step.message or step.kind, LETTERS_MAX), {"text_anchor": "middle"}
        label = _text(x, y - 13, words, fill=colour, font_weight=weight, **aligned, **HALO)
        where = brief(step.note, LETTERS_MAX)
        note = _text(x, y + 21, where, fill=SOFT, font_size=9, **aligned, **HALO)
        title = _tag("title", escape(f"{step.node}: {step.words} ({step.note})"))
        return _tag("g", title + sign(step, x, y) + label + (note if step.note else ""))

    def _legend(self) -> Iterator[str]:
        x, y = EDGE + 6, self.bottom + 22
        shown = dict.fromkeys(
            "violation" if step.mark == VIOLATION else step.kind for step in self.story.steps
        )
        for kind in shown:
            is_wrong = kind == "violation"
            sample = Step("", "deliver" if is_wrong else kind, mark=VIOLATION if is_wrong else "")
            words = WORDS_OF.get(kind, kind)
            yield sign(sample, x, y) + _text(x + 10, y + 4, words, fill=SOFT)
            x += 30 + TEXT * len(words)
        if self.story.waits:
            yield _tag("rect", x=x - 5, y=y - 4, width=16.0, height=8.0, fill=WAITS)
            yield _text(x + 15, y + 4, "received, not delivered yet", fill=SOFT)
            x += 35 + TEXT * 27
        if any(not arrow.is_hop for arrow in self.story.arrows):
            yield _tag("line", x1=x - 5, y1=y, x2=x + 14, y2=y, stroke=HAS, stroke_dasharray="5 3")
            yield _text(x + 18, y + 4, "from the broadcast, hops not shown", fill=SOFT)


def _head(lines: list[str]) -> str:
    return "".join(
        _text(EDGE, EDGE + 14 + 18 * at, line, fill=INK, font_size=13, font_weight="bold")
        for at, line in enumerate(lines)
    )


def _label_width(step: Step) -> float:
    label = len(brief(step.message or step.kind, LETTERS_MAX)) * TEXT * (1.08 if step.mark else 1)
    return max(label, len(brief(step.note, LETTERS_MAX)) * 5.0, 14.0)


def sign(step: Step, x: float, y: float) -> str:
    """Return the sign of an event: its shape says what it is, in colour and without."""
    if step.mark == VIOLATION:
        points = f"{x:.1f},{y - 8:.1f} {x + 8:.1f},{y + 6:.1f} {x - 8:.1f},{y + 6:.1f}"
        return _tag("polygon", points=points, fill=WRONG)
    ring = INK if step.mark else HAS
    if step.kind in ("broadcast", "send"):
        points = f"{x:.1f},{y - 7:.1f} {x + 6:.1f},{y:.1f} {x:.1f},{y + 7:.1f} {x - 6:.1f},{y:.1f}"
        return _tag("polygon", points=points, fill=INK)
    if step.kind == "receive":
        return _tag("circle", cx=x, cy=y, r=5.0, fill="#ffffff", stroke=WAITS, stroke_width=2.5)
    if step.kind in ("deliver", "local"):
        radius = 5.5 if step.kind == "deliver" else 3.5
        return _tag("circle", cx=x, cy=y, r=radius, fill=HAS, stroke=ring, stroke_width=1.5)
    if step.kind == "drop":
        return _tag(
            "rect", x=x - 5, y=y - 5, width=10.0, height=10.0, fill="#ffffff", stroke=INK,
            stroke_width=1.75,
        )  # fmt: skip
    shapes = {
        "expire": f"M{x - 5:.1f} {y - 5:.1f}l10 10m0 -10l-10 10",
        "crash": f"M{x:.1f} {y - 9:.1f}l4 6l-8 6l4 6",
        "recover": f"M{x:.1f} {y - 9:.1f}v18",
    }
    path = shapes.get(step.kind, f"M{x - 4:.1f} {y:.1f}h8m-4 -4v8")
    return _tag("path", d=path, fill="none", stroke=INK, stroke_width=2)
