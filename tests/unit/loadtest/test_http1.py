"""The response parser: every framing, every cut, and nothing but its own error."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from loadgen.http1 import MAX_HEAD_BYTES, ProtocolError, ResponseParser

CHUNKED = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\nX-Two: a\r\nx-two: b\r\n"
    b"transfer-encoding: chunked\r\n\r\n5\r\nhello\r\n006;name=value\r\n world\r\n0\r\nx-trailer: 1\r\n\r\n"
)
COUNTED = b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 11\r\n\r\nhello world"
UNTIL_CLOSE = b"HTTP/1.1 200 OK\r\n\r\nhello world"


def parse(*pieces: bytes) -> tuple[ResponseParser, bytes]:
    """Feeds the pieces to one parser; returns it and the body."""
    parser = ResponseParser()
    return parser, b"".join(part for piece in pieces for part in parser.feed(piece))


@pytest.mark.parametrize("response", [CHUNKED, COUNTED])
def test_two_pieces(response: bytes) -> None:
    """A response cut into two anywhere has the body of the whole, and ends with its last byte."""
    for cut in range(len(response) + 1):
        parser, body = parse(response[:cut], response[cut:])
        assert (body, parser.complete, parser.reusable, parser.surplus) == (b"hello world", True, True, False)
        assert not parse(response[: min(cut, len(response) - 1)])[0].complete


def test_single_bytes() -> None:
    """A response that comes byte by byte is the response."""
    parser, body = parse(*(CHUNKED[i : i + 1] for i in range(len(CHUNKED))))
    assert body == b"hello world"
    assert parser.headers["x-two"] == "a, b"


def test_until_close() -> None:
    """A body without length ends when the connection does; then it is complete and not reusable."""
    parser, body = parse(UNTIL_CLOSE)
    assert (body, parser.complete) == (b"hello world", False)
    assert parser.end_of_input()
    assert not parser.reusable


@pytest.mark.parametrize("length", [0, 20, 120, len(CHUNKED) - 1])
def test_closed_early(length: int) -> None:
    """A chunked response that the connection's end cuts is not complete."""
    parser, _ = parse(CHUNKED[:length])
    assert not parser.end_of_input()


@pytest.mark.parametrize(
    ("head", "reusable"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", True),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: Close\r\n\r\n", False),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n", False),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 0\r\nConnection: keep-alive\r\n\r\n", True),
        (b"HTTP/1.1 204 No Content\r\n\r\n", True),
    ],
)
def test_reusable(head: bytes, reusable: bool) -> None:  # noqa: FBT001 - a table's column
    """Whether the connection may carry another request follows version and connection header."""
    parser, _ = parse(head)
    assert (parser.complete, parser.reusable) == (True, reusable)


def test_informational() -> None:
    """A 1xx response is not the response."""
    parser, body = parse(b"HTTP/1.1 100 Continue\r\n\r\n" + COUNTED)
    assert (parser.status, body) == (500, b"hello world")


def test_surplus() -> None:
    """Bytes after the end are noticed, and the connection is not used again."""
    parser, body = parse(COUNTED + b"more")
    assert (body, parser.surplus, parser.reusable) == (b"hello world", True, False)


@pytest.mark.parametrize(
    "data",
    [
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"HTTP/2 200\r\n\r\n",
        b"HTTP/1.1 2x0 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: " + b"9" * 5000 + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n" + b"9" * 5000 + b"\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n-5\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nabc\r\n",
        b"HTTP/1.1 200 OK\r\nx: " + b"y" * (MAX_HEAD_BYTES + 10),
    ],
)
def test_no_response(data: bytes) -> None:
    """What is no HTTP/1.1 response is refused."""
    with pytest.raises(ProtocolError):
        parse(data)


@given(st.binary(max_size=60), st.integers(0, len(CHUNKED)), st.integers(0, 12))
def test_damaged(noise: bytes, at: int, lost: int) -> None:
    """Whatever happens to the bytes on the way, the parser either reads them or raises its own error."""
    try:
        parse(CHUNKED[:at] + noise + CHUNKED[at + lost :])
    except ProtocolError as error:
        assert str(error)  # noqa: PT017 - raising is allowed, not required
