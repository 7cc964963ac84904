"""
Skills of the extension `io.modelcontextprotocol/skills`: the entries that a server has sent, and reads of their files.

No I/O, no clock. An entry counts until the server sends a newer one, or reports that its resources have changed. What
was forgotten is not judged.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import islice
from typing import Any, Final, NamedTuple

from assay.base.verdict import Exchange, Violation
from assay.contracts.tool_lists import MOST_QUARANTINED
from assay.core.extensions import known_skill, skill_entries
from assay.core.extensions.known_skill import LONGEST_URI, KnownSkill
from assay.engine.wording import shown
from assay.rules import violation

_LIST: Final = "skills/list"
_SCHEME: Final = "skill://"

_MOST_BYTES: Final = 4 << 20
"""Bytes of all entries that are remembered: some 15,000 files, where a large catalogue has 1,000."""

_LONGEST_CURSOR: Final = 1024
"""Characters of a cursor that is remembered. Longer ones contain the state of the server."""

_MOST_LISTED: Final = 2000
"""Skills of one listing whose names are compared, some 200 bytes each, and skills of one page that are remembered."""

_MOST_CURSORS: Final = 16
"""Listings whose next page was not asked for yet. A client reads a list page by page, so there is one for each."""

_MOST_OF_ONE: Final = 8
"""Violations of one skill that are reported: one skill must not fill the report for all others."""


class Listing:
    """The names and URIs of the skills on the pages of one list, as hashes."""

    __slots__ = ("names", "uris")

    def __init__(self, names: Iterable[int] = (), uris: Iterable[int] = ()) -> None:
        self.names = set(names)
        self.uris = set(uris)

    def add(self, uri: Any, name: Any) -> None:
        """Add a skill; beyond `_MOST_LISTED` it is not remembered."""
        if isinstance(uri, str) and isinstance(name, str) and len(self.uris) < _MOST_LISTED:
            self.uris.add(hash(uri))
            self.names.add(hash(name))


class SkillRequest(NamedTuple):
    """What a request about skills needs for its answer."""

    uri: str | None
    listing: Listing | None
    """The pages of the list before the requested one, if they are known."""
    changes: int
    """How often the server had reported changes when the request was sent."""


class SkillRead(NamedTuple):
    """A file of skills that is read, and these skills as they were known when it was asked for."""

    uri: str
    skills: tuple[KnownSkill, ...]


class SkillStates:
    """The skills of one server."""

    __slots__ = ("_bytes", "_changes", "_listings", "_roots")

    def __init__(self) -> None:
        self._roots: dict[str, KnownSkill] = {}
        """The skills by their directories, the newest entry last."""
        self._listings: dict[str, Listing] = {}
        """The lists by the cursor of their next page."""
        self._bytes = 0
        self._changes = 0

    def around(self, uri: Any) -> tuple[KnownSkill, ...]:
        """Return the skills whose directory *uri* is, or is in, the innermost first: skills may be nested."""
        if not self._roots or not isinstance(uri, str) or len(uri) > LONGEST_URI:
            return ()
        found = []
        here = uri
        while here:
            if here in self._roots:
                found.append(self._roots[here])
            here = here.rpartition("/")[0]
        return tuple(found)

    # ── requests ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def take_request(self, exchange: Exchange, params: Mapping[str, Any]) -> None:
        """Keep what the answer to a request about skills needs."""
        uri, cursor = params.get("uri"), params.get("cursor")
        exchange.beyond = SkillRequest(
            uri if isinstance(uri, str) and len(uri) <= LONGEST_URI else None,
            self._listings.pop(cursor, None) if exchange.method == _LIST and isinstance(cursor, str) else None,
            self._changes,
        )

    def check_directory(self, uri: Any, revision: str) -> Iterator[Violation]:
        """Yield the violation of asking for a directory of a skill with a slash at the end."""
        if isinstance(uri, str) and uri.endswith("/") and self._is_of_skill(uri.rstrip("/")):
            yield known_skill.wrong_directory(
                "/params/uri", "a directory without a slash at the end", shown(uri), revision
            )

    def take_read(self, exchange: Exchange, uri: str) -> Iterator[Violation]:
        """Keep what the answer to a read of a file needs, and yield the violation of a file that is not listed."""
        skills = self.around(uri)
        if not skills:
            return
        exchange.beyond = SkillRead(uri, skills)
        if any(each.files is None or each.has(uri) or each.is_directory(uri) for each in skills):
            return
        yield violation(
            "skills/unlisted",
            "/params/uri",
            expected=f"a file in the resources of {shown(skills[0].uri)}",
            found=shown(uri),
            revision=exchange.revision,
        )

    # ── entries ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def check_list(self, exchange: Exchange, result: Mapping[str, Any], found: list[Violation]) -> int:
        """
        Judge a page of `skills/list`.

        Return at least how many violations there are beyond those in *found*.
        """
        page = result.get("skills")
        faults = self._check_page(page, exchange) if isinstance(page, list) else iter(())
        found += islice(faults, MOST_QUARANTINED)
        another = next(faults, None)
        if another is not None:
            # Not in an entry: a list with so many faults is forwarded or refused as a whole.
            found.append(replace(another, at="/result/skills"))
        return 0

    def _check_page(self, page: list[Any], exchange: Exchange) -> Iterator[Violation]:
        asked: SkillRequest | None = exchange.beyond
        before = asked.listing if asked is not None else None
        here = Listing() if before is None else Listing(before.names, before.uris)
        for number, skill in enumerate(page):
            if isinstance(skill, dict):
                at = f"/result/skills/{number}"
                faults = self._check_skill(skill, at, exchange.revision)
                yield from islice(faults, _MOST_OF_ONE)
                yield from _check_repeated(skill, here, at, exchange.revision)

    def check_get(self, exchange: Exchange, result: Mapping[str, Any], found: list[Violation]) -> int:
        """
        Judge the result of `skills/get`.

        Return at least how many violations there are beyond those in *found*.
        """
        asked: SkillRequest | None = exchange.beyond
        skill = result.get("skill")
        if not isinstance(skill, dict):
            return 0
        uri = skill.get("uri")
        if asked is not None and asked.uri is not None and isinstance(uri, str) and uri != asked.uri:
            found.append(_other_skill(asked.uri, uri, exchange.revision))
        faults = list(islice(self._check_skill(skill, "/result/skill", exchange.revision), _MOST_OF_ONE + 1))
        found += faults[:_MOST_OF_ONE]
        return max(0, len(faults) - _MOST_OF_ONE)

    def _check_skill(self, skill: Mapping[str, Any], at: str, revision: str) -> Iterator[Violation]:
        yield from skill_entries.check(skill, at, revision)
        known = self._roots.get(skill_entries.root_of(skill.get("uri")) or "")
        if known is not None:
            yield from known_skill.check_changed(known, skill, at, revision)

    def learn(self, exchange: Exchange, result: Mapping[str, Any]) -> None:
        """Note that a result about skills was forwarded."""
        asked: SkillRequest | None = exchange.beyond
        if asked is not None and asked.changes != self._changes:
            # The result may be older than the change.
            return
        page = result.get("skills") if exchange.method == _LIST else [result.get("skill")]
        for skill in page[:_MOST_LISTED] if isinstance(page, list) else ():
            if isinstance(skill, dict):
                self._learn_skill(skill)
        if exchange.method == _LIST:
            self._learn_page(page, result.get("nextCursor"), asked.listing if asked is not None else None)

    def _learn_skill(self, skill: Mapping[str, Any]) -> None:
        uri = skill.get("uri")
        if skill_entries.root_of(uri) is None or not isinstance(skill.get("frontmatter"), dict):
            return
        if not isinstance(uri, str) or len(uri) > LONGEST_URI:
            return
        known = KnownSkill(uri, skill)
        self._forget(known.root)
        self._roots[known.root] = known
        self._bytes += known.size
        while self._bytes > _MOST_BYTES:
            self._forget(next(iter(self._roots)))

    def _learn_page(self, page: Any, cursor: Any, before: Listing | None) -> None:
        if not isinstance(page, list) or not isinstance(cursor, str) or len(cursor) > _LONGEST_CURSOR:
            return
        listing = before or Listing()
        for skill in page[:_MOST_LISTED]:
            if isinstance(skill, dict):
                listing.add(skill.get("uri"), _name(skill))
        self._listings[cursor] = listing
        if len(self._listings) > _MOST_CURSORS:
            del self._listings[next(iter(self._listings))]

    def _forget(self, root: str) -> None:
        gone = self._roots.pop(root, None)
        self._bytes -= gone.size if gone is not None else 0

    # ── changes ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def changed(self) -> None:
        """Forget all entries: the server has reported that its resources have changed."""
        self._roots.clear()
        self._listings.clear()
        self._bytes = 0
        self._changes += 1

    def updated(self, uri: Any) -> None:
        """Forget the skills with a file that the server has reported as changed."""
        self._changes += 1
        for skill in self.around(uri):
            self._forget(skill.root)

    # ── files ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def check_read(self, exchange: Exchange, result: Mapping[str, Any]) -> Iterator[Violation]:
        """Yield the violations of the content of a file of a skill."""
        read = exchange.beyond
        if not isinstance(read, SkillRead):
            return
        contents = result.get("contents")
        items = [
            (number, each)
            for number, each in enumerate(contents if isinstance(contents, list) else ())
            if isinstance(each, dict) and each.get("uri") == read.uri
        ]
        # An entry that came after the request may be older or newer than the content.
        if len(items) == 1 and all(self._roots.get(each.root) is each for each in read.skills):
            at = f"/result/contents/{items[0][0]}"
            yield from known_skill.check_content(read.skills, read.uri, items[0][1], at, exchange.revision)

    def check_resources(self, result: Mapping[str, Any], revision: str) -> Iterator[Violation]:
        """Yield the violations of `resources/list`: the SKILL.md of a known skill has the metadata of the skill."""
        resources = result.get("resources") if self._roots else None
        for number, resource in enumerate(resources if isinstance(resources, list) else ()):
            uri = resource.get("uri") if isinstance(resource, dict) else None
            known = self._roots.get(skill_entries.root_of(uri) or "")
            if known is not None:
                yield from known_skill.check_resource(known, resource, f"/result/resources/{number}", revision)

    # ── directories ──────────────────────────────────────────────────────────────────────────────────────────────────

    def check_children(self, exchange: Exchange, result: Mapping[str, Any]) -> Iterator[Violation]:
        """Yield the violations of the children of a directory."""
        asked: SkillRequest | None = exchange.beyond
        children = result.get("resources")
        directory = asked.uri.rstrip("/") if asked is not None and asked.uri is not None else ""
        if not isinstance(children, list) or not self._is_of_skill(directory):
            return
        folders = {each for skill in self.around(directory) for each in skill.directories(directory)}
        for number, child in enumerate(children):
            if isinstance(child, dict):
                at = f"/result/resources/{number}"
                yield from known_skill.check_child(directory, child, folders, at, exchange.revision)

    def _is_of_skill(self, directory: str) -> bool:
        """Return whether *directory* is one of a skill: other directories may have children with any URI."""
        return directory.startswith(_SCHEME) or bool(self.around(directory))


def _check_repeated(skill: Mapping[str, Any], here: Listing, at: str, revision: str) -> Iterator[Violation]:
    """Yield the violation of a skill whose URI or name was listed before, and add it to what was listed *here*."""
    uri, name = skill.get("uri"), _name(skill)
    if not isinstance(uri, str) or not isinstance(name, str):
        return
    if hash(uri) in here.uris:
        yield violation(
            "skills/repeated", f"{at}/uri", expected="a skill once", found=f"{shown(uri)} again", revision=revision
        )
    elif hash(name) in here.names:
        expected, at = "a name of its own", f"{at}/frontmatter/name"
        yield violation("skills/repeated", at, expected=expected, found=f"{shown(name)} again", revision=revision)
    here.add(uri, name)


def _name(skill: Mapping[str, Any]) -> Any:
    frontmatter = skill.get("frontmatter")
    name = frontmatter.get("name") if isinstance(frontmatter, dict) else None
    return name if isinstance(name, str) else None


def _other_skill(expected: str, found: str, revision: str) -> Violation:
    return violation(
        "skills/identity", "/result/skill/uri", expected=shown(expected), found=shown(found), revision=revision
    )
