"""One HTTP/1.1 response from bytes, with every way that it can be framed.

Python's own client hides what a witness needs: whether any byte came, whether the body's end was announced or
just happened, and when each piece arrived. So the response is parsed here, from the connection's bytes.
"""

from enum import Enum, auto

MAX_HEAD_BYTES = 64 * 1024
MAX_LINE_BYTES = 8 * 1024
_BODILESS = (204, 304)
_SIZE_DIGITS = 16  # 64 bits in hexadecimal; and Python refuses to read very long decimals


class ProtocolError(Exception):
    """The bytes are not the HTTP/1.1 response, or not the event stream, that was asked for."""


class _Part(Enum):
    HEAD = auto()
    SIZE = auto()
    CHUNK = auto()
    CHUNK_END = auto()
    TRAILER = auto()
    COUNTED = auto()
    UNTIL_CLOSE = auto()
    DONE = auto()


_PAYLOAD = frozenset({_Part.CHUNK, _Part.COUNTED, _Part.UNTIL_CLOSE, _Part.DONE})


class ResponseParser:
    """Takes the connection's bytes piece by piece, gives back the pieces of the body.

    Attributes:
        status: the status code, or 0 while the head is not complete.
        headers: names in lower case; a repeated header is joined with a comma.
        complete: the response's end has been seen.
        reusable: after `complete`: the connection may carry another request.
        surplus: bytes came after the end of the response.
    """

    __slots__ = ("_left", "_part", "_tail", "complete", "headers", "reusable", "status", "surplus")

    def __init__(self) -> None:
        """Starts at the first byte of a response."""
        self.status = 0
        self.headers: dict[str, str] = {}
        self.complete = False
        self.reusable = False
        self.surplus = False
        self._part = _Part.HEAD
        self._left = 0
        self._tail = b""

    def feed(self, piece: bytes) -> list[bytes]:
        """Returns the body bytes in `piece`, in order, without the framing.

        Raises:
            ProtocolError: the bytes are no HTTP/1.1 response.
        """
        data = self._tail + piece if self._tail else piece
        self._tail = b""
        position = 0
        body: list[bytes] = []
        while position < len(data):
            if self._part is _Part.SIZE and (whole := _whole_chunk(data, position)):
                body.append(data[whole])
                position = whole.stop + 2
            elif self._part in _PAYLOAD:
                position = self._payload(data, position, body)
            else:
                position = self._text(data, position)
        return body

    def _payload(self, data: bytes, position: int, body: list[bytes]) -> int:
        """Takes what is there of the body, or of what follows it; returns where it stopped."""
        if self._part is _Part.DONE:
            self.surplus = True
            self.reusable = False
            return len(data)
        if self._part is _Part.UNTIL_CLOSE:
            body.append(data[position:])
            return len(data)
        got = data[position : position + self._left]
        body.append(got)
        self._left -= len(got)
        if not self._left:
            if self._part is _Part.CHUNK:
                self._part = _Part.CHUNK_END
            else:
                self._finish()
        return position + len(got)

    def _text(self, data: bytes, position: int) -> int:
        """Takes the head or one line, or keeps its beginning for later; returns where it stopped."""
        in_head = self._part is _Part.HEAD
        mark = b"\r\n\r\n" if in_head else b"\r\n"
        end = data.find(mark, position)
        if end < 0:
            self._keep(data[position:], MAX_HEAD_BYTES if in_head else MAX_LINE_BYTES)
            return len(data)
        if in_head:
            self._head(data[position:end])
        else:
            self._line(data[position:end])
        return end + len(mark)

    def end_of_input(self) -> bool:
        """Says that the peer closed its side; returns whether that was an orderly end of the body."""
        if self._part is _Part.UNTIL_CLOSE:
            self._finish()
        self.reusable = False
        return self.complete

    def _keep(self, tail: bytes, limit: int) -> None:
        if len(tail) > limit:
            raise ProtocolError(f"a header or chunk size line is longer than {limit} bytes")
        if self._part is _Part.HEAD and not tail.startswith(b"HTTP/1."[: len(tail)]):
            raise ProtocolError(f"not an HTTP/1.1 response: it begins {tail[:40]!r}")
        self._tail = tail

    def _finish(self) -> None:
        self._part = _Part.DONE
        self.complete = True
        tokens = self.headers.get("connection", "").lower()
        self.reusable = "close" not in tokens

    def _line(self, line: bytes) -> None:
        if self._part is _Part.SIZE:
            digits = line.partition(b";")[0].strip()
            try:
                size = int(digits, 16) if digits.isalnum() and len(digits) <= _SIZE_DIGITS else -1
            except ValueError:
                size = -1
            if size < 0:
                raise ProtocolError(f"not a chunk size: {line[:40]!r}")
            self._left = size
            self._part = _Part.CHUNK if size else _Part.TRAILER
        elif self._part is _Part.CHUNK_END:
            if line:
                raise ProtocolError(f"a chunk is longer than its size says: {line[:40]!r}")
            self._part = _Part.SIZE
        elif not line:  # trailers end with an empty line
            self._finish()

    def _head(self, head: bytes) -> None:
        first, *lines = head.decode("latin-1").split("\r\n")
        version, _, rest = first.partition(" ")
        code = rest[:3]
        if version not in ("HTTP/1.1", "HTTP/1.0") or not (len(code) == 3 and code.isdecimal()):  # noqa: PLR2004 - a status code has three digits
            raise ProtocolError(f"not an HTTP/1.1 response: it begins {first[:40]!r}")
        status = int(code)
        if 100 <= status < 200:  # noqa: PLR2004 - informational; the real response follows
            return
        headers: dict[str, str] = {}
        for line in lines:
            name, colon, value = line.partition(":")
            if not colon:
                raise ProtocolError(f"not a header: {line[:40]!r}")
            key = name.strip().lower()
            headers[key] = f"{headers[key]}, {value.strip()}" if key in headers else value.strip()
        if version == "HTTP/1.0" and "keep-alive" not in headers.get("connection", "").lower():
            headers["connection"] = "close"
        self.status, self.headers = status, headers
        self._frame()

    def _frame(self) -> None:
        length = self.headers.get("content-length")
        if self.status in _BODILESS:
            self._finish()
        elif "chunked" in self.headers.get("transfer-encoding", "").lower():
            self._part = _Part.SIZE
        elif length is not None:
            if not (length.isascii() and length.isdecimal() and len(length) <= _SIZE_DIGITS):
                raise ProtocolError(f"not a content-length: {length[:40]!r}")
            self._left = int(length)
            self._part = _Part.COUNTED
            if not self._left:
                self._finish()
        else:
            self._part = _Part.UNTIL_CLOSE


def _whole_chunk(data: bytes, position: int) -> slice | None:
    """Returns where the chunk that begins here has its data, if all of it has come, as it mostly has."""
    line_end = data.find(b"\r\n", position)
    digits = data[position:line_end] if line_end > 0 else b""
    if not digits.isalnum() or len(digits) > _SIZE_DIGITS:
        return None
    try:
        begin = line_end + 2
        end = begin + int(digits, 16)
    except ValueError:
        return None
    return slice(begin, end) if end > begin and data[end : end + 2] == b"\r\n" else None
