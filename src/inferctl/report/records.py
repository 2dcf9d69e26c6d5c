"""What each kind of record must hold, so that whoever applies one can rely on it. docs/timeline.md has the kinds."""

from __future__ import annotations

import math
from typing import Any

#: A run takes minutes. A time that is further from its first one than this, in seconds, is damage.
LONGEST_RUN = 7 * 24 * 3600.0

_TEXT, _FLAG, _NUMBER, _TEXTS, _MAP = "a text", "true or false", "a number", "a list of texts", "an object"
_OPTIONAL = " or null"
_REQUEST = {"client": _TEXT, "id": _NUMBER}
_FIELDS: dict[str, dict[str, str]] = {
    "run": {"scenario": _TEXT, "promise": _TEXT, "text": _TEXT},
    "client": {"client": _TEXT, "text": _TEXT},
    "sent": _REQUEST,
    "first_token": {**_REQUEST, "pod": _TEXT},
    "end": {
        **_REQUEST, "outcome": _TEXT, "pod": _TEXT, "http": _NUMBER, "chunks": _NUMBER, "ttft": _NUMBER + _OPTIONAL,
        "e2e": _NUMBER + _OPTIONAL, "reused": _FLAG, "detail": _TEXT,
    },
    "summary": {"client": _TEXT, "overloaded": _NUMBER},
    "pod": {"pod": _TEXT, "release": _TEXT, "node": _TEXT, "state": _TEXT, "restarts": _NUMBER, "reason": _TEXT},
    "slice": {"ready": _TEXTS},
    "sigterm": {"pod": _TEXT},
    "exit": {"pod": _TEXT, "finished": _NUMBER},
    "node": {"node": _TEXT, "state": _TEXT},
    "event": {"reason": _TEXT + _OPTIONAL, "object": _TEXT, "message": _TEXT + _OPTIONAL},
    "action": {"text": _TEXT},
    "disrupt": {"text": _TEXT},
    "settled": {"text": _TEXT},
    "verdict": {"outcome": _TEXT, "reason": _TEXT},
}  # fmt: skip
_IF_THERE: dict[str, dict[str, str]] = {
    "run": {"environment": _MAP},
    "end": {"last_bytes": _TEXT},
    "summary": {"lag": _MAP, "total": _NUMBER},
    "disrupt": {"pods": _TEXTS, "retires": _FLAG},
}


def complaint(record: object) -> str:
    """Say why something read from a timeline is no record of one; empty if it is. Kinds that are unknown may pass."""
    if not isinstance(record, dict):
        return "it is no JSON object"
    if not _is(record.get("t"), _NUMBER):
        return "it has no time t"
    kind = record.get("kind")
    if not isinstance(kind, str):
        return "it has no kind"
    wanted = _FIELDS.get(kind, {})
    optional = {field: shape for field, shape in _IF_THERE.get(kind, {}).items() if field in record}
    for field, shape in (wanted | optional).items():
        null = field in record and record[field] is None and shape.endswith(_OPTIONAL)
        if not null and not _is(record.get(field), shape):
            return f"{field} of a record of kind {kind!r} must be {shape}"
    lag = record.get("lag", {}).get("p99") if kind == "summary" else None
    return "" if lag is None or _is(lag, _NUMBER) else "lag.p99 must be a number"


def _is(value: Any, shape: str) -> bool:  # noqa: ANN401 - any JSON
    match shape.removesuffix(_OPTIONAL):
        case "a text":
            return isinstance(value, str)
        case "true or false":
            return isinstance(value, bool)
        case "a list of texts":
            return isinstance(value, list) and all(isinstance(one, str) for one in value)
        case "an object":
            return isinstance(value, dict)
        case _:
            return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < math.inf
