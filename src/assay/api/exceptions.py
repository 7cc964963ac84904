"""The exceptions of the library. The core never raises for the content of a message; these classes do on request."""

from collections.abc import Sequence
from typing import Any

from assay.model.verdict import Violation


class ValidationError(ValueError):
    """A value does not match its schema; `violations` has the places and reasons."""

    def __init__(self, violations: Sequence[Violation], more: int = 0) -> None:
        self.violations = tuple(violations)
        self.more = more
        """The least number of further violations."""
        super().__init__(self.violations, more)

    def __str__(self) -> str:
        rest = f" (and at least {self.more} more)" if self.more else ""
        return "; ".join(str(each) for each in self.violations) + rest


class JsonRpcError(Exception):
    """An error response as an exception: the error of the other side, or a fault in its response."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        self.code = code
        self.message = message
        self.data = data
        # All arguments, so that the exception can be pickled between processes.
        super().__init__(code, message, data)

    def __str__(self) -> str:
        return f"{self.message} ({self.code})"
