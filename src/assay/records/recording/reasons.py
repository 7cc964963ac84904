"""Counts of messages that were not judged, or not judged again, by reason. No I/O."""

from collections.abc import Iterator


class Reasons:
    """The number of messages for each reason, in the order of the first message of each."""

    __slots__ = ("_found",)

    def __init__(self) -> None:
        self._found: dict[str, tuple[int, int]] = {}

    def add(self, reason: str, line: int) -> None:
        """Count one message, in *line*. Lines come in order."""
        count, first = self._found.get(reason, (0, line))
        self._found[reason] = count + 1, first

    def merge(self, other: "Reasons") -> None:
        """Add the counts of *other*, whose messages may come before ours."""
        for reason, (count, first) in other._found.items():
            known, earlier = self._found.get(reason, (0, first))
            self._found[reason] = known + count, min(first, earlier)

    def move(self, lines: int) -> None:
        """Count *lines* more before each message."""
        self._found = {reason: (count, first + lines) for reason, (count, first) in self._found.items()}

    def __iter__(self) -> Iterator[tuple[str, int]]:
        """Yield each reason with its number of messages."""
        for reason, (count, _) in sorted(self._found.items(), key=lambda item: item[1][1]):
            yield reason, count

    def __getitem__(self, reason: str) -> int:
        return self._found.get(reason, (0, 0))[0]

    def __bool__(self) -> bool:
        return bool(self._found)
