"""
Judges members that drafts for the next revision define, for a conversation with a preview. No I/O, no clock.

Everything that is found is a ``draft/`` rule, which is only reported. A conversation without a preview does not load
this module. Revisions with a handshake do not have what the drafts extend.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice
from typing import Any, Final

from assay.base.verdict import Exchange, Party, Violation
from assay.contracts.tool_contracts import Tools
from assay.core.history.definition_tags import DefinitionTags
from assay.core.history.reuse import object_of
from assay.engine.budget import Budget
from assay.engine.pointers import escaped
from assay.engine.wording import found as found_words
from assay.rules import violation
from assay.spec.draft_names import (
    DISCOVER,
    KNOWN_KEYS,
    RELEVANT,
    REQUIRED_KEY,
    STALE_KEYS,
    STALE_MEMBERS,
    TAGGED,
    TAGS,
    UNTAGGED,
)
from assay.spec.revisions import handshake

_MOST_KNOWN: Final = 64
"""Known tags of one request that are kept for its answer. Five methods have tags, and extensions may have some more."""

_LONGEST_KNOWN: Final = 4096
"""Characters of these tags together, with their methods: a thousand requests may be open. Hashes of all take 500."""


class Preview:
    """The checks of drafts in one conversation."""

    __slots__ = ()

    # ── requests ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def check_params(self, exchange: Exchange, params: Mapping[str, Any], most: int) -> list[Violation]:
        """Return the violations of known tags, at most *most*, and keep the tags for the answer."""
        if not _is_judged(exchange):
            return []
        meta = object_of(params.get("_meta"))
        given = [(key, meta[key]) for key in KNOWN_KEYS if key in meta]
        found = list(islice(chain.from_iterable(_known_shape(exchange, *each) for each in given), most))
        if not found:
            exchange.known = _kept(value for _, value in given)
        return found

    def asked(self, exchange: Exchange, message: Mapping[str, Any], tools: Tools) -> None:
        """Note that a request was forwarded."""
        if _is_judged(exchange) and exchange.method in TAGGED:
            _tags(tools).asked(exchange, object_of(message.get("params")))

    # ── answers ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def check_error(self, exchange: Exchange, error: Mapping[str, Any], most: int) -> list[Violation]:
        """Return the violations of an error that rejects a request because of tags, at most *most*."""
        data = error.get("data")
        if not _is_judged(exchange) or not isinstance(data, dict):
            return []
        given = [(name, data[name]) for name in STALE_MEMBERS if name in data]
        found = (_rejection(exchange, value, f"/error/data/{escaped(name)}") for name, value in given)
        return list(islice(chain.from_iterable(found), most))

    def check_result(self, exchange: Exchange, result: Mapping[str, Any], budget: Budget) -> list[Violation]:
        """Return the violations of one result by itself."""
        if not _is_judged(exchange):
            return []
        meta = object_of(result.get("_meta"))
        given = [(key, meta[key]) for key in STALE_KEYS if key in meta]
        found = chain(
            _tag_shape(exchange, result),
            *(_stale(exchange, value, f"/result/_meta/{escaped(key)}") for key, value in given),
            _required(exchange, result, budget),
        )
        return list(islice(found, budget.violations))

    def noted(self, method: str, tools: Tools) -> None:
        """Note that a notification was forwarded, which may report that a list has changed."""
        if tools.tags is not None and method.endswith("/list_changed"):
            tools.tags.changed()

    def answered(self, exchange: Exchange, result: dict[str, Any], tools: Tools) -> list[Violation]:
        """Note that a result was forwarded; return how its tag contradicts earlier ones."""
        if not _is_judged(exchange):
            return []
        if exchange.method == DISCOVER:
            return list(_tags(tools).discovered(exchange, result))
        return list(_tags(tools).listed(exchange, result)) if exchange.method in TAGGED else []

    def renew(self, tools: Tools) -> None:
        """Continue with another server, which does not know the cursors of the one before."""
        if tools.tags is not None:
            tools.tags.changed()


def _is_judged(exchange: Exchange) -> bool:
    return exchange.asker is Party.CLIENT and not handshake(exchange.revision)


def _tags(tools: Tools) -> DefinitionTags:
    if tools.tags is None:
        tools.tags = DefinitionTags()
    tags: DefinitionTags = tools.tags
    return tags


def _kept(given: Iterable[dict[str, str]]) -> dict[str, str] | None:
    """Return the known tags of a request by method; None if they are too many to keep."""
    known = {method: tag for each in given for method, tag in each.items()}
    size = sum(map(len, (*known, *known.values())))
    return known if len(known) <= _MOST_KNOWN and size <= _LONGEST_KNOWN else None


def _known_shape(exchange: Exchange, key: str, value: Any) -> Iterator[Violation]:
    at = f"/params/_meta/{escaped(key)}"
    if not isinstance(value, dict):
        yield _violation("draft/tag-shape", exchange, at, "an object of methods and tags", found_words(value))
        return
    for method, tag in value.items():
        if not isinstance(tag, str):
            place = f"{at}/{escaped(method)}"
            yield _violation("draft/tag-shape", exchange, place, "a tag, which is a string", found_words(tag))


def _tag_shape(exchange: Exchange, result: Mapping[str, Any]) -> Iterator[Violation]:
    tagged = exchange.method in TAGGED or exchange.method == DISCOVER
    for name in TAGS:
        if name not in result:
            continue
        if tagged and not isinstance(result[name], str):
            yield _violation("draft/tag-shape", exchange, f"/result/{name}", "a string", found_words(result[name]))
        elif exchange.method == UNTAGGED:
            expected = f"no {name} in the result of {UNTAGGED}"
            yield _violation("draft/tag-shape", exchange, f"/result/{name}", expected, found_words(result[name]))


def _stale(exchange: Exchange, value: Any, at: str) -> Iterator[Violation]:
    """Yield the violations of a list of methods whose tags are out of date."""
    if not isinstance(value, list):
        yield _violation("draft/stale-tags", exchange, at, "an array of methods", found_words(value))
        return
    known = exchange.known
    for number, each in enumerate(value):
        place = f"{at}/{number}"
        if not isinstance(each, str):
            yield _violation("draft/stale-tags", exchange, place, "a method", found_words(each))
        elif known is not None and each not in known:
            found = "the tag itself" if each in known.values() else found_words(each)
            yield _violation("draft/stale-tags", exchange, place, "a method that the request has a known tag of", found)


def _rejection(exchange: Exchange, value: Any, at: str) -> Iterator[Violation]:
    yield from _stale(exchange, value, at)
    relevant = RELEVANT.get(exchange.method)
    # An extension defines the tags that are relevant to its own methods.
    if relevant is None or not isinstance(value, list) or any(each in relevant for each in value if _is_name(each)):
        return
    expected = f"{' or '.join(sorted(relevant))}, which {exchange.method} depends on"
    found = ", ".join(each[:40] for each in value[:3] if _is_name(each)) or "no method"
    yield _violation("draft/stale-rejection", exchange, at, expected, found)


def _is_name(value: Any) -> bool:
    return isinstance(value, str)


def _required(exchange: Exchange, result: Mapping[str, Any], budget: Budget) -> Iterator[Violation]:
    """Yield the violations of the capabilities that listed tools require."""
    tools = result.get("tools") if exchange.method == "tools/list" else None
    rule, definition = "draft/required-capabilities", exchange.entry.judge.definition("ClientCapabilities")
    for number, tool in enumerate(tools if isinstance(tools, list) else ()):
        meta = object_of(tool.get("_meta")) if isinstance(tool, dict) else {}
        if REQUIRED_KEY in meta:
            at = f"/result/tools/{number}/_meta/{escaped(REQUIRED_KEY)}"
            faults, _ = definition.check(rule, meta[REQUIRED_KEY], at, exchange.revision, budget)
            # Under the one rule, whatever kind of fault it is, and with the hint of the draft.
            yield from (_violation(rule, exchange, each.at, each.expected, each.found) for each in faults)


def _violation(rule: str, exchange: Exchange, at: str, expected: str, found: str) -> Violation:
    return violation(rule, at, expected=expected, found=found, revision=exchange.revision)
