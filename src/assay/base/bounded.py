"""A dict with a bound: whatever a peer can add to is kept in one of these, or in `shares`. No I/O."""

from typing import TypeVar

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


class Bounded(dict[_Key, _Value]):
    """A dict that forgets its oldest entry for one too many. An entry that is set again keeps its age."""

    __slots__ = ("most",)

    def __init__(self, most: int) -> None:
        super().__init__()
        self.most = most

    def __setitem__(self, key: _Key, value: _Value) -> None:
        super().__setitem__(key, value)
        if len(self) > self.most:
            del self[next(iter(self))]
