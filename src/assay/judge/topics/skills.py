"""
Skills: their entries in `skills/list` and `skills/get`, and the files that these announce.

An entry fits its schema already, unless invalid messages are forwarded. The contents of files are compared with the
announced digests. An entry counts until the server sends a newer one, or reports that its resources have changed. What
was forgotten is not judged.
"""

import re
from base64 import b64decode
from collections.abc import Mapping
from dataclasses import replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import unquote

from assay.judge.topics.extensions import leaves_out
from assay.judge.topics.table import Note, on
from assay.model.bounded import BoundedSizes
from assay.model.json_values import items, obj, text
from assay.model.limits import Limits
from assay.model.verdict import Exchange, Party, Violation
from assay.rules.report import Report
from assay.schema.pointers import escaped
from assay.schema.tool_contracts import MOST_QUARANTINED
from assay.schema.wording import shown
from assay.spec.extensions import SKILLS

if TYPE_CHECKING:
    from assay.judge.state import State

_FILE: Final = "/SKILL.md"
"""The end of the URI of every skill."""

_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}")
_NAME: Final = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,62}[a-z0-9])?")
_LONGEST_NAME: Final = 64
_RESERVED: Final = "io.modelcontextprotocol/"

_MOST_FILES: Final = 512
_MOST_BYTES: Final = 16_777_216
"""The limits of one skill that every client has to support, by the specification."""

_MOST_OF_ONE: Final = 8
"""Violations of one skill in a list that are reported: one skill must not fill the report for all others."""

_MOST_KNOWN: Final = 15_000
"""Files of one server that are remembered: 3 MB, or 7 MB if each skill has one file. A large catalogue has 1,000."""

_LONGEST_URI: Final = 2048
"""Characters of a URI whose directories are looked up. The longest known ones have 300."""


class SkillFile(NamedTuple):
    """What the entry of a skill announces for one file."""

    digest: bytes
    """SHA-256."""
    size: int | float
    """Bytes; a float if the server writes 5.0."""


class SkillRead(NamedTuple):
    """A file that is read, and what was announced for it when it was asked for."""

    uri: str
    files: list[SkillFile]


class SkillDigests(BoundedSizes[int, dict[int, SkillFile]]):
    """
    The announced files of the skills of one server: by their URIs, for each skill by its directory, the newest last.

    URIs are kept as hashes, so that the number of files bounds the memory.
    """

    def __init__(self, _: Limits) -> None:
        super().__init__(_MOST_KNOWN, _MOST_KNOWN)
        self.changes = 0
        """How often the server has reported changes."""

    def learn(self, entry: dict[str, Any]) -> None:
        """Remember the files of an *entry* in place of those that were announced before."""
        root = _root_of(entry.get("uri"))
        self.take(hash(root))
        files = _files(entry.get("resources"))
        if root and files:
            self.put(hash(root), files, len(files))

    def changed(self, uri: Any = None) -> None:
        """Forget the skills around a resource that has changed; all skills if the server does not report which."""
        self.changes += 1
        for skill in list(self) if uri is None else self._around(uri):
            self.take(skill)

    def announced(self, uri: str) -> list[SkillFile]:
        """Return what is announced for a file. Several entries may have it, because skills may be nested."""
        return [self[skill][hash(uri)] for skill in self._around(uri) if hash(uri) in self[skill]]

    def _around(self, uri: Any) -> list[int]:
        """Return the skills whose directory *uri* is, or is in, the innermost first."""
        found = []
        here = text(uri) if self and len(text(uri)) <= _LONGEST_URI else ""
        while here:
            if hash(here) in self:
                found.append(hash(here))
            here = here.rpartition("/")[0]
        return found


def _files(resources: Any) -> dict[int, SkillFile]:
    """Return the files of an entry by the hashes of their URIs, without those whose digest or size is invalid."""
    found = {}
    for each in map(obj, items(resources)):
        uri, digest, size = each.get("uri"), _digest_of(each.get("digest")), each.get("size")
        if isinstance(uri, str) and digest and isinstance(size, int | float) and 0 <= size < 1 << 53:
            found[hash(uri)] = SkillFile(digest, size)
    return found


def _root_of(uri: Any) -> str | None:
    """Return the directory of the skill with this *uri*; None if it is not the URI of a skill."""
    return uri.removesuffix(_FILE) if isinstance(uri, str) and uri.endswith(_FILE) else None


def _digest_of(digest: Any) -> bytes:
    """Return the bytes of a digest; b"" for an invalid one."""
    valid = isinstance(digest, str) and _DIGEST.fullmatch(digest) is not None
    return bytes.fromhex(digest.removeprefix("sha256:")) if valid else b""


# ── what is announced ────────────────────────────────────────────────────────────────────────────────────────────────


@on("request", "skills/list", "skills/get")
def take_request(state: "State", exchange: Exchange, _: dict[str, Any], __: Report) -> None:
    """Note which changes came before a request for entries."""
    if exchange.entry.extension is SKILLS:
        exchange.beyond = state.shared(SkillDigests).changes


@on("answered", "skills/list", "skills/get")
def learn(state: "State", exchange: Exchange, result: dict[str, Any], _: Report) -> None:
    """Keep the files of the skills in a result."""
    skills = state.shared(SkillDigests)
    # A result that crosses the report of a change may be older than it. A request without params has no number.
    if exchange.entry.extension is SKILLS and exchange.beyond in (None, skills.changes):
        for entry in [result.get("skill")] if exchange.method == "skills/get" else items(result.get("skills")):
            skills.learn(obj(entry))


@on("noted", "notifications/resources/list_changed", "notifications/resources/updated")
def forget(state: "State", note: Note) -> None:
    """Forget what has changed."""
    skills = state.known(SkillDigests)
    if skills is not None and note.sender.party is Party.SERVER:
        skills.changed(note.params.get("uri") if note.method.endswith("updated") else None)


# ── files ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@on("request", "resources/read")
def take_read(state: "State", exchange: Exchange, params: dict[str, Any], _: Report) -> None:
    """Keep what is announced for a file that the client asks for."""
    uri, skills = text(params.get("uri")), state.known(SkillDigests)
    files = skills.announced(uri) if skills is not None else []
    if files and not leaves_out(state, SKILLS):
        exchange.beyond = SkillRead(uri, files)


@on("result", "resources/read")
def check_read(state: "State", exchange: Exchange, result: dict[str, Any], report: Report) -> None:
    """Report a content that is not the announced one."""
    read, skills = exchange.beyond, state.known(SkillDigests)
    # An entry that came after the request may be older or newer than the content.
    if not isinstance(read, SkillRead) or skills is None or skills.announced(read.uri) != read.files:
        return
    contents = items(result.get("contents"))
    same = [number for number, each in enumerate(contents) if obj(each).get("uri") == read.uri]
    data = _bytes_of(contents[same[0]]) if len(same) == 1 else None
    if data is None or (actual := SkillFile(sha256(data).digest(), len(data))) in read.files:
        return
    announced = read.files[0]
    if actual.size != announced.size:
        expected, found = f"{announced.size:,} bytes", f"{actual.size:,} bytes"
    else:
        expected, found = f"the digest sha256:{announced.digest.hex()}", f"sha256:{actual.digest.hex()}"
    report.add("skills/verification", f"/result/contents/{same[0]}", expected=expected, found=found)


def _bytes_of(item: Mapping[str, Any]) -> bytes | None:
    """Return the bytes of one content of `resources/read`; None if there are none."""
    blob = item.get("blob")
    if isinstance(item.get("text"), str):
        return text(item["text"]).encode(errors="replace")
    try:
        return b64decode(blob, validate=True) if isinstance(blob, str) else None
    except ValueError:
        # Another spelling of Base64: a client may read it all the same.
        return None


# ── entries ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@on("entries", "skills/list")
def check_list(_: "State", __: Exchange, result: dict[str, Any], report: Report) -> None:
    """Report what is wrong with the entries of one page."""
    found: list[Violation] = []
    for number, skill in enumerate(items(result.get("skills"))):
        one = report.apart(_MOST_OF_ONE)
        _check_entry(obj(skill), f"/result/skills/{number}", one)
        found += one.found
        if len(found) > MOST_QUARANTINED:
            # Not in an entry: a list with so many faults is forwarded or refused as a whole.
            found[MOST_QUARANTINED:] = [replace(found[MOST_QUARANTINED], at="/result/skills")]
            break
    report.found += found


@on("result", "skills/get")
def check_skill(_: "State", __: Exchange, result: dict[str, Any], report: Report) -> None:
    """Report what is wrong with an entry."""
    some = report.apart(report.most)
    _check_entry(obj(result.get("skill")), "/result/skill", some)
    report.join(some)


def _check_entry(skill: dict[str, Any], at: str, report: Report) -> None:
    """Report what is wrong with the entry of one skill; *at* is the pointer to it."""
    uri, frontmatter = skill.get("uri"), obj(skill.get("frontmatter"))
    name, root = frontmatter.get("name"), _root_of(uri)
    if isinstance(name, str) and not _is_name(name):
        expected = f"1 to {_LONGEST_NAME} lower-case letters, digits and hyphens, without a hyphen at either end"
        report.add("skills/name", f"{at}/frontmatter/name", expected=expected, found=shown(name))
    if isinstance(uri, str) and isinstance(name, str):
        folder = None if root is None else root.rpartition("/")[2]
        # Characters of the name may be escaped.
        if folder is None or (folder != name and unquote(folder) != name):
            expected = f'a URI that ends in "/{name[:_LONGEST_NAME]}{_FILE}"'
            report.add("skills/uri", f"{at}/uri", expected=expected, found=shown(uri))
    for key in obj(frontmatter.get("metadata")):
        if key.startswith(_RESERVED) and not report.is_full:
            place = f"{at}/frontmatter/metadata/{escaped(key)}"
            report.add(
                "skills/metadata", place, expected=f"a key that does not begin with {_RESERVED}", found=shown(key)
            )
    if isinstance(skill.get("resources"), list):
        _check_files(skill["resources"], text(uri), root, f"{at}/resources", report)


def _is_name(name: str) -> bool:
    # Which letters are meant is not settled for other scripts than Latin: those in lower case pass.
    return _NAME.fullmatch(name) is not None or (
        0 < len(name) <= _LONGEST_NAME
        and name[0] != "-" != name[-1]
        and all(each == "-" or (each.isalnum() and each == each.lower()) for each in name)
    )


def _check_files(files: list[Any], uri: str, root: str | None, at: str, report: Report) -> None:
    """Report what is wrong with the files of the skill *uri*, which is in the directory *root*."""
    seen: set[str] = set()
    total = 0
    for number, file in enumerate(map(obj, files)):
        place, size = f"{at}/{number}", file.get("size")
        digest, own = file.get("digest"), file.get("uri")
        if isinstance(digest, str) and not _digest_of(digest):
            expected = '"sha256:" and 64 lower-case hexadecimal digits'
            report.add("skills/digest", f"{place}/digest", expected=expected, found=shown(digest))
        if isinstance(size, int | float) and size < 0:
            report.add("skills/digest", f"{place}/size", expected="at least 0", found=shown(size))
        if isinstance(own, str):
            if own in seen:
                found = f"{shown(own)} again"
                report.add("skills/manifest", f"{place}/uri", expected="each file once", found=found)
            elif root is not None and not _is_in(own, root):
                expected = f'a URI below "{root[:200]}/"'
                report.add("skills/manifest", f"{place}/uri", expected=expected, found=shown(own))
            seen.add(own)
        total += size if isinstance(size, int) and size > 0 else 0
        if report.is_full:
            return
    if uri and uri not in seen:
        report.add("skills/manifest", at, expected=f"{shown(uri)} among the files", found="no such file")
    if len(files) > _MOST_FILES:
        report.add("skills/size", at, expected=f"at most {_MOST_FILES} files", found=f"{len(files):,} files")
    if total > _MOST_BYTES:
        expected, found = f"at most {_MOST_BYTES:,} bytes", f"{f'{total:,}'[:60]} bytes"
        report.add("skills/size", at, expected=expected, found=found)


def _is_in(uri: str, root: str) -> bool:
    """Return whether a file is below the directory *root*."""
    return uri.startswith(f"{root}/") and ".." not in uri[len(root) :].split("/")
