"""The exceptions of the library's faces. The core never raises for what a message contains; these do, when asked to."""

from collections.abc import Sequence
from typing import Any

from assay.base.verdict import Violation


class ValidationError(ValueError):
    """An instance does not keep to its schema; `violations` says where and why."""

    def __init__(self, violations: Sequence[Violation], more: int = 0) -> None:
        self.violations = tuple(violations)
        self.more = more
        """At least how many violations there are beyond those listed."""
        super().__init__(self.violations, more)

    def __str__(self) -> str:
        rest = f" (and at least {self.more} more)" if self.more else ""
        return "; ".join(str(each) for each in self.violations) + rest


class JsonRpcError(Exception):
    """An error response, raised: what the other side answered, or what is wrong with its answer."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        self.code = code
        self.message = message
        self.data = data
        # All of it, so that the exception survives a pickle on its way from another process.
        super().__init__(code, message, data)

    def __str__(self) -> str:
        return f"{self.message} ({self.code})"
