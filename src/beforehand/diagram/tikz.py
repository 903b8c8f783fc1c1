"""Write a diagram as a TikZ picture for LaTeX; it needs the package `tikz` and nothing else."""

from __future__ import annotations

from beforehand.diagram.story import VIOLATION, Arrow, Step, Story

CODES = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
}
LATIN_END = "\u0180"
SPECIAL = set("#$%&_{}")
STYLES = r"""  wait/.style={orange!70, line width=4pt},
  hop/.style={-latex, blue!60!black},
  far/.style={hop, dashed},
  wrong/.style={-latex, red!80!black},
  put/.style={fill=black, diamond, inner sep=2pt},
  got/.style={draw=orange, thick, circle, fill=white, inner sep=2pt},
  done/.style={fill=blue!60!black, circle, inner sep=2pt},
  bad/.style={fill=red!80!black, regular polygon, regular polygon sides=3, inner sep=1.6pt},
  other/.style={draw, fill=white, inner sep=2pt},
  words/.style={font=\scriptsize, above=4pt}"""


def tikz_text(story: Story) -> str:
    columns = story.columns()
    wide = 0.9 + max((len(step.message or step.kind) for step in story.steps), default=0) * 0.09
    row = {node: -at for at, node in enumerate(story.nodes)}
    end = (max(columns, default=0) + 1) * wide
    lines = [
        f"% {_comment(story.summary)}",
        *(f"% {_comment(note)}" for note in story.notes),
        r"% \usepackage{tikz} \usetikzlibrary{shapes.geometric}",
        r"\begin{tikzpicture}[y=1.1cm,",
        f"{STYLES}]",
    ]
    for node in story.nodes:
        lines.append(rf"\draw[gray!60] (-0.3,{row[node]}) -- ({end:.2f},{row[node]});")
        lines.append(rf"\node[left] at (-0.35,{row[node]}) {{{escape(node)}}};")
    for received, delivered in story.waits:
        y = row[story.steps[received].node]
        x1, x2 = columns[received] * wide, columns[delivered] * wide
        lines.append(rf"\draw[wait] ({x1:.2f},{y}) -- ({x2:.2f},{y});")
    for at, step in enumerate(story.steps):
        spot = f"({columns[at] * wide:.2f},{row[step.node]})"
        lines.append(rf"\node[{_style(step)}] (e{at}) at {spot} {{}};")
        lines.append(rf"\node[words] at {spot} {{{escape(step.message or step.kind)}}};")
    lines += [_arrow(story, arrow) for arrow in story.arrows]
    return "\n".join([*lines, r"\end{tikzpicture}"]) + "\n"


def _arrow(story: Story, arrow: Arrow) -> str:
    style = "wrong" if story.is_backward(arrow) else "hop" if arrow.is_hop else "far"
    return rf"\draw[{style}] (e{arrow.cause}) -- (e{arrow.effect});"


def _style(step: Step) -> str:
    if step.mark == VIOLATION:
        return "bad"
    kinds = {"broadcast": "put", "send": "put", "receive": "got", "deliver": "done"}
    return kinds.get(step.kind, "other")


def escape(text: str) -> str:
    """Return text that LaTeX prints; characters beyond Latin, which its fonts lack, become `?`."""
    plain = (c if c < LATIN_END else "?" for c in text)
    return "".join(f"\\{c}" if c in SPECIAL else CODES.get(c, c) for c in plain)


def _comment(text: str) -> str:
    return text.replace("\n", " ")
