"""vLLM's error objects."""

from typing import Any


class RequestError(Exception):
    """A request that is answered with an error object."""

    def __init__(self, status: int, message: str, kind: str, param: str | None = None) -> None:
        """Keeps what goes into the error object."""
        super().__init__(message)
        self.status = status
        self.kind = kind
        self.param = param

    def body(self) -> dict[str, Any]:
        """Returns the JSON body."""
        return error_object(self.status, str(self), self.kind, self.param)


def bad_request(message: str, param: str | None) -> RequestError:
    """Returns the error for a value that vLLM refuses after the body's shape was found valid."""
    return RequestError(400, message, "BadRequestError", param)


def error_object(status: int, message: str, kind: str, param: str | None = None) -> dict[str, Any]:
    """Returns an error body: an object with message, type, param and code under `error`."""
    # A request may name things that are no text, such as half a character; its echo must be text.
    message = message.encode(errors="replace").decode()
    return {"error": {"message": message, "type": kind, "param": param, "code": status}}
