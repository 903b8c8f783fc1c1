"""Read XML trace files as a stream of elements. The whole document is never in memory."""

from __future__ import annotations

import io
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path

from beforehand.errors import InputError
from beforehand.mobility import lines

ROOT = re.compile(
    r"\s*(?:<\?xml[^>]*\?>\s*|<!--.*?-->\s*|<!DOCTYPE[^>]*>\s*)*<(?:\w+:)?([\w-]+)", re.DOTALL
)


def root_name(text: str) -> str:
    """Return the name of the root element; empty if the text is not XML."""
    match = ROOT.match(text)
    return match[1] if match is not None else ""


def elements(path: Path, *names: str) -> Iterator[tuple[str, ET.Element]]:
    """Yield (start or end, element) for the named elements. Names are without namespaces.

    An element is emptied after its end.
    """
    text = lines.read_text(path)
    if "<!DOCTYPE" in text:
        problem = "a document type declaration, which can make a file endless"
        raise InputError(problem, where=str(path), hint="remove the line `<!DOCTYPE ...>`")
    try:
        for event, element in ET.iterparse(io.BytesIO(text.encode()), events=("start", "end")):
            element.tag = element.tag.rpartition("}")[2]
            if element.tag in names:
                yield event, element
                if event == "end":
                    element.clear()
    except ET.ParseError as error:
        where = f"{path}:{error.position[0]}"
        raise InputError(
            f"broken XML: {error}", where=where, hint="fetch the file again"
        ) from error
