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

from assay.base.json_values import items, obj
from assay.base.limits import Limits
from assay.base.verdict import Exchange, Party, Violation
from assay.contracts.tool_lists import MOST_QUARANTINED
from assay.core.topics.capabilities import report_lack
from assay.core.topics.errors import NO_RESOURCE, NOT_FOUND, report_no_resource, report_not_implemented
from assay.core.topics.extensions import declares, leaves_out, settings_of
from assay.core.topics.table import Note, on
from assay.engine.pointers import escaped
from assay.engine.wording import shown
from assay.rules.report import Report
from assay.spec.extensions import SKILLS

if TYPE_CHECKING:
    from assay.core.state import State

_METHODS: Final = tuple(each.name for each in SKILLS.methods)
_DIRECTORY: Final = "resources/directory/read"

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


class SkillDigests:
    """The announced files of the skills of one server."""

    __slots__ = ("_skills", "changes", "count")

    def __init__(self, _: Limits) -> None:
        self._skills: dict[int, dict[int, SkillFile]] = {}
        """
        The files by their URIs, for each skill by its directory, the newest entry last.

        URIs are kept as hashes, so that the number of files bounds the memory.
        """
        self.count = 0
        """The number of files in all skills."""
        self.changes = 0
        """How often the server has reported changes."""

    def learn(self, exchange: Exchange, entries: Any) -> None:
        """Remember the files of *entries*, from a result that was forwarded."""
        # A result that crosses the report of a change may be older than it. A request without params has no number.
        if exchange.beyond not in (None, self.changes):
            return
        for entry in map(obj, items(entries)):
            root = _root_of(entry.get("uri"))
            self._forget(hash(root))
            if root and (files := _files(entry.get("resources"))):
                self._skills[hash(root)] = files
                self.count += len(files)
            while self.count > _MOST_KNOWN:
                self._forget(next(iter(self._skills)))

    def _forget(self, skill: int) -> None:
        self.count -= len(self._skills.pop(skill, ()))

    def changed(self, uri: Any = None) -> None:
        """Forget the skills around a resource that has changed; all skills if the server does not report which."""
        self.changes += 1
        for skill in list(self._skills) if uri is None else self._around(uri):
            self._forget(skill)

    def announced(self, uri: str) -> list[SkillFile]:
        """Return what is announced for a file. Several entries may have it, because skills may be nested."""
        found = (self._skills[skill].get(hash(uri)) for skill in self._around(uri))
        return [each for each in found if each is not None]

    def _around(self, uri: Any) -> list[int]:
        """Return the skills whose directory *uri* is, or is in, the innermost first."""
        found = []
        here = uri if self._skills and isinstance(uri, str) and len(uri) <= _LONGEST_URI else ""
        while here:
            if hash(here) in self._skills:
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


# ── requests and what they bring ─────────────────────────────────────────────────────────────────────────────────────


def _is_own(exchange: Exchange) -> bool:
    return exchange.entry.extension is SKILLS


@on("request", *_METHODS)
def take_request(state: "State", exchange: Exchange, _: dict[str, Any], report: Report) -> None:
    """Note which changes came before a request for entries; report one for a directory that the server cannot read."""
    if not _is_own(exchange):
        return
    if exchange.method != _DIRECTORY:
        exchange.beyond = state.shared(SkillDigests).changes
    elif declares(state.sides[Party.SERVER].capabilities, SKILLS.identifier) and not _reads_directories(state):
        report_lack("/method", Party.SERVER, f"extensions.{SKILLS.identifier}.directoryRead", report)


def _reads_directories(state: "State") -> bool:
    """Return whether the server declares that it lists what is in a directory."""
    server = state.sides[Party.SERVER].capabilities
    return settings_of(server, SKILLS.identifier).get("directoryRead") is True


@on("error")
def check_error(state: "State", exchange: Exchange, error: dict[str, Any], report: Report) -> None:
    """Report an error to a request of an extension that the server declares."""
    extension, code = exchange.entry.extension, error["code"]
    if extension is None:
        return
    if code == NOT_FOUND and declares(state.sides[Party.SERVER].capabilities, extension.identifier):
        if exchange.method != _DIRECTORY or _reads_directories(state):
            report_not_implemented(exchange, f"extensions.{extension.identifier}", report)
    elif extension is SKILLS and code == NO_RESOURCE and exchange.features.handshake:
        # Without a handshake the code is withdrawn for every method.
        report_no_resource(code, report)


@on("answered", "skills/list", "skills/get")
def learn(state: "State", exchange: Exchange, result: dict[str, Any], _: Report) -> None:
    """Keep the files of the skills in a result."""
    if _is_own(exchange):
        entries = result.get("skills") if exchange.method == "skills/list" else [result.get("skill")]
        state.shared(SkillDigests).learn(exchange, entries)


@on("noted", "notifications/resources/list_changed", "notifications/resources/updated")
def forget(state: "State", note: Note) -> None:
    """Forget what has changed."""
    skills = _known(state)
    if skills is not None and note.side.party is Party.SERVER:
        skills.changed(note.params.get("uri") if note.method.endswith("updated") else None)


def _known(state: "State") -> SkillDigests | None:
    """Return the files of the skills of the server; None as long as none were asked for, or if they are not judged."""
    skills = state.known(SkillDigests)
    return None if skills is None or leaves_out(state, SKILLS) else skills


@on("request", "resources/read")
def take_read(state: "State", exchange: Exchange, params: dict[str, Any], _: Report) -> None:
    """Keep what is announced for a file that the client asks for."""
    uri, skills = params.get("uri"), _known(state)
    if skills is not None and isinstance(uri, str) and (files := skills.announced(uri)):
        exchange.beyond = SkillRead(uri, files)


@on("result", "resources/read")
def check_read(state: "State", exchange: Exchange, result: dict[str, Any], report: Report) -> None:
    """Report a content that is not the announced one."""
    read, skills = exchange.beyond, _known(state)
    # An entry that came after the request may be older or newer than the content.
    if not isinstance(read, SkillRead) or skills is None or skills.announced(read.uri) != read.files:
        return
    contents = [
        (number, each)
        for number, each in enumerate(map(obj, items(result.get("contents"))))
        if each.get("uri") == read.uri
    ]
    data = _bytes_of(contents[0][1]) if len(contents) == 1 else None
    if data is None or (actual := SkillFile(sha256(data).digest(), len(data))) in read.files:
        return
    announced = read.files[0]
    if actual.size != announced.size:
        expected, found = f"{announced.size:,} bytes", f"{actual.size:,} bytes"
    else:
        expected, found = f"the digest sha256:{announced.digest.hex()}", f"sha256:{actual.digest.hex()}"
    report.add("skills/verification", f"/result/contents/{contents[0][0]}", expected=expected, found=found)


def _bytes_of(item: Mapping[str, Any]) -> bytes | None:
    """Return the bytes of one content of `resources/read`; None if there are none."""
    text, blob = item.get("text"), item.get("blob")
    if isinstance(text, str):
        return text.encode(errors="replace")
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
        _check_entry(skill, f"/result/skills/{number}", one)
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
    _check_entry(result.get("skill"), "/result/skill", some)
    report.join(some)


def _check_entry(skill: Any, at: str, report: Report) -> None:
    """Report what is wrong with the entry of one skill; *at* is the pointer to it."""
    if not isinstance(skill, dict):
        return
    uri, frontmatter = skill.get("uri"), skill.get("frontmatter")
    if isinstance(frontmatter, dict):
        name = frontmatter.get("name")
        if isinstance(name, str) and not _is_name(name):
            expected = f"1 to {_LONGEST_NAME} lower-case letters, digits and hyphens, without a hyphen at either end"
            report.add("skills/name", f"{at}/frontmatter/name", expected=expected, found=shown(name))
        if isinstance(uri, str) and isinstance(name, str):
            root = _root_of(uri)
            if root is None or not _names(root.rpartition("/")[2], name):
                expected = f'a URI that ends in "/{name[:_LONGEST_NAME]}{_FILE}"'
                report.add("skills/uri", f"{at}/uri", expected=expected, found=shown(uri))
        for key in obj(frontmatter.get("metadata")):
            if key.startswith(_RESERVED) and not report.is_full:
                place, expected = (
                    f"{at}/frontmatter/metadata/{escaped(key)}",
                    f"a key that does not begin with {_RESERVED}",
                )
                report.add("skills/metadata", place, expected=expected, found=shown(key))
    if isinstance(skill.get("resources"), list):
        _check_files(skill["resources"], uri if isinstance(uri, str) else "", f"{at}/resources", report)


def _root_of(uri: Any) -> str | None:
    """Return the directory of the skill with this *uri*; None if it is not the URI of a skill."""
    return uri.removesuffix(_FILE) if isinstance(uri, str) and uri.endswith(_FILE) else None


def _digest_of(text: Any) -> bytes:
    """Return the bytes of a digest; b"" for an invalid one."""
    valid = isinstance(text, str) and _DIGEST.fullmatch(text) is not None
    return bytes.fromhex(text.removeprefix("sha256:")) if valid else b""


def _is_name(name: str) -> bool:
    # Which letters are meant is not settled for other scripts than Latin: those in lower case pass.
    return _NAME.fullmatch(name) is not None or (
        0 < len(name) <= _LONGEST_NAME
        and name[0] != "-" != name[-1]
        and all(each == "-" or (each.isalnum() and each == each.lower()) for each in name)
    )


def _names(segment: str, name: str) -> bool:
    """Return whether the last segment of a directory is the name of a skill, also with escaped characters."""
    if segment == name or "%" not in segment:
        return segment == name
    return unquote(segment) == name


def _check_files(files: list[Any], uri: str, at: str, report: Report) -> None:
    root = _root_of(uri)
    seen: set[str] = set()
    total = 0
    for number, file in enumerate(files):
        if isinstance(file, dict):
            _check_file(file, f"{at}/{number}", report)
            _check_place(file.get("uri"), root, seen, f"{at}/{number}/uri", report)
            size = file.get("size")
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


def _check_file(file: Mapping[str, Any], at: str, report: Report) -> None:
    digest, size = file.get("digest"), file.get("size")
    if isinstance(digest, str) and not _digest_of(digest):
        expected = '"sha256:" and 64 lower-case hexadecimal digits'
        report.add("skills/digest", f"{at}/digest", expected=expected, found=shown(digest))
    if isinstance(size, int | float) and size < 0:
        report.add("skills/digest", f"{at}/size", expected="at least 0", found=shown(size))


def _check_place(uri: Any, root: str | None, seen: set[str], at: str, report: Report) -> None:
    """Report a file that is listed twice, or that is not in the directory *root*."""
    if not isinstance(uri, str):
        return
    if uri in seen:
        report.add("skills/manifest", at, expected="each file once", found=f"{shown(uri)} again")
    elif root is not None and (not uri.startswith(f"{root}/") or ".." in uri[len(root) :].split("/")):
        report.add("skills/manifest", at, expected=f'a URI below "{root[:200]}/"', found=shown(uri))
    seen.add(uri)
