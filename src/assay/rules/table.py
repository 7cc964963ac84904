"""
Every rule in one table, in the order in which they apply to a message, and violations made from it.

The rules are data, in ``rules.txt``, which has their notation at its top. Reading it takes 0.5 ms; as TOML it took 3.
"""

from collections.abc import Iterator, Mapping
from os.path import dirname, join
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from assay.model.verdict import Action, Violation
from assay.spec.revisions import handshake

if TYPE_CHECKING:
    from assay.schema.fault import Fault


class Rule(NamedTuple):
    """One rule. `id` is public API: it never changes its meaning."""

    id: str
    asks: str
    """What must hold, as a sentence."""
    why: str
    source: str
    """A page of the specification (``{revision}`` stands for the revision in force), another standard, or "ours"."""
    fix: str
    """What the author of the message can do."""
    action: Action
    code: str
    """The canonical error that refuses it."""
    example: str
    """A frame, or the part of a conversation, that breaks it."""
    says: tuple[str, ...] = ()
    """Sentences about a violation, as templates for `sentence`; the first that fits counts."""
    strict: Action | None = None
    """The action under a strict policy, if it is stricter than `action`."""
    allowed: tuple[str, ...] = ()
    """The actions that an operator may choose, if not those of its rung."""

    @property
    def severest(self) -> Action:
        """The action under a strict policy."""
        return self.strict or self.action

    @property
    def rung(self) -> str:
        """The rung that enforces it."""
        return self.id.partition("/")[0]


def _read(text: str) -> Iterator[Rule]:
    """Yield the rules in *text*. A missing or unknown member raises `TypeError`: the file is ours."""
    for block in text.split("\n[")[1:]:
        ident, _, lines = block.partition("]\n")
        members: dict[str, str] = {}
        name = ""
        for line in lines.splitlines():
            if line.startswith(" "):
                members[name] += f" {line.strip()}"
            elif line:
                name, _, value = line.partition(" ")
                members[name] = value.strip()
        action, _, strict = members.pop("action").partition(", strict ")
        yield Rule(
            ident,
            says=_parts(members.pop("says", ""), " || "),
            allowed=_parts(members.pop("allowed", ""), ", "),
            action=cast("Action", action),
            strict=cast("Action", strict) if strict else None,
            **members,
        )


def _parts(text: str, sign: str) -> tuple[str, ...]:
    return tuple(text.split(sign)) if text else ()


def _all_rules() -> Mapping[str, Rule]:
    with open(join(dirname(__file__), "rules.txt"), encoding="utf-8") as file:
        return {rule.id: rule for rule in _read(file.read())}


RULES: Final = _all_rules()

REMOVED: Final[frozenset[str]] = frozenset(
    {
        *("card/schema", "card/format", "card/version", "card/primitives", "card/remote", "card/secret"),
        *("card/runtime", "card/media-type", "card/https", "card/cors", "card/caching", "card/catalog"),
        *("draft/tag-shape", "draft/tag-pages", "draft/tag", "draft/tag-changed", "draft/stale-tags"),
        *("draft/stale-rejection", "draft/required-capabilities", "lock/tag"),
        *("skills/repeated", "skills/identity", "skills/changed", "skills/frontmatter", "skills/unlisted"),
        *("skills/directory", "skills/resource"),
    }
)
"""Identifiers that are never used again. Recordings and journals of earlier versions may name them."""

_MOVED: Final = (
    ("basic/lifecycle", "basic/versioning"),
    ("basic/utilities/cancellation", "basic/patterns/cancellation"),
    ("basic/utilities/progress", "basic/patterns/progress"),
)
"""Pages of the specification that are at another place in revisions without a handshake."""


def is_removed_rule(rule: object) -> bool:
    """Return whether *rule*, any value from a file, is the identifier of a removed rule."""
    return isinstance(rule, str) and rule in REMOVED


def violation(
    rule: str,
    at: str = "",
    *,
    expected: str,
    found: str,
    revision: str | None = None,
    hint: str | None = None,
    schema_at: str | None = None,
    detail: str = "",
    page: str | None = None,
    wrong_type: bool = False,
) -> Violation:
    """
    Return a violation of *rule*, with source, hint and action from the table.

    *detail* is added to the source, for example the definition in the schema; *page* replaces the source.
    """
    row = RULES[rule]
    source = (page or row.source).replace("{revision}", revision or "(every revision)")
    if revision is not None and not handshake(revision):
        for before, now in _MOVED:
            source = source.replace(before, now)
    if detail:
        source += f": {_cut(detail, 100)}"
    where = None if schema_at is None else _cut(schema_at, _LONGEST)
    return Violation(
        rule,
        _cut(at, _LONGEST),
        _cut(expected, 400),
        _cut(found, 200),
        source,
        hint or row.fix,
        row.action,
        where,
        wrong_type=wrong_type,
    )


def broken(
    rule: str,
    fault: "Fault",
    *,
    revision: str | None = None,
    detail: str = "",
    hint: str | None = None,
    page: str | None = None,
) -> Violation:
    """Return a violation of *rule* for a fault that the JSON Schema engine found."""
    return violation(
        rule,
        fault.at,
        expected=fault.expected,
        found=fault.found,
        revision=revision,
        hint=hint,
        schema_at=fault.schema_at,
        detail=detail,
        page=page,
        wrong_type=fault.wrong_type,
    )


# The longest pointer, in characters. The peer chose the keys: one of a megabyte, in twenty violations, would make an
# answer of twenty.
_LONGEST: Final = 1000


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
