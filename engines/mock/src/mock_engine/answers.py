"""Answers under way: takes tokens from the scheduler and turns them into a stream or into one response."""

import asyncio
from abc import ABC, abstractmethod

from mock_engine import text
from mock_engine.environment import AbortStyle
from mock_engine.errors import RequestError, error_object
from mock_engine.requests import Generation
from mock_engine.scheduler import Job, Scheduler
from mock_engine.shapes import DONE, Shape, Usage, error_event
from mock_engine.writers import Writer


class ClientGone(Exception):  # not an error: the client may leave whenever it likes
    """The client closed the connection before its answer was complete."""


class Answer(ABC):
    """The answer to one request, over all its choices; it ends once: complete, failed or abandoned."""

    def __init__(self, generation: Generation, shape: Shape, scheduler: Scheduler) -> None:
        """Prepares the answer; `submit` starts it."""
        self.generation = generation
        self.shape = shape
        self.jobs: list[Job] = []
        self._scheduler = scheduler
        self._unfinished = 0
        self._ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def submit(self, seed: int) -> None:
        """Hands one job per choice to the scheduler."""
        request = self.generation
        for prompt_tokens in request.prompts:
            for _ in range(request.choices_per_prompt):
                index = len(self.jobs)
                job = Job(
                    self.choice(index),
                    prompt_tokens=prompt_tokens,
                    output_tokens=request.output_tokens,
                    max_tokens=request.max_tokens,
                    finish_reason=request.finish_reason,
                    seed=seed + index,
                )
                self.jobs.append(job)
        self._unfinished = len(self.jobs)
        for job in self.jobs:
            self._scheduler.submit(job)

    @abstractmethod
    def choice(self, index: int) -> "Choice":
        """Returns where the tokens of one choice go."""

    def choice_finished(self) -> None:
        """One more choice has all its tokens."""
        self._unfinished -= 1
        if not self._unfinished:
            self.complete()

    def complete(self) -> None:
        """All choices have all their tokens."""
        self.end(None)

    @abstractmethod
    def fail(self, reason: str) -> None:
        """Ends the answer because the engine gave up."""

    @abstractmethod
    def writable(self) -> None:
        """The client reads again after its buffers were full."""

    def end(self, error: Exception | None) -> None:
        """Wakes whoever waits in `ended`; later calls change nothing."""
        if self._ended.done():
            return
        if error is None:
            self._ended.set_result(None)
        else:
            self._ended.set_exception(error)

    async def ended(self) -> None:
        """Waits for the end.

        Raises:
            ClientGone: the client left.
            RequestError: the engine gave up before anything was sent.
        """
        await self._ended

    def abandon(self) -> None:
        """Gives up the jobs."""
        for job in self.jobs:
            self._scheduler.abort(job)

    def client_gone(self) -> None:
        """Gives up the jobs of a client that has left."""
        self.abandon()
        self.end(ClientGone())

    def usage(self) -> Usage:
        """Returns the usage so far over all choices."""
        return Usage(sum(self.generation.prompts), sum(job.emitted for job in self.jobs))


class Choice(ABC):
    """One choice of an answer: the sink of one job."""

    def __init__(self, answer: Answer, index: int) -> None:
        """Makes the sink of choice `index`."""
        self.answer = answer
        self.index = index

    @abstractmethod
    def tokens(self, job: Job, number: int) -> None:
        """Takes the next tokens."""

    def fail(self, reason: str) -> None:
        """Ends the whole answer."""
        self.answer.fail(reason)


class Whole(Answer):
    """An answer that is sent when it is complete."""

    def __init__(self, generation: Generation, shape: Shape, scheduler: Scheduler, abort_style: AbortStyle) -> None:
        """Prepares the answer; the style says what becomes of it when the engine gives it up."""
        super().__init__(generation, shape, scheduler)
        self._abort_style = abort_style

    def choice(self, index: int) -> Choice:
        """Returns a sink that only counts: the text follows from the job."""
        return _WholeChoice(self, index)

    def fail(self, reason: str) -> None:
        """Makes the response an error; with ABORT_STYLE=abort, one of the tokens so far."""
        if self._abort_style != "abort":
            self.end(RequestError(500, reason, "InternalServerError"))
            return
        for job in self.jobs:
            if job.remaining:
                job.finish_reason = "abort"
        self.end(None)

    def writable(self) -> None:
        """Changes nothing: nothing was held back."""

    def body(self) -> dict[str, object]:
        """Returns the response's JSON."""
        texts = [(text.answer(job.seed, 0, job.emitted), job.finish_reason) for job in self.jobs]
        return self.shape.whole(texts, self.usage())


class _WholeChoice(Choice):
    def tokens(self, job: Job, number: int) -> None:  # noqa: ARG002  # the job has counted them
        if not job.remaining:
            self.answer.choice_finished()


class Stream(Answer):
    """An answer that is sent token by token."""

    def __init__(
        self, generation: Generation, shape: Shape, scheduler: Scheduler, writer: Writer, abort_style: AbortStyle
    ) -> None:
        """Prepares the stream; its headers are the endpoint's to send."""
        super().__init__(generation, shape, scheduler)
        self.writer = writer
        self.sequence = 0
        self._abort_style = abort_style
        self.opened = False
        self._choices: list[_StreamChoice] = []

    def choice(self, index: int) -> Choice:
        """Returns a sink that writes to the client."""
        choice = _StreamChoice(self, index)
        self._choices.append(choice)
        return choice

    def write(self, data: bytes) -> None:
        """Writes one event and counts it."""
        self.writer.write_chunk(data)
        self.sequence += 1

    def open(self) -> None:
        """Names the role of each choice before the first token of any; completions have none."""
        self.opened = True
        if self.shape.kind == "chat":
            usage = Usage(sum(self.generation.prompts), 0) if self.generation.continuous_usage else None
            for choice in self._choices:
                self.write(self.shape.opening(choice.index, self.sequence, usage))

    def writable(self) -> None:
        """Sends what was held back while the client did not read."""
        for choice, job in zip(self._choices, self.jobs, strict=True):
            choice.flush(job)

    def complete(self) -> None:
        """Sends the usage, if asked for, and the end mark."""
        if self.generation.include_usage:
            self.write(self.shape.usage(self.usage(), self.sequence))
        self._close()

    def fail(self, reason: str) -> None:
        """Ends the stream as vLLM does when it shuts down under it, see ABORT_STYLE."""
        if self._ended.done() or self._abort_style == "silence":
            return
        if self._abort_style == "error":
            self.writer.write_chunk(error_event(error_object(500, reason, "InternalServerError")))
        elif self._abort_style == "abort" and self.opened:  # one that waited was never seen to say `abort`
            for choice in self._choices:
                closing = self.shape.closing(choice.index, b"", "abort", self.sequence, usage=None, fingerprint=True)
                self.write(closing)
        self._close()

    def _close(self) -> None:
        self.writer.write_chunk(DONE)
        self.end(None)

    def leave(self, ends: bool) -> None:  # noqa: FBT001  # called by a writer that knows no names
        """Stops on behalf of a fault: the response ends cleanly, or it never does and the jobs stay running."""
        if ends:
            self.abandon()
            self.end(None)
        else:
            for job in self.jobs:
                job.stalled = True

    def end(self, error: Exception | None) -> None:
        """Ends the answer, unless a fault keeps it from ending while the client is there."""
        if error is not None or not any(job.stalled for job in self.jobs):
            super().end(error)


class _StreamChoice(Choice):
    answer: Stream

    def __init__(self, answer: Stream, index: int) -> None:
        super().__init__(answer, index)
        self._before, self._after = answer.shape.text_parts(index)
        self._held = 0

    def tokens(self, job: Job, number: int) -> None:
        stream = self.answer
        if not stream.opened:
            stream.open()
        remaining = job.remaining
        if remaining and stream.writer.congested:
            self._held += number
            return
        number += self._held
        self._held = 0
        content = text.answer(job.seed, job.emitted - number, number)
        usage = stream.usage() if stream.generation.continuous_usage else None
        if not remaining:
            fingerprint = not stream.generation.include_usage
            closing = stream.shape.closing(
                self.index, content, job.finish_reason, stream.sequence, usage=usage, fingerprint=fingerprint
            )
            stream.write(closing)
            stream.choice_finished()
        elif usage is not None:
            stream.write(stream.shape.text(self.index, content, stream.sequence, usage))
        else:
            sequence = stream.sequence
            stream.sequence = sequence + 1
            stream.writer.write_chunk(b"%b%b%b%d}\n\n" % (self._before, content, self._after, sequence))

    def flush(self, job: Job) -> None:
        """Sends the tokens that were held back, as one event."""
        if self._held and not job.ended:
            number, self._held = self._held, 0
            self.tokens(job, number)
