"""Every error a user can meet: one sentence with rule, limit and value, one hint, one exit code."""

import re


class BorradorError(Exception):
    """Base of all errors raised on purpose. `str(error)` is one sentence; `hint` says what to do next."""

    exit_code = 1

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class UsageError(BorradorError):
    """An option or argument breaks a rule: out of range, unknown, or contradictory."""

    exit_code = 2


class ModelError(BorradorError):
    """A model is missing, not a model file, damaged, or of a kind that is not supported."""

    exit_code = 3


class ContextLengthError(UsageError):
    """The prompt does not fit into the context."""


class MemoryLimitError(BorradorError):
    """The model and its cache do not fit into memory."""

    exit_code = 4


class QueueFullError(BorradorError):
    """No more requests may be running or waiting. `retry_after_s` estimates when there will be room."""

    def __init__(self, message: str, hint: str = "", retry_after_s: float = 1.0) -> None:
        super().__init__(message, hint)
        self.retry_after_s = retry_after_s


class UnavailableError(BorradorError):
    """The scheduler is shutting down, or has failed."""


class VerificationError(BorradorError):
    """Speculative and plain decoding gave different tokens."""

    exit_code = 5


def in_words(reason: str) -> str:
    """What an error of the system or of TLS says of itself, without its number or its place in OpenSSL's code."""
    without_place = re.sub(r"^\[SSL: \w+\] (.*) \(_ssl\.c:\d+\)$", r"TLS: \1", reason)
    return re.sub(r"^\[(Errno|WinError) -?\d+\] ", "", without_place)
