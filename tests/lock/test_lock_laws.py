"""What holds for every two definitions: equal ones never differ, and what is called compatible is."""

import copy
import random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from assay.lock.compare import ABSENT, changes, differences
from assay.lock.lock_file import known_by, parsed, written
from assay.lock.locked import BY_METHOD, Locked
from assay.schema.compiled import compile_schema
from kit.laws import law

TOOL = BY_METHOD["tools/list"]

# ── schemas and instances ────────────────────────────────────────────────────────────────────────────────────────────

SCALARS: list[Any] = [None, True, False, 0, 1, 2, 5, 1.5, "", "a", "b", "ab"]
NAMES = ("a", "b", "c")

numbers = st.integers(0, 3)
leaves = st.one_of(
    st.booleans(),
    st.just({}),
    st.fixed_dictionaries(
        {"type": st.sampled_from(["string", "integer", "number", "boolean", "null", "object", "array"])}
    ),
    st.fixed_dictionaries({"type": st.just(["string", "null"])}),
    st.fixed_dictionaries({"enum": st.lists(st.sampled_from(SCALARS), min_size=1, max_size=3, unique_by=repr)}),
    st.fixed_dictionaries({"const": st.sampled_from(SCALARS)}),
    st.fixed_dictionaries({"type": st.just("integer")}, optional={"minimum": numbers, "maximum": numbers}),
    st.fixed_dictionaries(
        {"type": st.just("number")}, optional={"exclusiveMinimum": numbers, "multipleOf": st.integers(1, 4)}
    ),
    st.fixed_dictionaries(
        {"type": st.just("string")},
        optional={"minLength": numbers, "maxLength": numbers, "pattern": st.sampled_from(["^a", "b$"])},
    ),
    st.just({"$ref": "#/$defs/shared"}),
)


def wider(below: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Schemas that hold others."""
    some = st.lists(below, min_size=1, max_size=3)
    return st.one_of(
        st.fixed_dictionaries(
            {"type": st.just("object"), "properties": st.dictionaries(st.sampled_from(NAMES), below, max_size=3)},
            optional={
                "required": st.lists(st.sampled_from(NAMES), max_size=2, unique=True),
                "additionalProperties": below,
                "minProperties": numbers,
                "propertyNames": st.sampled_from([{"maxLength": 1}, {"enum": ["a", "b"]}]),
                "patternProperties": st.fixed_dictionaries({"^[ab]": below}),
                "description": st.sampled_from(["x", "y"]),
                "anyOf": some,
                "allOf": some,
            },
        ),
        st.fixed_dictionaries(
            {"type": st.just("array")},
            optional={
                "items": below,
                "minItems": numbers,
                "maxItems": numbers,
                "uniqueItems": st.booleans(),
                "contains": below,
                "prefixItems": some,
            },
        ),
        st.fixed_dictionaries({"anyOf": some}),
        st.fixed_dictionaries({"allOf": some}),
        st.fixed_dictionaries({"oneOf": some}),
        st.fixed_dictionaries({"not": below}),
        st.fixed_dictionaries({"if": below, "then": below}, optional={"else": below}),
    )


subschemas = st.recursive(leaves, wider, max_leaves=6)
documents = st.builds(
    lambda root, shared: {"allOf": [root], "$defs": {"shared": shared}},
    subschemas,
    leaves.filter(lambda schema: schema != {"$ref": "#/$defs/shared"}),
)

instances = st.recursive(
    st.sampled_from(SCALARS),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.sampled_from(NAMES), below, max_size=3),
    max_leaves=6,
)


def changed(schema: Any, chance: random.Random) -> Any:
    """*schema* with one thing in it that is not what it was."""
    made = copy.deepcopy(schema)
    places: list[tuple[Any, Any]] = []
    waiting = [made]
    while waiting:
        one = waiting.pop()
        pairs = list(one.items()) if isinstance(one, dict) else list(enumerate(one)) if isinstance(one, list) else []
        places += [(one, key) for key, _ in pairs]
        waiting += [value for _, value in pairs]
    holder, key = chance.choice(places)
    value = holder[key]
    if isinstance(holder, list) and chance.random() < 0.3:
        del holder[key]
    elif isinstance(holder, list) and chance.random() < 0.3:
        holder.append(chance.choice([{"type": "integer"}, {"type": "string"}, {"const": "a"}, "c", {}]))
    elif isinstance(value, bool):
        holder[key] = not value
    elif isinstance(value, int):
        holder[key] = max(1, value + chance.choice([-1, 1]))
    elif isinstance(value, str) and value in {"integer", "number", "string"}:
        holder[key] = chance.choice(["integer", "number", "string"])
    elif isinstance(value, dict) and chance.random() < 0.5:
        value[chance.choice(["type", "minimum", "maxLength", "minProperties", "title"])] = chance.choice(["string", 1])
    elif isinstance(holder, dict) and key not in {"$defs", "shared", "if"} and not ("if" in holder and key == "then"):
        del holder[key]
    return made


def closed(schema: Any) -> Any:
    """*schema*, with all open objects closed: for whoever keeps to what is declared."""
    if isinstance(schema, list):
        return [closed(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    made = {key: closed(value) for key, value in schema.items()}
    if isinstance(made.get("properties"), dict):
        made.setdefault("additionalProperties", False)
    return made


def positive(schema: Any) -> bool:
    """Whether nothing in *schema* turns taking into refusing: there, to close an object would open it."""
    if isinstance(schema, list):
        return all(positive(one) for one in schema)
    if not isinstance(schema, dict):
        return True
    return schema.keys().isdisjoint({"not", "if", "oneOf", "contains"}) and all(
        positive(one) for one in schema.values()
    )


def compiled(schema: Any) -> Any:
    try:
        return compile_schema(schema)
    except ValueError:
        return None


# ── laws ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


@law(150)
@given(documents, st.randoms(use_true_random=False), st.lists(instances, min_size=5, max_size=25))
def test_what_is_compatible_takes_what_was_taken(old: Any, chance: random.Random, some: list[Any]) -> None:
    """With the engine that judges: where no change is breaking, every instance that was taken before is taken now."""
    new = changed(old, chance)
    found = changes(TOOL, {"inputSchema": old}, {"inputSchema": new})
    more = any(each.old is ABSENT and each.at.split("/")[-2] == "properties" for each in found)
    before, after = compiled(closed(old) if more else old), compiled(new)
    if before is None or after is None:
        return
    if any(each.breaking for each in found) or (more and not positive(old)):
        return
    for instance in some:
        assert not before.is_valid(instance) or after.is_valid(instance), (old, new, instance, found)


@law(150)
@given(documents, st.randoms(use_true_random=False), st.lists(instances, min_size=5, max_size=25))
def test_what_is_compatible_for_readers_gives_nothing_new(old: Any, chance: random.Random, some: list[Any]) -> None:
    """The mirror image: where no change is breaking, nothing is taken that was refused before."""
    new = changed(old, chance)
    before, after = compiled(old), compiled(new)
    if before is None or after is None:
        return
    found = changes(TOOL, {"outputSchema": old}, {"outputSchema": new})
    if any(each.breaking for each in found):
        return
    for instance in some:
        assert not after.is_valid(instance) or before.is_valid(instance), (old, new, instance, found)


@law(100)
@given(documents, st.randoms(use_true_random=False))
def test_a_definition_never_differs_from_itself_however_it_is_spelt(schema: Any, chance: random.Random) -> None:
    old = {"name": "t", "description": "x", "inputSchema": schema, "outputSchema": schema}
    new = shuffled(old, chance)
    assert changes(TOOL, old, new) == []
    assert known_by(old) == known_by(new)


def shuffled(value: Any, chance: random.Random) -> Any:
    """*value* with its keys, and whatever else has no order, in another one."""
    if isinstance(value, dict):
        keys = list(value)
        chance.shuffle(keys)
        return {key: unordered(key, shuffled(value[key], chance), chance) for key in keys}
    return [shuffled(one, chance) for one in value] if isinstance(value, list) else value


def unordered(key: str, value: Any, chance: random.Random) -> Any:
    if key in {"required", "enum", "type", "anyOf", "allOf", "oneOf"} and isinstance(value, list):
        chance.shuffle(value)
    return value


@law(100)
@given(documents, st.randoms(use_true_random=False))
def test_a_change_is_never_passed_over(old: Any, chance: random.Random) -> None:
    """What is not the same in its one spelling has at least one change, and the other way round."""
    new = changed(old, chance)
    before, after = ({"name": "t", "inputSchema": one} for one in (old, new))
    assert bool(changes(TOOL, before, after)) == (known_by(before) != known_by(after))


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**60), 2**60)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.text(), below, max_size=3),
    max_leaves=8,
)


@law(100)
@given(st.dictionaries(st.text(min_size=1), json_values), st.dictionaries(st.text(min_size=1), json_values), st.text())
def test_a_lock_reads_as_it_was_written(one: Any, other: Any, instructions: str) -> None:
    tools = {name: ({**definition, "name": name},) for name, definition in (("a", one), ("b\u200b", other))}
    locked = Locked(("run", "it"), "", "2025-11-25", {"name": "n", "version": "1"}, (instructions,), {"tools": tools})
    content = written({"server": locked})
    [(name, again)] = parsed(content).items()
    assert name == "server"
    assert differences(locked, again) == []
    assert again.of(TOOL) == tools
    assert written({"server": again}) == content
    assert content.decode().replace("\n", "").isprintable()
