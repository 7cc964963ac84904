"""How large the values inside an instance are, so that asking about a large one can be charged for."""

from typing import Any

_CONTAINERS = (dict, list)

LARGE = 1_024
"""Values inside a value from which on it counts as large; below that a question costs about what any does."""


MOST = 65_000
"""Arrays and objects that are weighed: about 1 µs each, and a tenth of that for each value in them."""

VALUES = 500_000
"""Values in them."""


def weights(instance: Any, times: int = 1) -> dict[int, int] | None:
    """
    How many values are inside each large array or object of *instance*, by identity; a string counts for its length.

    Each counts *times*, and so many fewer make a value large.

    One pass, in time and memory linear in the arrays and objects there are; what is not in the answer is small. None
    if there are more than `MOST` of them, or more than `VALUES` in them.
    """
    if not isinstance(instance, _CONTAINERS):
        return {}
    containers: list[Any] = [instance]
    parents = [0]
    sizes: list[int] = []
    seen = 0
    for number, one in enumerate(containers):  # which grows meanwhile
        inside = list(one.values()) if isinstance(one, dict) else one
        seen += len(inside)
        if seen > VALUES or len(containers) > MOST:
            return None
        nested = [inner for inner in inside if isinstance(inner, _CONTAINERS)]
        sizes.append(len(inside))
        if len(nested) < len(inside) < LARGE or times > 1:
            sizes[number] += sum([len(inner) >> 6 for inner in inside if isinstance(inner, str)])
        containers += nested
        parents += [number] * len(nested)
    for number in range(len(containers) - 1, 0, -1):
        sizes[parents[number]] += sizes[number]
    return {id(one): size * times for one, size in zip(containers, sizes, strict=True) if size * times >= LARGE}
