"""A chat completion server that costs little and keeps its own record of every answer.

One asyncio loop, no framework: tokens are due in the order in which they were scheduled, so two queues take
the place of a timer per token. `GET /record` tells how long the server itself took to its first tokens, which is
the truth that clients are compared with; `GET /now` only how many it is serving.

    python3 bench/peers/server.py --port 8100
    python3 bench/peers/server.py --port 8100 --ending abort
"""

import argparse
import asyncio
import contextlib
import json
import resource
import socket
import struct
import sys
import time
from collections import deque

MODEL = "mock/mock-8b"
ENDINGS = {
    "ok": "a whole answer",
    "abort": "half of the tokens, then finish_reason abort and [DONE]",
    "done_only": "half of the tokens, then [DONE] without a finish_reason",
    "error_event": "half of the tokens, then an error object and [DONE]",
    "cut": "half of the tokens, then the body ends in order, without [DONE]",
    "fin": "half of the tokens, then the connection is closed inside the body",
    "reset": "half of the tokens, then the connection is reset",
    "stall": "half of the tokens, then silence on an open connection",
    "empty": "finish_reason and [DONE], but no token",
    "http_500": "status 500 with an error object",
}
HEAD = (
    b"HTTP/1.1 200 OK\r\nserver: uvicorn\r\ncontent-type: text/event-stream; charset=utf-8\r\n"
    b"transfer-encoding: chunked\r\n\r\n"
)
ABORT_ON_CLOSE = struct.pack("ii", 1, 0)


def framed(data: bytes) -> bytes:
    """Returns one server-sent event as one HTTP chunk."""
    event = b"data: " + data + b"\n\n"
    return b"%x\r\n%b\r\n" % (len(event), event)


def chunk(content: str | None, reason: str | None = None, *, chat: bool = True) -> bytes:
    """Returns the event of one completion chunk, in the shape that vLLM streams."""
    delta = {"role": "assistant", "content": ""} if content is None else {"content": content}
    said = {"delta": delta} if chat else {"text": content or ""}
    choice = {"index": 0, **said, "logprobs": None, "finish_reason": reason}
    body = {
        "id": "chatcmpl-0123456789abcdef",
        "object": "chat.completion.chunk" if chat else "text_completion",
        "created": 1700000000,
        "model": MODEL,
        "choices": [choice],
    }
    return framed(json.dumps(body).encode())


ERROR = {"message": "EngineCore died", "type": "InternalServerError", "param": None, "code": 500}
TOKEN, LAST, ROLE = chunk("word "), chunk("word ", "length"), chunk(None)
TEXT, LAST_TEXT = chunk("word ", chat=False), chunk("word ", "length", chat=False)
END = b"0\r\n\r\n"
DONE = framed(b"[DONE]") + END


class Record:
    """What the server knows about the answers it gave; seconds."""

    def __init__(self) -> None:
        """Starts empty."""
        self.asked: list[float] = []
        self.first_tokens: list[float] = []
        self.totals: list[float] = []
        self.most_at_once = 0
        self.at_once = 0

    def to_json(self) -> bytes:
        """Returns the record as JSON."""
        record = {
            "asked": self.asked,
            "most_at_once": self.most_at_once,
            "ttft": self.first_tokens,
            "e2e": self.totals,
        }
        return json.dumps(record).encode()


class Schedule:
    """Who gets the next token when: all first tokens wait equally long, and so do all others."""

    def __init__(self, first: float, between: float) -> None:
        """Takes the time to first token and the time between tokens, in seconds."""
        self._waits = (first, between)
        self._queues: tuple[deque[tuple[float, Answer]], deque[tuple[float, Answer]]] = (deque(), deque())
        self._timer: asyncio.TimerHandle | None = None

    def add(self, answer: "Answer", *, first: bool) -> None:
        """Gives the answer its next turn."""
        queue = 0 if first else 1
        self._queues[queue].append((answer.last_turn + self._waits[queue], answer))
        if self._timer is None:
            self._arm()

    def _arm(self) -> None:
        dues = [queue[0][0] for queue in self._queues if queue]
        self._timer = asyncio.get_running_loop().call_at(min(dues), self._serve) if dues else None

    def _serve(self) -> None:
        now = time.monotonic()
        for queue in self._queues:
            while queue and queue[0][0] <= now:
                due, answer = queue.popleft()
                answer.last_turn = due
                answer.turn()
        self._arm()


class Answer(asyncio.Protocol):
    """One connection; its requests are answered one after another."""

    def __init__(self, schedule: Schedule, record: Record, ending: str, tokens: int) -> None:
        """Waits for a request."""
        self._schedule = schedule
        self._record = record
        self._ending = ending
        self._most_tokens = tokens
        self._transport: asyncio.Transport | None = None
        self._received = bytearray()
        self._asked_at = 0.0
        self._sent = 0
        self._close = False
        self._usage = False
        self._chat = True
        self._busy = False
        self._tokens = tokens
        self.last_turn = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Is called by the loop."""
        assert isinstance(transport, asyncio.Transport)  # noqa: S101 - what create_server promises
        self._transport = transport

    def connection_lost(self, exc: BaseException | None) -> None:
        """Is called by the loop; a stream whose client has gone is no longer at once with the others."""
        del exc
        self._transport = None
        self._over()

    def data_received(self, data: bytes) -> None:
        """Is called by the loop."""
        asked_at = time.monotonic()
        self._received += data
        head, blank, body = bytes(self._received).partition(b"\r\n\r\n")
        if not blank or self._transport is None:
            return
        first, *lines = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        if len(body) < int(headers.get("content-length", 0)):
            if headers.get("expect"):
                self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            return
        self._received.clear()
        self._close = headers.get("connection", "").lower() == "close"
        method, path, _ = first.split(" ")
        if method == "POST":
            self._asked_at = self.last_turn = asked_at
            self._chat = path.endswith("/chat/completions")
            self._begin(json.loads(body))
        else:
            self._tell(path)

    def _tell(self, path: str) -> None:
        if path == "/record":
            body = self._record.to_json()
        elif path == "/now":
            body = json.dumps({"at_once": self._record.at_once}).encode()
        elif path == "/v1/models":
            body = json.dumps({"object": "list", "data": [{"id": MODEL, "object": "model"}]}).encode()
        else:
            body = b""
        self._plain(200, body)

    def _plain(self, status: int, body: bytes) -> None:
        assert self._transport is not None  # noqa: S101 - we were just spoken to
        head = b"HTTP/1.1 %d X\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
        self._transport.write(head % (status, len(body)) + body)
        if self._close:
            self._transport.close()

    def _begin(self, request: dict[str, object]) -> None:
        options = request.get("stream_options")
        self._usage = isinstance(options, dict) and bool(options.get("include_usage"))
        self._record.asked.append(self._asked_at)
        asked = request.get("max_tokens") or request.get("max_completion_tokens") or self._most_tokens
        self._tokens = min(asked, self._most_tokens) if isinstance(asked, int) else self._most_tokens
        if self._ending == "http_500":
            self._plain(500, json.dumps({"error": ERROR}).encode())
            return
        self._sent = 0
        self._busy = True
        self._record.at_once += 1
        self._record.most_at_once = max(self._record.at_once, self._record.most_at_once)
        self._schedule.add(self, first=True)

    def turn(self) -> None:
        """Sends what is due."""
        transport = self._transport
        if transport is None:
            return
        self._sent += 1
        if self._ending != "ok" and (self._ending == "empty" or self._sent > self._tokens // 2):
            self._fail(transport)
            return
        last = self._sent == self._tokens
        token, end = (TOKEN, LAST) if self._chat else (TEXT, LAST_TEXT)
        data = end if last else token
        if self._sent == 1:
            self._record.first_tokens.append(time.monotonic() - self._asked_at)
            data = HEAD + (ROLE if self._chat else b"") + data
        if last:
            if self._usage:
                data += usage(self._sent)
            data += DONE
        transport.write(data)
        if last:
            self._record.totals.append(time.monotonic() - self._asked_at)
            self._over()
            if self._close:
                transport.close()
        else:
            self._schedule.add(self, first=False)

    def _fail(self, transport: asyncio.Transport) -> None:
        self._over()
        if self._ending == "stall":
            return
        if self._ending == "reset":
            peer = transport.get_extra_info("socket")
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, ABORT_ON_CLOSE)
            transport.abort()
            return
        parting = {
            "abort": chunk("", "abort", chat=self._chat) + DONE,
            "done_only": DONE,
            "error_event": framed(json.dumps({"error": ERROR}).encode()) + DONE,
            "cut": END,
            "fin": b"",
            "empty": HEAD + chunk("", "length", chat=self._chat) + DONE,
        }
        transport.write(parting[self._ending])
        if self._close or self._ending == "fin":
            transport.close()

    def _over(self) -> None:
        if self._busy:
            self._busy = False
            self._record.at_once -= 1


def usage(tokens: int) -> bytes:
    """Returns the event that closes a stream whose client asked for usage."""
    counts = {"prompt_tokens": 8, "total_tokens": 8 + tokens, "completion_tokens": tokens}
    return framed(json.dumps({"object": "chat.completion.chunk", "choices": [], "usage": counts}).encode())


async def serve(options: argparse.Namespace) -> None:
    """Serves until it is killed."""
    schedule, record = Schedule(options.ttft, options.itl), Record()

    def answer() -> Answer:
        return Answer(schedule, record, options.ending, options.tokens)

    loop = asyncio.get_running_loop()
    server = await loop.create_server(answer, "127.0.0.1", options.port, backlog=4096)
    print(f"ready on {options.port}", flush=True)
    await server.serve_forever()


def main() -> int:
    """Runs the command line."""
    plain = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=plain)
    parser.add_argument("--port", type=int, default=8100)
    parser.add_argument("--ttft", type=float, default=0.1, help="seconds to the first token")
    parser.add_argument("--itl", type=float, default=0.03, help="seconds between tokens")
    parser.add_argument("--tokens", type=int, default=20, help="most tokens of an answer")
    parser.add_argument("--ending", choices=ENDINGS, default="ok", help="how every answer ends")
    options = parser.parse_args()
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(serve(options))
    return 0


if __name__ == "__main__":
    sys.exit(main())
