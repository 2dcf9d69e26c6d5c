"""Everything but generating: paths, methods and headers."""

from __future__ import annotations

import re
import socket
import time
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.edges.conftest import Engine


@pytest.mark.parametrize(("method", "path"), [("GET", "/health"), ("GET", "/ping"), ("POST", "/ping")])
def test_probes_answer_with_an_empty_body(engine: Engine, method: str, path: str) -> None:
    """Probes get a 200 whose body is empty and says so."""
    answer = engine.ask(method, path)
    assert (answer.status, answer.body) == (200, b"")
    assert answer.headers["content-length"] == "0"
    assert "content-type" not in answer.headers


def test_headers(engine: Engine) -> None:
    """Responses say uvicorn and vary by origin."""
    headers = engine.get("/v1/models").headers
    assert headers["server"] == "uvicorn"
    assert headers["vary"] == "Origin"
    assert headers["content-type"] == "application/json"


def test_header_names_are_lower_case(engine: Engine) -> None:
    """Header names come in lower case on the wire."""
    with socket.create_connection(("127.0.0.1", engine.port), 10) as connection:
        connection.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        head = b"".join(iter(lambda: connection.recv(65536), b""))
    names = re.findall(rb"^([A-Za-z-]+): ", head, re.MULTILINE)
    assert names
    assert names == [name.lower() for name in names]


def test_version(engine: Engine) -> None:
    """/version names the version as an object with one field."""
    answer = engine.get("/version")
    assert answer.json().keys() == {"version"}
    assert re.match(r"0\.\d+\.\d+", answer.json()["version"])


def test_load_is_0_unless_tracked(engine: Engine) -> None:
    """/load says 0 when nothing tracks the load."""
    assert engine.get("/load").json() == {"server_load": 0}


def test_models(engine: Engine) -> None:
    """/v1/models lists one model with vLLM's fields."""
    listed = engine.get("/v1/models").json()
    assert listed["object"] == "list"
    (card,) = listed["data"]
    expected = {"id", "object", "created", "owned_by", "root", "parent", "max_model_len", "permission"}
    assert card.keys() == expected
    assert (card["id"], card["object"], card["owned_by"]) == ("mock/mock-8b", "model", "vllm")
    assert (card["parent"], card["max_model_len"]) == (None, 1024)
    assert re.fullmatch(r"modelperm-[0-9a-f]{16}", card["permission"][0]["id"])
    assert card["permission"][0].keys() == {
        "id", "object", "created", "allow_create_engine", "allow_sampling", "allow_logprobs",
        "allow_search_indices", "allow_view", "allow_fine_tuning", "organization", "group", "is_blocking",
    }  # fmt: skip


def test_unknown_path(engine: Engine) -> None:
    """A path that does not exist is a 404 with a detail."""
    answer = engine.get("/nope")
    assert (answer.status, answer.json()) == (404, {"detail": "Not Found"})


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("GET", "/v1/chat/completions", "POST"),
        ("GET", "/v1/completions", "POST"),
        ("DELETE", "/v1/models", "GET"),
        ("POST", "/health", "GET"),
        ("OPTIONS", "/v1/models", "GET"),
    ],
)
def test_wrong_method(engine: Engine, method: str, path: str, allowed: str) -> None:
    """A method that a path does not take is a 405 that names those it takes."""
    answer = engine.ask(method, path)
    assert (answer.status, answer.json()) == (405, {"detail": "Method Not Allowed"})
    assert answer.headers["allow"] == allowed


@pytest.mark.parametrize("path", ["/health", "/v1/models"])
def test_head_is_a_wrong_method(engine: Engine, path: str) -> None:
    """HEAD does not come along with GET."""
    answer = engine.ask("HEAD", path)
    assert answer.status == 405
    assert answer.headers["allow"] == "GET"


def test_trailing_slash_is_redirected(engine: Engine) -> None:
    """A path with one slash too many is redirected to the one without."""
    answer = engine.get("/health/")
    assert answer.status == 307
    assert answer.headers["location"] == f"http://127.0.0.1:{engine.port}/health"


def test_no_origin_is_allowed_by_default(engine: Engine) -> None:
    """CORS preflights are refused and simple requests get no permission."""
    preflight = {"Origin": "http://x", "Access-Control-Request-Method": "POST"}
    refused = engine.ask("OPTIONS", "/v1/chat/completions", headers=preflight)
    assert (refused.status, refused.body) == (400, b"Disallowed CORS origin")
    assert "access-control-allow-origin" not in engine.ask("GET", "/health", headers={"Origin": "http://x"}).headers


def test_tokenize(engine: Engine) -> None:
    """/tokenize counts and numbers the tokens of a text."""
    answer = engine.ask("POST", "/tokenize", {"prompt": "hi there"}).json()
    assert answer.keys() == {"count", "max_model_len", "tokens", "token_strs"}
    assert answer["count"] == len(answer["tokens"]) > 0
    assert (answer["max_model_len"], answer["token_strs"]) == (1024, None)


def test_tokenize_agrees_with_usage(engine: Engine) -> None:
    """The tokens of a chat are as many as its usage says."""
    messages = [{"role": "user", "content": "hi there"}]
    counted = engine.ask("POST", "/tokenize", {"messages": messages}).json()["count"]
    assert engine.chat(messages=messages).json()["usage"]["prompt_tokens"] == counted


def test_detokenize(engine: Engine) -> None:
    """/detokenize makes a text of tokens."""
    answer = engine.ask("POST", "/detokenize", {"tokens": [5, 6]}).json()
    assert answer.keys() == {"prompt"}
    assert isinstance(answer["prompt"], str)


def test_idle_connection_is_closed_after_five_seconds(engine: Engine) -> None:
    """A kept-alive connection with nothing on it is closed by the engine after 5 s, without a byte."""
    with socket.create_connection(("127.0.0.1", engine.port), 10) as connection:
        connection.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
        assert connection.recv(65536).startswith(b"HTTP/1.1 200")
        begun = time.monotonic()
        assert connection.recv(65536) == b""
        assert time.monotonic() - begun == pytest.approx(5.0, abs=1.0)


def test_connection_is_reused(engine: Engine) -> None:
    """Several requests, a stream among them, go over one connection."""
    client = engine.client()
    first = client.ask("GET", "/version")
    port = client._connection.sock.getsockname()[1]
    body = {"messages": [{"role": "user", "content": "x"}], "max_tokens": 2, "stream": True}
    assert client.ask("POST", "/v1/chat/completions", body).events[-1] == "[DONE]"
    assert client.ask("GET", "/version").body == first.body
    assert client._connection.sock.getsockname()[1] == port
    client.close()
