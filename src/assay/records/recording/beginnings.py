"""
How conversations of a recording begin: thousands have the same handshake and the same list of tools. No I/O.

The first good messages of each conversation are remembered, as a tree. A conversation whose messages are known from the
start needs no judging before a message that differs; then it continues with a copy of the state after these messages.
The state depends only on how the conversation was opened and on its messages, byte for byte.
"""

from collections.abc import Callable
from contextlib import suppress
from typing import Final

from assay.base.verdict import Party, Verdict
from assay.core.conversation import Conversation
from assay.core.conversation_mold import ConversationMold, MoldError
from assay.core.policy import Policy
from assay.records.outcomes import outcome_of

_LONGEST: Final = 8
"""Maximal messages of a beginning. A handshake and the lists of tools, prompts and resources have nine."""

_MOST_BYTES: Final = 2 << 20
"""Bytes of all messages that are remembered; with more, remembering starts again."""

_MOST_STEPS: Final = 500
"""Messages that are remembered. The state after each may be kept as well, some 20 KB."""

_WORTH: Final = 2
"""How often a state is needed before it is kept: a message that comes once needs no copy."""


class Beginning:
    """The first messages of a conversation, all of them without findings."""

    __slots__ = ("_asked", "_mold", "is_failure", "next", "revision", "said")

    def __init__(
        self, said: tuple[tuple[Party, bytes], ...] = (), revision: str | None = None, *, is_failure: bool = False
    ) -> None:
        self.said = said
        self.is_failure = is_failure
        """Whether the last message reports the server's own error."""
        self.revision = revision
        """The revision of the conversation after that."""
        self.next: dict[tuple[Party, bytes], Beginning] = {}
        """The beginnings with one message more."""
        self._asked = 0
        self._mold: ConversationMold | None = None

    def conversation(self, begin: Callable[[], Conversation], own: Policy | None) -> Conversation:
        """Return a conversation after just these messages. *begin* returns a new one, *own* is its own policy."""
        if self._mold is not None:
            return self._mold.copy(own)
        made = begin()
        for party, frame in self.said:
            made.hear(party, frame)
        self._asked += 1
        if self._asked == _WORTH and self.said:
            with suppress(MoldError):
                self._mold = ConversationMold(made, own)
        return made


class Beginnings:
    """The beginnings of all conversations of a recording, by how they were opened."""

    __slots__ = ("_bytes", "_forget", "_roots", "_steps")

    def __init__(self, forget: Callable[[], None]) -> None:
        """*forget* is called when remembering starts again: conversations then have to let their beginnings go."""
        self._roots: dict[object, Beginning] = {}
        self._bytes = self._steps = 0
        self._forget = forget

    def root(self, key: object) -> Beginning:
        """Return the beginning of conversations that were opened like *key*, without a message."""
        known = self._roots.get(key)
        if known is None:
            self._has_room(0)
            known = self._roots[key] = Beginning()
        return known

    def heard(self, before: Beginning, heard: Verdict, revision: str | None) -> Beginning | None:
        """
        Return the beginning with one message more, which got a verdict; None if others are unlikely to have it.

        *revision* is that of the conversation after the message.
        """
        if heard.findings is not None or heard.tool is not None or len(before.said) >= _LONGEST:
            return None
        message = (heard.party, heard.frame)
        known = before.next.get(message)
        if known is None:
            if not self._has_room(len(heard.frame)):
                # What was before the message is forgotten.
                return None
            known = before.next[message] = Beginning(
                (*before.said, message), revision, is_failure=outcome_of(heard).word == "failed"
            )
        return known

    def _has_room(self, size: int) -> bool:
        """Count one message more, of *size* bytes; return whether all others are still remembered."""
        self._bytes += size
        self._steps += 1
        if self._bytes <= _MOST_BYTES and self._steps <= _MOST_STEPS:
            return True
        self._roots.clear()
        self._bytes = self._steps = 0
        self._forget()
        return False
