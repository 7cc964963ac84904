"""
The difference of two JSON values as a JSON Patch (RFC 6902) of `add`, `remove` and `replace`. No I/O.

Objects are compared member by member, everything else is replaced as a whole (specs/001 §5). So no operation is inside
the target of another one, and the patch is valid in any order.
"""

from typing import Any

from assay.schema.pointers import escaped

Operation = dict[str, Any]

POINTERS = 4 << 20
"""
Maximal characters of all pointers. One long key above many members could otherwise give a patch of gigabytes for a
request of one megabyte; beyond it the whole document is replaced, which is a correct patch, too.
"""

_Way = tuple[Any, ...]
"""The path of an object: empty for the root, else the path of its parent, and the key in it."""

_ORDER = {"remove": 0, "add": 1, "replace": 2}


def difference(base: Any, new: Any) -> list[Operation]:
    """Return the patch that turns *base* into *new*, sorted by path; empty if and only if they are the same JSON."""
    whole = [{"op": "replace", "path": "", "value": new}]
    if not (isinstance(base, dict) and isinstance(new, dict)):
        return [] if same(base, new) else whole
    patch: list[Operation] = []
    room = POINTERS
    waiting: list[tuple[_Way, dict[str, Any], dict[str, Any]]] = [((), base, new)]
    while waiting:
        way, old, now = waiting.pop()
        here: list[Operation] = []
        for key in sorted(old.keys() | now.keys()):
            if key not in now:
                here.append({"op": "remove", "path": key})
            elif key not in old:
                here.append({"op": "add", "path": key, "value": now[key]})
            elif isinstance(old[key], dict) and isinstance(now[key], dict):
                waiting.append(((way, key), old[key], now[key]))
            elif not same(old[key], now[key]):
                here.append({"op": "replace", "path": key, "value": now[key]})
        # Only for differences: the pointers of equal parts could take gigabytes.
        at = _pointer(way) if here else ""
        for each in here:
            each["path"] = f"{at}/{escaped(each['path'])}"
            room -= len(each["path"])
            if room < 0:
                return whole
        patch += here
    return sorted(patch, key=lambda one: (one["path"], _ORDER[one["op"]]))


def _pointer(way: _Way) -> str:
    steps: list[str] = []
    while way:
        way, key = way
        steps.append(f"/{escaped(key)}")
    return "".join(reversed(steps))


def same(one: Any, other: Any) -> bool:
    """Whether two values are the same JSON: 1 equals 1.0 but not true, and the order of members does not matter."""
    waiting = [(one, other)]
    while waiting:
        one, other = waiting.pop()
        if isinstance(one, dict) and isinstance(other, dict):
            if one.keys() != other.keys():
                return False
            waiting += [(value, other[key]) for key, value in one.items()]
        elif isinstance(one, list) and isinstance(other, list):
            if len(one) != len(other):
                return False
            waiting += zip(one, other, strict=True)
        else:
            # An object is never compared with `!=`, which would recurse. bool is an int in Python, and 1 == True.
            nested = isinstance(one, dict | list) or isinstance(other, dict | list)
            if nested or isinstance(one, bool) is not isinstance(other, bool) or one != other:
                return False
    return True
