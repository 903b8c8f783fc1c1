"""Write a diagram in the format that the suffix of the file names."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from beforehand.diagram.mermaid import mermaid_text
from beforehand.diagram.story import Story
from beforehand.diagram.svg import svg_text
from beforehand.diagram.text import plain_text
from beforehand.diagram.tikz import tikz_text
from beforehand.errors import InputError, list_some
from beforehand.files import write_bytes, write_text

PNG = ".png"
PNG_SCALE = 2.0
TEXTS: dict[str, Callable[[Story], str]] = {
    ".svg": svg_text,
    ".txt": plain_text,
    ".mmd": mermaid_text,
    ".tex": tikz_text,
}
SUFFIXES = (".svg", PNG, ".txt", ".mmd", ".tex")


def check_suffix(path: Path, where: str, more: tuple[str, ...] = ()) -> None:
    """Refuse a file whose suffix names no format."""
    suffixes = [*SUFFIXES, *more]
    if path.suffix.lower() not in suffixes:
        raise InputError(
            f"no format has the suffix `{path.suffix}`",
            where=where,
            hint=f"write a file that ends with one of {list_some(suffixes, len(suffixes))}",
        )


def write_diagram(story: Story, path: Path) -> None:
    suffix = path.suffix.lower()
    if suffix == PNG:
        write_bytes(path, _png(svg_text(story), path))
    else:
        write_text(path, TEXTS[suffix](story))


def _png(svg: str, path: Path) -> bytes:
    try:
        import vl_convert
    except ImportError as error:
        hint = "pip install 'beforehand[report]', or write SVG"
        raise InputError("PNG needs vl-convert-python", where=str(path), hint=hint) from error
    return bytes(vl_convert.svg_to_png(svg, scale=PNG_SCALE))
