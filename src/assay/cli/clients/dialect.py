"""
How MCP clients write their configuration: JSON, for all clients but Codex. Text in, text out, no I/O.

The clients agree on `command`, `args` and `env`. They differ in where the servers are, in the key of a URL, and in how
a member is added to an entry or removed from it.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from assay.cli.clients import jsonc, toml
from assay.cli.clients.jsonc import Member, Node, Object, plain
from assay.ladder.spots import Edit

SECTIONS: Final = ("mcpServers", "servers", "context_servers")
"""Keys of the object with the servers: VS Code uses the second, Zed the third, all other JSON clients the first."""

_PROJECTS: Final = "projects"
"""Claude Code keeps the servers of one project in ``~/.claude.json``, at ``projects.PATH.mcpServers``."""

_URL_KEYS: Final = ("url", "serverUrl", "httpUrl")
_LINE_START: Final = re.compile(r"(?:\r\n|\r|\n)[ \t]*\Z")


Pairs = tuple[tuple[str, str], ...]


class ConfigError(ValueError):
    """A file cannot be used as the configuration of a client."""


class NoServersError(ConfigError):
    """The file is valid, but has no servers."""


class ServerEntry(NamedTuple):
    """One server of a configuration: where it is, and the text of its entry."""

    section: str
    name: str
    start: int
    end: int
    text: str
    trouble: str = ""
    """Why the entry cannot be edited in place; empty if it can."""

    @property
    def project(self) -> str | None:
        """The folder of the project that the server is for; None if it is for all projects."""
        section, slash, path = self.section.partition("/")
        return path if slash and section == _PROJECTS else None

    @property
    def label(self) -> str:
        """The name for messages, with the project if the file has several."""
        return self.name if self.project is None else f"{self.name} (project {self.project})"


@dataclass(frozen=True)
class Dialect:
    """JSON with comments; what is different in another dialect is overridden there."""

    url: str = "url"
    """The key to use for a URL if the backup does not have the original key."""
    sse: str = ""
    """The key of an HTTP+SSE URL in an entry without a type."""
    has_type: bool = True
    """Whether an entry with a command may have ``"type": "stdio"``."""
    headers: str = "headers"

    # ── reading ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def document(self, text: str) -> "jsonc.Document | toml.TomlDocument":
        """Parse a file into a value with positions. Raises `ConfigError`."""
        try:
            return jsonc.read(text)
        except jsonc.JsoncError as error:
            raise ConfigError(f"not valid JSON: {error}") from None

    def servers(self, text: str) -> list[ServerEntry]:
        """Return the servers of a configuration, in the order of its *text*. Raises `ConfigError`."""
        root = self.document(text).root
        if not isinstance(root, Object):
            raise ConfigError("not a client's configuration: expected an object")
        found = list(self.sections(root))
        if not found:
            raise NoServersError(f"no servers: it has no {', '.join(SECTIONS[:-1])} or {SECTIONS[-1]}")
        servers = [each for section, value in found for each in _servers(text, section, value)]
        return sorted(servers, key=lambda server: server.start)

    def sections(self, root: Object) -> Iterator[tuple[str, Node]]:
        """Yield each object with servers, with a name that is unique in the file."""
        for key, value in root.members:
            if key.value in SECTIONS:
                yield key.value, value
            elif key.value == _PROJECTS and isinstance(value, Object):
                yield from _of_projects(value)

    def entry(self, text: str) -> Node:
        """Parse an entry into a value with positions."""
        return jsonc.read(text).root

    def has_comments(self, text: str) -> bool:
        """Whether an entry contains a comment."""
        return bool(jsonc.read(text).comments)

    def value(self, text: str) -> Any:
        """Return the value of an entry with the keys that most clients use: `url`, `headers`."""
        value = plain(self.entry(text))
        if not isinstance(value, dict):
            return value
        if self.sse and self.sse in value and "type" not in value:
            value["type"] = "sse"
        urls = [key for key in self.url_keys if key in value]
        if len(urls) == 1:
            value["url"] = value.pop(urls[0])
        if self.headers in value:
            value["headers"] = value.pop(self.headers)
        return value

    @property
    def url_keys(self) -> tuple[str, ...]:
        """Keys under which an entry has its URL."""
        return _URL_KEYS

    def trouble(self, text: str) -> str | None:
        """Return why the layout of an entry prevents putting it behind the guard; empty if nothing does."""
        found = [key for key in self.url_keys if key in keys(self.entry(text))]
        return f"it has more than one url: {' and '.join(found)}" if len(found) > 1 else None

    # ── writing ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def written(self, word: str) -> str:
        """Return *word* as a string of the file, unescaped except for characters without UTF-8."""
        return written(word)

    def key(self, name: str) -> str:
        """Return *name* as a key."""
        return f'"{name}"'

    def pair(self, name: str, value: str) -> str:
        """Return a header as a member of an object."""
        return f"{self.written(name)}: {self.written(value)}"

    def added(self, text: str, after: Member, name: str, value: str) -> Edit:
        """Return the edit that inserts a member *after* another, in the same style."""
        end = after.value.end
        return Edit(end, end, f',{gap(text, after.key.start)}"{name}": {value}')

    def removed(self, text: str, entry: Object, member: Member) -> Edit:  # noqa: ARG002 - TOML looks at the text
        """Return the edit that removes *member*."""
        at = entry.members.index(member)
        if at:
            return Edit(entry.members[at - 1].value.end, member.value.end, "")
        return Edit(member.key.start, entry.members[1].key.start, "")

    def laid_out(self, text: str, before: Node, within: list[int], lines: list[str], brackets: str) -> Edit:
        """Return *lines* in place of *before*: one below the other if the first item *within* it starts a line."""
        between = gap(text, within[0]) if within else " "
        begin, end = ("" if each == " " else each for each in (between, gap(text, before.end - 1)))
        joined = f",{between}".join(lines)
        return Edit(before.start, before.end, f"{brackets[0]}{begin}{joined}{end if begin else ''}{brackets[1]}")

    def header_argument(self, text: str, member: Member) -> str:
        """Return a header as an argument, with the escapes of the file."""
        name, value = member
        return f"{text[name.start : name.end - 1]}: {text[value.start + 1 : value.end]}"

    def credentials(self, entry: Object) -> tuple[list[str], list[Edit]]:  # noqa: ARG002 - Codex has some
        """Return the headers that an entry takes from variables, as arguments, and the edits that pass these on."""
        return [], []

    def restored(self, entry: Object, headers: Pairs) -> tuple[Pairs, list[Edit]]:  # noqa: ARG002 - Codex has some
        """Return *headers* without those of `credentials`, and the edits that undo `credentials`."""
        return headers, []

    # ── showing ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def hides(self, comment: str) -> bool:
        """Whether *comment* may be a commented-out entry with secrets."""
        return '"' in comment

    def commented(self, comment: str, shown: str) -> str:
        """Return *shown* as a comment of the same kind as *comment*."""
        return f"// {shown}" if comment.startswith("//") else f"/* {shown} */"


JSON: Final = Dialect()


# ── pieces ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def written(word: str) -> str:
    """Return *word* as a JSON string, unescaped except for characters without UTF-8."""
    plainly = json.dumps(word, ensure_ascii=False)
    return plainly if plainly.encode(errors="ignore").decode() == plainly else json.dumps(word)


def gap(text: str, at: int) -> str:
    """Return the separator before a new item: a line break and indent if the item *at* starts a line."""
    start = _LINE_START.search(text, 0, at)
    return start[0] if start else " "


def keys(entry: Node) -> Mapping[str, Any]:
    """Return the members of *entry*; empty if it is not an object."""
    value = plain(entry)
    return value if isinstance(value, dict) else {}


def _servers(text: str, section: str, value: Node) -> list[ServerEntry]:
    if not isinstance(value, Object):
        raise ConfigError(f"no servers: {section} is not an object")
    return [
        ServerEntry(section, key.value, entry.start, entry.end, text[entry.start : entry.end])
        for key, entry in value.members
    ]


def _of_projects(projects: Object) -> Iterator[tuple[str, Node]]:
    for path, project in projects.members:
        found = project.get(SECTIONS[0]) if isinstance(project, Object) else None
        if found is not None:
            yield f"{_PROJECTS}/{path.value}", found.value
