"""Write verdicts as JUnit XML, which CI systems show: one test case per run of a log."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from beforehand.files import write_text

if TYPE_CHECKING:
    from beforehand.verify.verdict import Verdict

STORIES_MAX = 20
NO_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def write_junit(verdict: Verdict, title: str, path: Path) -> None:
    """Write a verdict. A run that is invalid is a failure, and one that is unknown is an error."""
    suite = ET.Element("testsuite", name=_clean(f"beforehand verify {title}"))
    failures = errors = 0
    for run in verdict.runs:
        case = ET.SubElement(suite, "testcase", classname=_clean(title), name=_clean(run.run))
        if run.state == "invalid":
            failures += 1
            kinds = ", ".join(f"{count:,} {kind}" for kind, count in run.counts.items() if count)
            found = ET.SubElement(case, "failure", message=_clean(kinds or run.reason))
            found.text = _clean("\n\n".join([run.reason, *islice(run.stories(), STORIES_MAX)]))
        elif run.state == "unknown":
            errors += 1
            ET.SubElement(case, "error", message=_clean(run.reason))
    for lost in verdict.lost:
        errors += 1
        case = ET.SubElement(suite, "testcase", classname=_clean(title), name=_clean(lost))
        ET.SubElement(case, "error", message="its event log is missing")
    suite.set("tests", str(len(verdict.runs) + len(verdict.lost)))
    suite.set("failures", str(failures))
    suite.set("errors", str(errors))
    suites = ET.Element("testsuites")
    suites.append(suite)
    ET.indent(suites)
    write_text(path, ET.tostring(suites, encoding="unicode", xml_declaration=True) + "\n")


def _clean(text: str) -> str:
    return NO_XML.sub("\N{REPLACEMENT CHARACTER}", text)
