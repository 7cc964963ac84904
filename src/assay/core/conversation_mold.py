"""
Copies of a conversation in the state that it is in: many conversations begin with the same messages. No I/O, no clock.

Only objects of classes that are named here are copied, and only those that never change are shared. With anything else
there is no mold, and the messages have to be heard again: a new kind of state costs time, and never a verdict.
"""

from collections.abc import Callable, Collection, Iterator
from functools import partial
from typing import Any, Final

from assay.base.limits import Limits
from assay.base.verdict import Exchange, Party
from assay.contracts.tool_contract import Contract
from assay.contracts.tool_contracts import ToolChain, Tools
from assay.contracts.tool_lists import NameSet, ToolList
from assay.core.conversation import Conversation
from assay.core.extensions.extension_state import ExtensionState
from assay.core.history.cache_scopes import CacheScopes
from assay.core.history.forms import Forms
from assay.core.history.rounds import Rounds
from assay.core.history.stateless_state import StatelessState
from assay.core.history.subscriptions import Subscriptions
from assay.core.history.tasks import Tasks
from assay.core.lifecycle import Lifecycle
from assay.core.party_state import Irregular, Side
from assay.core.policy import Policy
from assay.core.state import Memory
from assay.engine.budget import Budget
from assay.ladder.envelope import Profile
from assay.ladder.protocol import Entry, Judge
from assay.spec.extensions.official import ExtensionSet

_COPIED: Final = frozenset(
    {
        Budget, CacheScopes, Conversation, Exchange, ExtensionState, Forms, Irregular, Lifecycle, Memory, Rounds, Side,
        StatelessState, Subscriptions, Tasks, Tools,
    }
)  # fmt: skip
"""Classes whose attributes are all of their state."""

_SHARED: Final = frozenset(
    {
        # They are the same for every conversation, or never change.
        bool, bytes, float, int, str, type(None), Contract, Entry, ExtensionSet, Judge, Limits, ToolChain, NameSet,
        Party, Policy, Profile, ToolList, partial,
    }
)  # fmt: skip

_LARGEST: Final = 1_000
"""Maximal parts of a conversation that are copied. One with a hundred tools has two hundred."""


class MoldError(Exception):
    """A conversation has a state that cannot be copied."""


class ConversationMold:
    """The state of a conversation, to make others of."""

    __slots__ = ("_constants", "_items", "_links", "_makers")

    def __init__(self, conversation: Conversation, own: Policy | None) -> None:
        """*own* is the policy of this conversation alone, if any. Raises `MoldError`."""
        self._makers: list[Callable[[], Any]] = []
        """How each part is made; the first one is the conversation."""
        self._constants: list[tuple[int, str, Any]] = []
        """The attributes that are shared: the part, the name and the value."""
        self._links: list[tuple[int, str, int]] = []
        """The attributes that are parts: the part, the name, and the part that is its value."""
        self._items: list[tuple[int, Any, int]] = []
        """The parts in dictionaries: the dictionary, the key, and the part."""
        known: dict[int, tuple[int, Any]] = {} if own is None else {id(own): (_OWN, own)}
        self._add(conversation, known)

    def copy(self, own: Policy | None) -> Conversation:
        """Return a new conversation in that state; *own* is its own policy, if it has one."""
        made = [make() for make in self._makers]
        # The last one: `_OWN` counts from the end.
        made.append(own)
        for part, name, value in self._constants:
            setattr(made[part], name, value)
        for part, name, source in self._links:
            setattr(made[part], name, made[source])
        for part, key, source in self._items:
            made[part][key] = made[source]
        found: Conversation = made[0]
        return found

    def _add(self, thing: Any, known: dict[int, tuple[int, Any]]) -> int:
        """Add *thing* with all of its parts; return its number, `_CONSTANT` if it is shared."""
        kind = type(thing)
        if id(thing) in known:
            return known[id(thing)][0]
        if kind in _SHARED or (kind in {frozenset, tuple} and _is_plain(thing)):
            return _CONSTANT
        number = len(self._makers)
        if number >= _LARGEST:
            raise MoldError("too many parts")
        # The thing itself is kept, so that no other one gets its identity meanwhile.
        known[id(thing)] = number, thing
        if kind in _COPIED:
            self._makers.append(partial(object.__new__, kind))
            for name, value in _attributes(thing):
                source = self._add(value, known)
                if source == _CONSTANT:
                    self._constants.append((number, name, value))
                else:
                    self._links.append((number, name, source))
        elif kind is dict:
            self._makers.append(dict(thing).copy)
            for key, value in thing.items():
                if type(key) not in _SHARED:
                    raise MoldError(f"a key of the class {type(key).__name__}")
                source = self._add(value, known)
                if source != _CONSTANT:
                    self._items.append((number, key, source))
        elif kind in {list, set} and _is_plain(thing):
            self._makers.append(kind(thing).copy)
        else:
            raise MoldError(f"an object of the class {kind.__name__}")
        return number


_OWN: Final = -1
"""The number of the policy that each conversation has for itself."""

_CONSTANT: Final = -2
"""The number of everything that is shared."""


def _is_plain(things: Collection[Any]) -> bool:
    """Return whether everything in *things* is shared."""
    return all(type(each) in _SHARED for each in things)


def _attributes(thing: Any) -> Iterator[tuple[str, Any]]:
    """Yield the attributes of an object that are set, in the order in which they are set."""
    yield from getattr(thing, "__dict__", {}).items()
    for kind in type(thing).__mro__:
        for name in getattr(kind, "__slots__", ()):
            if name != "__weakref__" and hasattr(thing, name):
                yield name, getattr(thing, name)
