"""Random values files: drawn from the chart's own schema, made hostile, and mostly made consistent again.

Nothing here knows the chart's keys but for the few rules that join several of them; a new key in the schema is
drawn without a change here.
"""

from __future__ import annotations

import copy
import re
from typing import TYPE_CHECKING, Any

import jsonschema
from hypothesis import strategies as st

from inferctl.values import reference

if TYPE_CHECKING:
    from collections.abc import Callable

    from inferctl.values.reference import Schema

Values = dict[str, Any]

#: Words that YAML, Helm's templates, printf, shells, the kubelet or a registry take for something else.
HOSTILE = (
    *("", " ", "null", "~", "true", "on", "N", "0123456", "1234567e2", "1048576", "1e3", ".inf", "1:30", "0x1F"),
    *("{{ .Values.x }}", "{{", "{% for %}", "$(MODEL_NAME)", "$$(MODEL_NAME)", "$(A", "$", "$$", "${X}", "`id`"),
    *("%s %d %!q(x)", "%", "# c", "a: b", "- a", "---", "\n---\n", "...", "'", '"', "\\", "\\n", "\\x00"),
    *("<no value>", "<<", "&a", "*a", "!!binary eA==", "|", ">", "@", "?", "=", "[a", "{a", "}", ",", "\t", "\r\n"),
    *("\n", "\x00", "\x01", "\x7f", "\x85", "\u2028", "\ufeff", "\ufffe", "\ue000", "é", "日本語", "😀"),
    *("a" * 64, "a" * 254, "z" * 32000, "z" * 32001, "--port", "--port=8000", "--port=9000", "--shutdown-timeout"),
    *("--shutdown_timeout=7", "--", "-1", "0", "1"),
)
#: The PriorityClass that the test cluster has.
PRIORITY_CLASS = "production"

_RESTRICTED = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"], "add": ["NET_BIND_SERVICE"]},
    "runAsNonRoot": True,
    "runAsUser": 1,
    "seccompProfile": {"type": "RuntimeDefault"},
}
_FREE_TEXT = "^[^\\x00]*$"
_REPOSITORIES = ["a", "localhost:5001/mock-engine", "registry.example.com:5000/team/a_b/engine", "a/b__c/d-e"]
_DIGEST = "sha256:" + "0123456789abcdef" * 4
_CHARACTERS = st.characters(exclude_categories=["Cs"])


def hostile_text() -> st.SearchStrategy[str]:
    """A hostile word, several of them, or any text."""
    word = st.sampled_from(HOSTILE)
    return st.one_of(st.text(_CHARACTERS, max_size=20), word, st.lists(word, min_size=2, max_size=3).map("".join))


def releases() -> st.SearchStrategy[str]:
    """Release names, most of them legal."""
    legal = st.from_regex(r"\A[a-z](-?[a-z0-9]){0,21}\Z")
    wrong = st.one_of(
        st.from_regex(r"\A[a-z0-9]{1,53}\Z"),
        st.sampled_from(["a.b", "7b", "A", "a_b", "a-", "a" * 46, "a" * 54]),
    )
    return _rarely(wrong, legal)


@st.composite
def values(draw: st.DrawFn) -> Values:
    """The content of a values file."""
    drawn: Values = {}
    for name, node in reference.schema()["properties"].items():
        if draw(st.integers(0, 3)) == 3:
            drawn[name] = draw(_from_schema(node))
    image = drawn["image"] = drawn.get("image") or {}
    image["repository"] = draw(_rarely(hostile_text(), st.sampled_from(_REPOSITORIES)))
    image["digest"] = draw(_rarely(hostile_text(), st.just(_DIGEST)))
    if draw(st.integers(0, 9)) < 9:
        _reconcile(drawn)
    if draw(st.integers(0, 4)) == 4:
        _disturb(draw, drawn)
    _fit_the_cluster(drawn)
    return drawn


def _rarely(rare: st.SearchStrategy[Any], usual: st.SearchStrategy[Any], *, one_in: int = 20) -> st.SearchStrategy[Any]:
    return st.integers(1, one_in).flatmap(lambda n: rare if n == one_in else usual)


def _from_schema(node: Schema) -> st.SearchStrategy[Any]:
    full = reference.resolve(node)
    if "enum" in full:
        return _rarely(hostile_text(), st.sampled_from(full["enum"]))
    types = full["type"] if isinstance(full["type"], list) else [full["type"]]
    drawn = st.one_of([_OF_TYPE[name](full) for name in types if name != "null"])
    if "null" in types:
        drawn = _rarely(st.none(), drawn)
    if "allOf" in full:
        judge = jsonschema.Draft7Validator({**full, "definitions": reference.schema()["definitions"]})
        return drawn.filter(judge.is_valid)
    return drawn


def _string(node: Schema) -> st.SearchStrategy[str]:
    pattern = node.get("pattern", _FREE_TEXT)
    if pattern == _FREE_TEXT:
        return hostile_text()
    legal = _matching(pattern).filter(lambda text: len(text) <= node.get("maxLength", 1000))
    return _rarely(hostile_text(), legal)


def _matching(pattern: str) -> st.SearchStrategy[str]:
    """Texts that match a pattern of the schema, where $ is the very end; in Python a newline may follow it."""
    return st.from_regex(re.compile(re.sub(r"\$$", r"\\Z", pattern), re.ASCII))


def _integer(node: Schema) -> st.SearchStrategy[int]:
    low, high = node.get("minimum", -(2**53) + 1), node.get("maximum", 2**53 - 1)
    return st.one_of(st.integers(low, min(high, low + 100)), st.integers(low, high), st.sampled_from([low, high]))


def _number(node: Schema) -> st.SearchStrategy[float]:
    """Integers, and fractions that have one shortest way to be written."""
    thousandths = st.integers(max(node.get("minimum", -(10**9)), -(10**9)) * 1000, 10**12)
    return st.one_of(_integer(node), thousandths.filter(lambda n: n % 1000).map(lambda n: n / 1000))


def _array(node: Schema) -> st.SearchStrategy[list[Any]]:
    least = node.get("minItems", 0)
    return st.lists(_from_schema(node["items"]), min_size=least, max_size=max(least, min(node.get("maxItems", 3), 3)))


@st.composite
def _object(draw: st.DrawFn, node: Schema) -> Values:
    drawn: Values = {}
    properties = node.get("properties", {})
    required = node.get("required", [])
    optional = [name for name in properties if name not in required]
    room = node.get("maxProperties", len(properties)) - len(required)
    least = max(0, node.get("minProperties", 0) - len(required))
    chosen = draw(st.lists(st.sampled_from(optional), unique=True, min_size=least, max_size=room)) if optional else []
    for name in [*required, *chosen]:
        drawn[name] = draw(_from_schema(properties[name]))
    for pattern, below in node.get("patternProperties", {}).items():
        if below:
            for name in draw(st.lists(_matching(pattern), max_size=2, unique=True)):
                drawn[name] = draw(_from_schema(below))
    return drawn


_OF_TYPE: dict[str, Callable[[Schema], st.SearchStrategy[Any]]] = {
    "string": _string,
    "integer": _integer,
    "number": _number,
    "boolean": lambda _: st.booleans(),
    "array": _array,
    "object": _object,
}


def _reconcile(drawn: Values) -> None:
    """Make the keys agree that are bound to each other, so that most files are good ones."""
    rollout = drawn.get("rollout") or {}
    sleep = _given(rollout, "preStopSeconds", 10)
    if _given(rollout, "terminationGracePeriodSeconds", 90) <= sleep:
        rollout["terminationGracePeriodSeconds"] = sleep + 1
    probes = drawn.get("probes") or {}
    period = _given(probes, "periodSeconds", 5)
    if _given(probes, "timeoutSeconds", 2) > period:
        probes["timeoutSeconds"] = period
    budget = drawn.get("podDisruptionBudget") or {}
    most = max(0, _given(drawn, "replicaCount", 1) - 1)
    budget["minAvailable"] = min(_given(budget, "minAvailable", 1), most)
    names = [volume["name"] for volume in drawn.get("extraVolumes") or ()]
    if drawn.get("extraVolumeMounts"):
        pairs = zip(drawn["extraVolumeMounts"], names, strict=False)
        drawn["extraVolumeMounts"] = [{**mount, "name": name} for mount, name in pairs]
    resources = drawn.get("resources") or {}
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    for name in list(requests):
        if name in limits:
            requests[name] = copy.deepcopy(limits[name])
        elif "/" in name:
            del requests[name]


def _given(part: Values, key: str, default: int) -> int:
    """A number of a part of the file; missing and null are the default."""
    value = part.get(key)
    return default if value is None else int(value)


def _fit_the_cluster(drawn: Values) -> None:
    """Take back what the restricted standard forbids, and ask only for the PriorityClass that there is."""
    context = drawn.get("securityContext")
    for part in context.values() if isinstance(context, dict) else ():
        if isinstance(part, dict):
            for name, safe in _RESTRICTED.items():
                if name in part:
                    part[name] = safe
    if drawn.get("priorityClassName"):
        drawn["priorityClassName"] = PRIORITY_CLASS


def _disturb(draw: st.DrawFn, drawn: Values) -> None:
    """Replace a value by something else, take it away, or put a key beside it that does not exist."""
    here: Any = drawn
    while isinstance(here, dict) and here:
        name = draw(st.sampled_from(sorted(here)))
        if not isinstance(here[name], dict) or draw(st.booleans()):
            break
        here = here[name]
    if not isinstance(here, dict):
        return
    odd = st.one_of(st.none(), hostile_text(), st.integers(-(2**70), 2**70), st.just([]), st.just({}), st.booleans())
    action = draw(st.sampled_from(["replace", "delete", "add"]))
    if action == "add" or not here:
        here[draw(st.from_regex(r"\A[a-zA-Z]{1,8}\Z"))] = draw(odd)
    elif action == "delete":
        del here[name]
    else:
        here[name] = draw(odd)
