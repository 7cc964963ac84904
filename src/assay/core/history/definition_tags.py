"""
The tags of lists, by a draft for the next revision: one tag stands for one set of definitions. No I/O, no clock.

Digests are kept, never lists. A list is compared once all of its pages were forwarded, in order. The order of entries,
the size of pages and the time to live do not count.
"""

from collections.abc import Iterator, Sequence
from hashlib import blake2b, shake_256
from typing import Any, Final, NamedTuple

from assay.base.verdict import Exchange, Violation
from assay.engine.canonical import canonical, text
from assay.rules import violation
from assay.spec.draft_names import DISCOVERED, TAGGED, TAGS, tag_of

# Tags of all lists together. A server changes its definitions when it is updated, or when a user signs in.
_MOST_TAGS: Final = 64

# Cursors that no client has used yet. Clients read a list page by page, so there is one for each list.
_MOST_CURSORS: Final = 64

# The length of a cursor that is kept, in characters. Longer ones contain the state of the server, and are not judged.
_LONGEST_CURSOR: Final = 1024

# Bytes of the hash of an entry. Hashes are added, so that their order does not count; a server could find two lists
# with the same sum of short hashes, but not with the same sum of hashes of 2,048 bits.
_WIDE: Final = 256
_MODULUS: Final = 1 << 8 * _WIDE

_SHOWN: Final = 40
"""Characters of a tag that are shown."""


class DefinitionsDigest(NamedTuple):
    """What is kept of a list."""

    meaning: bytes
    """Equal for lists that mean the same: the order of `required` in a schema does not matter, for example."""
    text: bytes
    """Equal for lists of the same entries in any order. A server may compute another tag for any other text."""


class TaggedPages:
    """The pages of one list so far. It keeps two sums of hashes, however many entries there are."""

    __slots__ = ("_meaning", "_text", "_whole", "begun", "changes", "tag")

    def __init__(self) -> None:
        self.tag: str | None = None
        """The tag of the first page; None without one."""
        self.begun = False
        """Whether it has a page."""
        self.changes = 0
        """How often the server had changed its lists before the first page."""
        self._whole = True
        self._meaning = self._text = 0

    def take(self, exchange: Exchange, result: dict[str, Any], entries: Sequence[Any]) -> list[Violation]:
        """Add a page; return the violation of a page with another tag than the first one."""
        _, tag = tag_of(result) or ("", None)
        if not self.begun:
            self.begun, self.tag = True, tag
        if tag != self.tag:
            self._whole = False
            return [_other_page(exchange, result, self.tag, tag)]
        if self._whole and tag is not None:
            self._add(entries)
        return []

    def digest(self) -> DefinitionsDigest | None:
        """Return the digest of the list; None if it has no tag, or cannot be compared."""
        if self.tag is None or not self._whole:
            return None
        return DefinitionsDigest(*(_short(each.to_bytes(_WIDE)) for each in (self._meaning, self._text)))

    def is_like(self, other: "TaggedPages") -> bool:
        """Whether both have had the same pages."""
        return (self.tag, self.digest()) == (other.tag, other.digest())

    def _add(self, entries: Sequence[Any]) -> None:
        for each in entries:
            self._meaning = (self._meaning + _wide(text(canonical(each)))) % _MODULUS
            self._text = (self._text + _wide(text(each))) % _MODULUS


class DefinitionTags:
    """The tags that a server has given. Conversations that belong together share one of these."""

    __slots__ = ("_changes", "_given", "_known", "_last")

    def __init__(self) -> None:
        self._known: dict[tuple[str, bytes], DefinitionsDigest] = {}
        """What each tag stands for, by method and digest of the tag; oldest first."""
        self._last: dict[str, tuple[bytes, DefinitionsDigest]] = {}
        """The last tag of each method, and what it stands for."""
        self._given: dict[tuple[str, str], TaggedPages | None] = {}
        """The pages before each cursor, by method and cursor; None if two lists gave the same cursor."""
        self._changes = 0

    def handed_down(self) -> "DefinitionTags":
        """Return a copy for a restarted server, which does not know the cursors of the one before."""
        made = DefinitionTags()
        made._known, made._last = dict(self._known), dict(self._last)
        return made

    def changed(self) -> None:
        """Note that lists may have changed: pages from before and from after it do not belong together."""
        self._changes += 1
        self._given.clear()

    def asked(self, exchange: Exchange, params: dict[str, Any]) -> None:
        """Note that a list, or the next page of one, was requested."""
        cursor = params.get("cursor")
        if "cursor" not in params:
            exchange.pages = TaggedPages()
        elif isinstance(cursor, str):
            exchange.pages = self._given.pop((exchange.method, cursor), None)

    def listed(self, exchange: Exchange, result: dict[str, Any]) -> Iterator[Violation]:
        """Note that a page was forwarded; yield what its tag contradicts."""
        pages, entries = exchange.pages, result.get(TAGGED[exchange.method])
        exchange.pages = None
        # A list of which a page was missed is not compared.
        if pages is None or not isinstance(entries, list) or (pages.begun and pages.changes != self._changes):
            return
        pages.changes = self._changes
        yield from pages.take(exchange, result, entries)
        if "nextCursor" in result:
            self._give(exchange.method, result["nextCursor"], pages)
        else:
            yield from self._check(exchange, result, pages)

    def discovered(self, exchange: Exchange, result: dict[str, Any]) -> Iterator[Violation]:
        """Note that a server has described itself; yield what the tag of that contradicts."""
        pages = TaggedPages()
        described = {name: result[name] for name in DISCOVERED if name in result}
        versions = described.get("supportedVersions")
        if isinstance(versions, list):
            described["supportedVersions"] = sorted(versions, key=str)
        pages.take(exchange, result, [described])
        yield from self._check(exchange, result, pages)

    def _give(self, method: str, cursor: Any, pages: TaggedPages) -> None:
        if not isinstance(cursor, str) or len(cursor) > _LONGEST_CURSOR:
            return
        before = self._given.setdefault((method, cursor), pages)
        if before is not pages and (before is None or not before.is_like(pages)):
            self._given[method, cursor] = None
        if len(self._given) > _MOST_CURSORS:
            del self._given[next(iter(self._given))]

    def _check(self, exchange: Exchange, result: dict[str, Any], pages: TaggedPages) -> Iterator[Violation]:
        now, tag = pages.digest(), pages.tag
        if now is None or tag is None:
            return
        method, short = exchange.method, _short(tag.encode(errors="surrogatepass"))
        before, last = self._known.pop((method, short), None), self._last.get(method)
        self._known[method, short] = now
        self._last[method] = short, now
        if len(self._known) > _MOST_TAGS:
            del self._known[next(iter(self._known))]
        if before is not None and before.meaning != now.meaning:
            expected = "another tag, because the definitions have changed"
            yield _finding("draft/tag", exchange, result, expected, f"{_shown(tag)} again")
        elif before is None and last is not None and last[1].text == now.text:
            expected = "the tag of the list before, because the definitions are the same"
            yield _finding("draft/tag-changed", exchange, result, expected, _shown(tag))


def _other_page(exchange: Exchange, result: dict[str, Any], first: str | None, tag: str | None) -> Violation:
    expected = f"{_shown(first)}, as on the first page"
    return _finding("draft/tag-pages", exchange, result, expected, _shown(tag))


def _finding(rule: str, exchange: Exchange, result: dict[str, Any], expected: str, found: str) -> Violation:
    name, _ = tag_of(result) or (TAGS[0], "")
    return violation(rule, f"/result/{name}", expected=expected, found=found, revision=exchange.revision)


def _shown(tag: str | None) -> str:
    return "no tag" if tag is None else f'"{tag[:_SHOWN]}{"…" if len(tag) > _SHOWN else ""}"'


def _wide(data: bytes) -> int:
    return int.from_bytes(shake_256(data).digest(_WIDE))


def _short(data: bytes) -> bytes:
    return blake2b(data, digest_size=16).digest()
