"""
One skill as its server has described it, and later messages compared with that. No I/O, no clock.

Files, the resource of SKILL.md, directories, and newer entries of the skill.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

import orjson

from assay.base.verdict import Violation
from assay.core.extensions import skill_entries, skill_files
from assay.core.extensions.skill_files import SkillFile
from assay.engine.wording import shown
from assay.rules import violation

LONGEST_URI: Final = 2048
"""Characters of a URI that is remembered. The longest known ones have 300."""

_FOLDER: Final = "inode/directory"

_MOST_FILES: Final = 2048
"""Files of one skill that are remembered: four times as many as a skill may have."""


class KnownSkill:
    """What is remembered of one skill."""

    __slots__ = ("fields", "files", "frontmatter", "root", "size", "uri")

    def __init__(self, uri: str, skill: Mapping[str, Any]) -> None:
        frontmatter = skill["frontmatter"]
        self.uri = uri
        self.root = uri.removesuffix(skill_entries.FILE)
        self.fields = {
            name: skill_files.field_digest(frontmatter[name])
            for name in skill_files.FIELDS
            if isinstance(frontmatter.get(name), str)
        }
        """Digests of the name and of the description."""
        self.frontmatter = _digest(frontmatter)
        self.files = _files(skill.get("resources"))
        """The files by their URIs; None if they are unknown, or too many."""
        self.size = 500 + 2 * len(uri) + sum(2 * len(each) + 200 for each in self.files or ())
        """About the bytes that it takes."""

    def has(self, uri: str) -> bool:
        """Return whether *uri* is a file of the skill."""
        return self.files is not None and uri in self.files

    def is_directory(self, uri: str) -> bool:
        """Return whether *uri* is a directory with files of the skill."""
        return any(each.startswith(f"{uri}/") for each in self.files or ())

    def directories(self, uri: str) -> set[str]:
        """Return the directories with files of the skill that are direct children of the directory *uri*."""
        below = (each.removeprefix(f"{uri}/") for each in self.files or () if each.startswith(f"{uri}/"))
        return {f"{uri}/{each.partition('/')[0]}" for each in below if "/" in each}


def check_changed(known: KnownSkill, skill: Mapping[str, Any], at: str, revision: str) -> Iterator[Violation]:
    """Yield the violations of an entry that contradicts the one before: the same bytes, and another size or meaning."""
    files = _files(skill.get("resources")) or {}
    before = known.files or {}
    for uri, file in files.items():
        old = before.get(uri)
        if old is None or not file.digest or file.digest != old.digest or -1 in (file.size, old.size):
            continue
        if file.size != old.size:
            expected = f"{old.size:,} bytes in {shown(uri)}, as before with the same digest"
            yield violation(
                "skills/changed", f"{at}/resources", expected=expected, found=f"{file.size:,}", revision=revision
            )
    own, same = files.get(known.uri), before.get(known.uri)
    if own is None or same is None or not own.digest or own.digest != same.digest:
        return
    if isinstance(skill.get("frontmatter"), dict) and _digest(skill["frontmatter"]) != known.frontmatter:
        yield violation(
            "skills/changed",
            f"{at}/frontmatter",
            expected="the frontmatter from before, because SKILL.md has the same digest",
            found="another one",
            revision=revision,
        )


def check_content(
    skills: Collection[KnownSkill], uri: str, item: Mapping[str, Any], at: str, revision: str
) -> Iterator[Violation]:
    """Yield the violations of the content of a file; *skills* are those whose directory it is in."""
    files = [each.files[uri] for each in skills if each.files is not None and uri in each.files]
    data = skill_files.content_of(item) if files else None
    if data is not None and not any(each.matches(data) for each in files):
        yield skill_files.wrong_content(files[0], data, at, revision)
        return
    skill = next((each for each in skills if each.uri == uri), None)
    if skill is not None:
        yield from _check_type(item, at, revision)
    if skill is not None and isinstance(item.get("text"), str):
        yield from skill_files.check_frontmatter(item["text"], skill.fields, f"{at}/text", revision)


def check_resource(known: KnownSkill, resource: Mapping[str, Any], at: str, revision: str) -> Iterator[Violation]:
    """Yield the violations of the SKILL.md of a skill in `resources/list`."""
    yield from _check_type(resource, at, revision)
    for name, digest in known.fields.items():
        value = resource.get(name)
        if not isinstance(value, str) or skill_files.field_digest(value) != digest:
            yield _wrong_resource(f"{at}/{name}", f"the {name} of the skill", _shown(value), revision)
    meta = resource.get("_meta")
    for key in meta if isinstance(meta, dict) else ():
        if "/" not in key:
            yield _wrong_resource(f"{at}/_meta", "keys with a prefix", shown(key), revision)


def check_child(
    directory: str, child: Mapping[str, Any], folders: Collection[str], at: str, revision: str
) -> Iterator[Violation]:
    """Yield the violation of a child of *directory*; *folders* are the children that are certainly directories."""
    uri = child.get("uri")
    if not isinstance(uri, str):
        return
    rest = uri.removeprefix(f"{directory}/")
    if uri.endswith("/"):
        yield wrong_directory(f"{at}/uri", "a URI without a slash at the end", shown(uri), revision)
    elif rest == uri or "/" in rest:
        yield wrong_directory(f"{at}/uri", f"a direct child of {shown(directory)}", shown(uri), revision)
    elif uri in folders and child.get("mimeType") != _FOLDER:
        yield wrong_directory(f"{at}/mimeType", f'"{_FOLDER}"', _shown(child.get("mimeType")), revision)


def _check_type(resource: Mapping[str, Any], at: str, revision: str) -> Iterator[Violation]:
    kind = resource.get("mimeType")
    # Parameters, such as the character set, do not change the type.
    if not isinstance(kind, str) or kind.partition(";")[0].strip().lower() != skill_files.MARKDOWN:
        yield _wrong_resource(f"{at}/mimeType", f'"{skill_files.MARKDOWN}"', _shown(kind), revision)


def _files(resources: Any) -> dict[str, SkillFile] | None:
    """Return the files of a skill by their URIs; None if they are unknown, or cannot be remembered."""
    if not isinstance(resources, list) or len(resources) > _MOST_FILES:
        return None
    found = {}
    for each in resources:
        uri = each.get("uri") if isinstance(each, dict) else None
        if not isinstance(uri, str) or len(uri) > LONGEST_URI:
            return None
        size = each.get("size")
        is_size = isinstance(size, int) and 0 <= size < 1 << 53
        found[uri] = SkillFile(skill_entries.digest_of(each.get("digest")), size if is_size else -1)
    return found


def _digest(frontmatter: Any) -> bytes:
    """Return a digest of a frontmatter, which may be large."""
    try:
        text = orjson.dumps(frontmatter, option=orjson.OPT_SORT_KEYS)
    except orjson.JSONEncodeError:
        # An integer beyond 64 bits.
        text = repr(frontmatter).encode(errors="replace")
    return skill_files.field_digest(text.decode(errors="replace"))


def _shown(value: Any) -> str:
    return "nothing" if value is None else shown(value)


def _wrong_resource(at: str, expected: str, found: str, revision: str) -> Violation:
    return violation("skills/resource", at, expected=expected, found=found, revision=revision)


def wrong_directory(at: str, expected: str, found: str, revision: str) -> Violation:
    """Return the violation of a directory or of one of its children."""
    return violation("skills/directory", at, expected=expected, found=found, revision=revision)
