"""What differs between two schemas, and where; `tests/lock/test_lock_changes.py` has a table of the effects."""

from typing import Any

from assay.schema.schema_diff import schema_differences

STRING, INTEGER = {"type": "string"}, {"type": "integer"}


def found(old: Any, new: Any) -> list[tuple[str, str, str | None]]:
    """The effect, place and key of each difference."""
    return [(each.effect, each.at, each.key) for each in schema_differences(old, new)]


def test_a_difference_stands_at_its_keyword_or_at_the_schema_that_came_or_went() -> None:
    old = {"properties": {"a/b": STRING, "c": STRING}, "required": ["c"], "anyOf": [STRING]}
    new = {"properties": {"a/b": INTEGER, "d": STRING}, "required": ["d"], "anyOf": [STRING, INTEGER]}
    assert found(old, new) == [
        ("widens", "/anyOf/1", "1"),
        ("breaks", "/properties/c", "c"),
        ("adds", "/properties/d", "d"),
        ("narrows", "/required", "d"),
        ("widens", "/required", "c"),
        ("breaks", "/properties/a~1b/type", None),
    ]


def test_what_turns_accepting_into_refusing_is_unclear_except_its_texts() -> None:
    old, new = {"not": {"anyOf": [STRING]}}, {"not": {"anyOf": [{**INTEGER, "title": "x"}]}}
    assert found(old, new) == [("text", "/not/anyOf/0/title", None), ("unclear", "/not/anyOf/0/type", None)]
    assert found({}, {"not": STRING}) == [("narrows", "/not", None)]


def test_a_schema_may_be_nested_more_deeply_than_calls() -> None:
    old: dict[str, Any] = STRING
    new: dict[str, Any] = INTEGER
    for _ in range(2000):
        old, new = {"items": old}, {"items": new}
    assert found(old, new) == [("breaks", "/items" * 2000 + "/type", None)]


def test_a_caller_may_give_each_pair_another_form_and_gets_the_pair_back() -> None:
    named = {"#a": STRING, "#b": INTEGER}

    def prepare(old: Any, new: Any) -> tuple[Any, Any]:
        return named.get(old.get("$ref"), old), named.get(new.get("$ref"), new)

    old, new = {"$ref": "#a"}, {"$ref": "#b", "title": "x"}
    [each] = schema_differences({"items": old}, {"items": new}, prepare)
    assert (each.at, each.old, each.new, each.before, each.after) == ("/items/type", "string", "integer", old, new)
