"""The event stream parser: any cut, any line ending, any text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from loadgen import sse
from loadgen.sse import Event, EventParser, EventTooLongError

RECORDED = (
    ': comment\n\ndata: {"choices":[{"delta":{"content":"hé 😀"}}]}\n\n'
    'data:{"choices":[]}\n\nevent: error\ndata: a\ndata:  b\ndata\n\nid: 7\nretry: 1\n\ndata: [DONE]\n\n'
).encode()
EVENTS = [
    Event('{"choices":[{"delta":{"content":"hé 😀"}}]}'.encode()),
    Event(b'{"choices":[]}'),
    Event(b"a\n b\n", b"error"),
    Event(b"[DONE]"),
]
ENDINGS = {"LF": b"\n", "CR": b"\r", "CRLF": b"\r\n"}


def parse(*pieces: bytes) -> list[Event]:
    """Feeds the pieces to one parser."""
    parser = EventParser()
    return [event for piece in pieces for event in parser.feed(piece)]


def by_the_standard(stream: bytes) -> list[Event]:
    """Parses a whole stream as the standard's prose says, step by step and without care for speed."""
    text = stream.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    events: list[Event] = []
    data: list[bytes] = []
    name = b""
    for line in text.split(b"\n")[:-1]:
        if not line:
            if data:
                events.append(Event(b"\n".join(data), name))
            data, name = [], b""
            continue
        field, _, value = line.partition(b":")
        value = value[1:] if value[:1] == b" " else value
        if field == b"data":
            data.append(value)
        elif field == b"event":
            name = value
    return events


@pytest.mark.parametrize("ending", ENDINGS)
def test_two_pieces(ending: str) -> None:
    """A stream cut into two anywhere gives the events of the whole, with each of the three line endings."""
    stream = RECORDED.replace(b"\n", ENDINGS[ending])
    for cut in range(len(stream) + 1):
        assert parse(stream[:cut], stream[cut:]) == EVENTS


@pytest.mark.parametrize("ending", ENDINGS)
def test_single_bytes(ending: str) -> None:
    """A stream that comes byte by byte gives the events of the whole."""
    stream = RECORDED.replace(b"\n", ENDINGS[ending])
    assert parse(*(stream[i : i + 1] for i in range(len(stream)))) == EVENTS


@given(
    st.lists(st.sampled_from([b"data", b":", b" ", b"\n", b"\r", b"event", b"x", b"\xef\xbb\xbf", b"\xc3"])),
    st.data(),
)
def test_any_text_cut_anywhere(parts: list[bytes], data: st.DataObject) -> None:
    """Whatever the bytes and the cuts, the events are those that the standard's own steps give."""
    stream = b"".join(parts)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=6)))
    pieces = [stream[start:end] for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    assert parse(*pieces) == by_the_standard(stream)


def test_events_in_one_read() -> None:
    """Several events in one read are several events."""
    assert parse(b"data: 1\n\ndata: 2\n\ndata: 3\n\n") == [Event(b"1"), Event(b"2"), Event(b"3")]


def test_unfinished_event() -> None:
    """An event that the stream ends inside is no event."""
    assert parse(b"data: [DONE]\n") == []
    assert parse(b"data: [DONE]") == []


def test_byte_order_mark() -> None:
    """A byte order mark before the first line is skipped, also when it comes in pieces; later it is text."""
    assert parse(b"\xef", b"\xbb", b"\xbfdata: 1\n\n") == [Event(b"1")]
    assert parse(b"\xef\xbb") == []
    assert parse(b"data: 1\n\n\xef\xbb\xbfdata: 2\n\n") == [Event(b"1")]


def test_no_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """A line, or an event of many lines, that never ends is refused instead of filling the memory."""
    monkeypatch.setattr(sse, "MAX_EVENT_BYTES", 1000)
    with pytest.raises(EventTooLongError, match="longer than 1000 bytes"):
        parse(b"data: ", *[b"x" * 100] * 20)
    with pytest.raises(EventTooLongError, match="longer than 1000 bytes"):
        parse(*[b"data: " + b"x" * 100 + b"\n"] * 20)
