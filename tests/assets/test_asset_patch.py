"""Patches: what they look like, and that a third party's RFC 6902 makes the new document of them."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.assets.asset_sources import Catalogue
from assay.assets.patch import difference, same
from kit.catalogues import answer
from kit.rows import rows

NOTHING = Catalogue()

keys = st.sampled_from(["a", "b", "", "/", "~", "~1", "a/b", "-", "0", "ä", "\0", "__proto__"]) | st.text(max_size=3)
scalars = st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from([0.0, 1.0, 1.5, 2**70]) | st.text(max_size=3)
documents = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=5),
    max_leaves=25,
)


def patch_of(base: Any, new: Any) -> list[dict[str, Any]]:
    result: list[dict[str, Any]] = answer(NOTHING, "diff_assets", base=base, new=new)["patch"]
    return result


def change(op: str, path: str, *value: Any) -> dict[str, Any]:
    return {"op": op, "path": path, **({"value": value[0]} if value else {})}


@rows(
    ("base", "new", "patch"),
    [
        ({}, {}, []),
        ({"a": 1}, {"a": 1.0}, []),
        ({"a": 1}, {"a": True}, [change("replace", "/a", True)]),
        ({"a": [0, {"b": 1}]}, {"a": [0, {"b": True}]}, [change("replace", "/a", [0, {"b": True}])]),
        ({"a": 0}, {"a": False}, [change("replace", "/a", False)]),
        ({"a": ""}, {"a": None}, [change("replace", "/a", None)]),
        ({"a": None}, {}, [change("remove", "/a")]),
        ({}, {"a": None}, [change("add", "/a", None)]),
        ({"a": 1, "b": 2, "c": 3}, {"c": 4, "d": 5, "b": 2}, [
            change("remove", "/a"), change("replace", "/c", 4), change("add", "/d", 5),
        ]),
        ({"a": {"b": {"c": 1}}}, {"a": {"b": {"c": 2}}}, [change("replace", "/a/b/c", 2)]),
        ({"a": [1, 2]}, {"a": [1, 2, 3]}, [change("replace", "/a", [1, 2, 3])]),
        ({"a": [1, 2]}, {"a": [1, 2.0]}, []),
        ({"a": {}}, {"a": []}, [change("replace", "/a", [])]),
        ({"a/b": 1, "m~n": 2}, {"a/b": 2, "m~n": 3}, [change("replace", "/a~1b", 2), change("replace", "/m~0n", 3)]),
        ({"": {"": 1}}, {"": {"": 2}}, [change("replace", "//", 2)]),
        ([1], [2], [change("replace", "", [2])]),
        ({}, [], [change("replace", "", [])]),
        (1, True, [change("replace", "", True)]),
        (2**53, 2.0**53, []),
        (2**53 + 1, 2.0**53, [change("replace", "", 2.0**53)]),
        ({"a": 1}, None, [change("replace", "", None)]),
    ],
)  # fmt: skip
def test_a_patch_says_what_changed(base: Any, new: Any, patch: list[dict[str, Any]]) -> None:
    assert patch_of(base, new) == patch


@given(base=documents, new=documents)
def test_the_patch_applied_by_a_third_party_gives_the_new_document(base: Any, new: Any) -> None:
    jsonpatch = pytest.importorskip("jsonpatch", reason="the third-party RFC 6902 implementation is not installed")
    before = copy.deepcopy((base, new))
    made = patch_of(base, new)
    assert same(jsonpatch.apply_patch(copy.deepcopy(base), made), new)
    assert same([base, new], list(before))


@given(base=documents, new=documents)
def test_patches_are_sorted_and_independent_of_the_order_of_members(base: Any, new: Any) -> None:
    made = patch_of(base, new)
    order = [(one["path"], ("remove", "add", "replace").index(one["op"])) for one in made]
    assert order == sorted(order)
    assert made == patch_of(turned(base), new)
    assert (made == []) is same(base, new)
    # No operation is inside what another one touches, so none can spoil another.
    paths = [one["path"] for one in made]
    assert not any(other.startswith(f"{path}/") for path in paths for other in paths)


def turned(value: Any) -> Any:
    """*value* with the members of every object the other way round."""
    if isinstance(value, dict):
        return {key: turned(value[key]) for key in reversed(value)}
    return [turned(one) for one in value] if isinstance(value, list) else value


def test_what_is_nested_very_deep_raises_nothing() -> None:
    one: Any = 1
    other: Any = 2
    for _ in range(5_000):
        one, other = {"a": one}, {"a": other}
    assert difference(one, other) == [change("replace", "/a" * 5_000, 2)]
    for _ in range(100_000):
        one, other = [one], [other]
    assert not same(one, other)
    assert difference(one, one) == []


def test_a_patch_that_would_be_much_longer_than_both_documents_replaces_the_whole() -> None:
    """A megabyte in must not make gigabytes out: fifty thousand pointers with half a megabyte in each."""
    long = "k" * 500_000
    base = {long: {str(number): number for number in range(50_000)}, "z": 1}
    assert difference(base, {long: {}, "z": 1}) == [change("replace", "", {long: {}, "z": 1})]
    assert difference(base, copy.deepcopy(base)) == []
