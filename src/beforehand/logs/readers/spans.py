"""Read traces: OTLP JSON, Jaeger, Zipkin and X-Trace. A span is an event that names its parents."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Mapping
from typing import Any

from beforehand.errors import InputError
from beforehand.logs.located import AT, documents
from beforehand.logs.mapping import text_of
from beforehand.logs.model import Event, Reading, Run
from beforehand.logs.source import Source
from beforehand.logs.times import time_of

Json = Mapping[str, Any]
HEX = re.compile(r"[0-9a-fA-F]*")
INSTANCE = ("service.instance.id", "k8s.pod.name")


def has_keys(source: Source, *names: str) -> bool:
    """Return whether the head of a JSON file has all keys; alternatives are joined by `|`."""
    head = source.head
    return head.lstrip()[:1] in ("[", "{") and all(
        any(f'"{one}"' in head for one in name.split("|")) for name in names
    )


def is_otlp(source: Source) -> str:
    is_own = has_keys(source, "resourceSpans|resourceLogs|resourceMetrics")
    is_tempo = has_keys(source, "batches", "scopeSpans|instrumentationLibrarySpans")
    if is_tempo or (is_own and '"resourceSpans"' in source.text):
        return "OTLP: the key `resourceSpans`, or `batches` with `scopeSpans`"
    return ""


def is_jaeger(source: Source) -> str:
    is_found = has_keys(source, "spans", "spanID") and not has_keys(source, "spanSet")
    return "Jaeger: `spans` with `spanID`" if is_found else ""


def _is_array(source: Source) -> bool:
    return bool(re.match(r"\s*\[\s*(?:\[\s*)*\{", source.head))


def is_zipkin1(source: Source) -> str:
    is_found = _is_array(source) and has_keys(source, "traceId", "id", "binaryAnnotations")
    return "Zipkin v1: `binaryAnnotations`" if is_found else ""


def is_zipkin(source: Source) -> str:
    is_found = has_keys(source, "traceId", "id", "localEndpoint")
    is_found |= _is_array(source) and has_keys(source, "traceId", "id", "kind")
    is_found = is_found and not has_keys(source, "binaryAnnotations|spanId|spanID|resourceSpans")
    return "Zipkin v2: objects with `traceId`, `id` and `localEndpoint`" if is_found else ""


def is_xtrace(source: Source) -> str:
    is_found = has_keys(source, "reports", "EventID", "ParentEventID")
    return "X-Trace: `reports` with `ParentEventID`" if is_found else ""


def span_id(value: Any) -> str:
    """Return a span or trace id as hex without leading zeros; empty for no id.

    Ids are hex or base64. Some writers lose leading zeros of a trace id.
    """
    text = text_of(value).strip()
    if text and not (HEX.fullmatch(text) and len(text) <= 32) and len(text) % 4 == 0:
        try:
            text = base64.b64decode(text, validate=True).hex()
        except (binascii.Error, ValueError):
            return text
    return text.lower().lstrip("0").zfill(16) if text.strip("0") else ""


def _reading(form: str, sources: list[Source], why: str) -> tuple[Reading, Run]:
    name = sources[0].short if len(sources) == 1 else sources[0].folder
    run = Run(name, "parents", is_sequential=False)
    return Reading(form, why, [run], [source.name for source in sources]), run


def _add(run: Run, source: Source, span: Json, node: str, ids: tuple[str, ...], time: Any) -> None:
    """Add a span. ids: its own, then its parents."""
    own, *parents = ids
    kept = tuple(parent for parent in parents if parent)
    text = text_of(span.get("name") or span.get("operationName"))
    run.events.append(
        Event(
            node=node or "(no service)",
            kind="local",
            file=source.name,
            line=source.line_at(span[AT]),
            id=own,
            parents=kept,
            time_ns=time,
            text=text[:200],
        )
    )


def read_otlp(sources: list[Source], why: str) -> Reading:
    reading, run = _reading("otlp", sources, why)
    for source in sources:
        for document in documents(source):
            for key in ("resourceLogs", "resourceMetrics"):
                if isinstance(document, dict) and key in document:
                    reading.skipped[f"documents with `{key}`"] += 1
            for resource, span in _otlp_spans(document):
                trace = span_id(span.get("traceId"))
                own = f"{trace}/{span_id(span.get('spanId'))}"
                parent = span_id(span.get("parentSpanId"))
                links = [
                    f"{span_id(link.get('traceId'))}/{span_id(link.get('spanId'))}"
                    for link in span.get("links") or ()
                ]
                ids = (own, f"{trace}/{parent}" if parent else "", *links)
                time = time_of(span.get("startTimeUnixNano"), "ns")
                _add(run, source, span, _service(resource), ids, time)
    return reading


def _otlp_spans(document: Any) -> Iterator[tuple[Json, Json]]:
    """Yield each span with its resource, also inside of `trace` or `result`."""
    if isinstance(document, list):
        for part in document:
            yield from _otlp_spans(part)
    if not isinstance(document, dict):
        return
    for key in ("trace", "result"):
        yield from _otlp_spans(document.get(key))
    for resource in [*(document.get("resourceSpans") or ()), *(document.get("batches") or ())]:
        for key in ("scopeSpans", "instrumentationLibrarySpans"):
            for scope in resource.get(key) or ():
                yield from ((resource.get("resource") or {}, span) for span in scope["spans"] or ())


def _service(resource: Json) -> str:
    """Return the name of a service, with its instance or pod if there is one."""
    values = {
        one.get("key"): next(iter((one.get("value") or {}).values()), "")
        for one in resource.get("attributes") or ()
    }
    instance = next((text_of(values[key]) for key in INSTANCE if values.get(key)), "")
    return "/".join(filter(None, (text_of(values.get("service.name")), instance)))


def read_jaeger(sources: list[Source], why: str) -> Reading:
    reading, run = _reading("jaeger", sources, why)
    for source in sources:
        for document in documents(source):
            traces = document.get("data", document) if isinstance(document, dict) else document
            for trace in traces if isinstance(traces, list) else [traces]:
                _add_jaeger(run, source, trace)
    return reading


def _add_jaeger(run: Run, source: Source, trace: Json) -> None:
    processes = trace.get("processes") or {}
    for span in trace.get("spans") or ():
        process = span.get("process") or processes.get(span.get("processID")) or {}
        ahead = span_id(span.get("traceID") or trace.get("traceID"))
        parents = [
            f"{span_id(one.get('traceID')) or ahead}/{span_id(one.get('spanID'))}"
            for one in span.get("references") or ()
        ]
        parent = span_id(span.get("parentSpanID"))
        if parent and f"{ahead}/{parent}" not in parents:
            parents.append(f"{ahead}/{parent}")
        own = f"{ahead}/{span_id(span.get('spanID'))}"
        time = time_of(span.get("startTime"), "us")
        _add(run, source, span, text_of(process.get("serviceName")), (own, *parents), time)


def refuse_zipkin1(sources: list[Source], _why: str) -> Reading:
    hint = "convert them to v2: `zipkin-server` and its `/api/v2/traces` do"
    raise InputError("spans of Zipkin v1", where=sources[0].name, hint=hint)


def read_zipkin(sources: list[Source], why: str) -> Reading:
    """Return the spans of Zipkin: fragments merged, and server halves below their client halves."""
    reading, run = _reading("zipkin", sources, why)
    merged: dict[tuple[str, str, bool], tuple[Source, dict[str, Any]]] = {}
    fragments = 0
    for source in sources:
        for span in _zipkin_records(documents(source)):
            if not span_id(span.get("traceId")) or not span_id(span.get("id")):
                reading.skipped["objects without `traceId` or `id`"] += 1
                run.doubts.append(f"{source.name}:{source.line_at(span[AT])} has no id")
                continue
            key = (
                span_id(span.get("traceId")),
                span_id(span.get("id")),
                bool(span.get("shared")),
            )
            if key in merged:
                fragments += 1
                first = merged[key][1]
                first.update({k: v for k, v in span.items() if k not in first})
            else:
                merged[key] = (source, dict(span))
    if fragments:
        reading.skipped["fragments merged into their spans"] = fragments
    for (trace, own, is_shared), (source, span) in merged.items():
        parent = span_id(span.get("parentId"))
        id_of = f"{trace}/{own}" + ("/shared" if is_shared else "")
        if is_shared and (trace, own, False) in merged:
            cause = f"{trace}/{own}"
        elif parent:
            # A child of a shared span was made by its server half.
            is_below = not is_shared and (trace, parent, True) in merged
            cause = f"{trace}/{parent}" + ("/shared" if is_below else "")
        else:
            cause = ""
        node = text_of((span.get("localEndpoint") or {}).get("serviceName"))
        _add(run, source, span, node, (id_of, cause), time_of(span.get("timestamp"), "us"))
    return reading


def _zipkin_records(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, list):
        for part in value:
            yield from _zipkin_records(part)
    elif isinstance(value, dict):
        yield value


def read_xtrace(sources: list[Source], why: str) -> Reading:
    """Return the reports of X-Trace. An id of zeros is an id here: some writers use no other."""
    reading, run = _reading("xtrace", sources, why)
    for source in sources:
        for document in documents(source):
            for task in document if isinstance(document, list) else [document]:
                for report in task.get("reports") or ():
                    node = "/".join(
                        text_of(report.get(k)) for k in ("Host", "ProcessID", "ThreadID")
                    )
                    parents = dict.fromkeys(report.get("ParentEventID") or ())
                    ahead = text_of(report.get("TaskID") or task.get("id"))
                    ids = [f"{ahead}/{text_of(i)}" for i in (report.get("EventID"), *parents)]
                    time = time_of(report.get("Timestamp"), "ms")
                    _add(run, source, {**report, "name": report.get("Label")}, node, (*ids,), time)
    return reading
