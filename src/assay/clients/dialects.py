"""
How the files of MCP clients are written: JSON with comments, or the TOML of Codex. Text in, text out, no I/O.

The clients agree on `command`, `args` and `env`. They differ in where the servers are, in the key of a URL, and in how
a member is added to an entry or taken out of it.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, NamedTuple

from assay.clients import jsonc, toml
from assay.clients.jsonc import Edit, Member, Node, Object, plain

SECTIONS: Final = ("mcpServers", "servers", "context_servers")
"""Keys that servers are below: VS Code has the second, Zed the third, all other clients with JSON the first."""

_PROJECTS: Final = "projects"
"""Claude Code keeps the servers of one project in ``~/.claude.json``, at ``projects.PATH.mcpServers``."""

_CODEX_SECTION: Final = "mcp_servers"
_URL_KEYS: Final = ("url", "serverUrl", "httpUrl")
_TOKEN: Final = "bearer_token_env_var"  # noqa: S105 - the name of a key
_PASSED_ON: Final = "env_vars"
"""Codex reads the variable in the first for a URL, and passes those in the second on to a command."""

_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

_LINE_START: Final = re.compile(r"(?:\r\n|\r|\n)[ \t]*\Z")


Pairs = tuple[tuple[str, str], ...]


class ConfigError(ValueError):
    """Why a file cannot be used as the configuration of a client."""


class NoServersError(ConfigError):
    """The file is fine, and has no servers."""


class Server(NamedTuple):
    """One server of a configuration: where it is, and the text of its entry."""

    section: str
    name: str
    start: int
    end: int
    text: str
    trouble: str = ""
    """Why its entry cannot be edited in place; empty if it can."""

    @property
    def project(self) -> str | None:
        """The folder of the project that it is for; None if it is for all."""
        section, slash, path = self.section.partition("/")
        return path if slash and section == _PROJECTS else None

    @property
    def label(self) -> str:
        """What people call it: its name, with its project where the file has several."""
        return self.name if self.project is None else f"{self.name} (project {self.project})"


@dataclass(frozen=True)
class Dialect:
    """JSON with comments, as all clients but Codex have it."""

    url: str = "url"
    """The key that a URL is given if the backup does not say which one it had."""
    sse: str = ""
    """The key of a URL that is spoken to in HTTP+SSE, if the entry has no type."""
    has_type: bool = True
    """Whether an entry with a command may say ``"type": "stdio"``."""
    headers: str = "headers"

    # ── reading ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def document(self, text: str) -> "jsonc.Document | toml.TomlDocument":
        """Return the value of a file with the place of everything in it. Raises `ConfigError`."""
        try:
            return jsonc.read(text)
        except jsonc.JsoncError as error:
            raise ConfigError(f"not valid JSON: {error}") from None

    def servers(self, text: str) -> list[Server]:
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
        """Yield everything that has servers in it, with a name that tells one from another."""
        for key, value in root.members:
            if key.value in SECTIONS:
                yield key.value, value
            elif key.value == _PROJECTS and isinstance(value, Object):
                yield from _of_projects(value)

    def entry(self, text: str) -> Node:
        """Return the value of an entry, with the place of everything in it."""
        return jsonc.read(text).root

    def has_comments(self, text: str) -> bool:
        """Whether an entry has a comment in it."""
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
        """Return what in the layout of an entry stands in the way of putting it behind the guard."""
        found = [key for key in self.url_keys if key in _keys(self.entry(text))]
        return f"it has more than one url: {' and '.join(found)}" if len(found) > 1 else None

    # ── writing ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def written(self, word: str) -> str:
        """Return *word* as a string of the file: in plain letters, but for what has no UTF-8."""
        return written(word)

    def key(self, name: str) -> str:
        """Return *name* as a key."""
        return f'"{name}"'

    def pair(self, name: str, value: str) -> str:
        """Return a header as a member of an object."""
        return f"{self.written(name)}: {self.written(value)}"

    def added(self, text: str, after: Member, name: str, value: str) -> Edit:
        """Return the edit that puts another member *after* one, in its style."""
        end = after.value.end
        return Edit(end, end, f',{gap(text, after.key.start)}"{name}": {value}')

    def removed(self, text: str, entry: Object, member: Member) -> Edit:  # noqa: ARG002 - TOML looks at the text
        """Return the edit that takes *member* out."""
        at = entry.members.index(member)
        if at:
            return Edit(entry.members[at - 1].value.end, member.value.end, "")
        return Edit(member.key.start, entry.members[1].key.start, "")

    def laid_out(self, text: str, before: Node, within: list[int], lines: list[str], brackets: str) -> Edit:
        """Return *lines* in place of *before*: as lines, if the first thing *within* it begins one, else in one."""
        between = gap(text, within[0]) if within else " "
        begin, end = ("" if each == " " else each for each in (between, gap(text, before.end - 1)))
        joined = f",{between}".join(lines)
        return Edit(before.start, before.end, f"{brackets[0]}{begin}{joined}{end if begin else ''}{brackets[1]}")

    def header_argument(self, text: str, member: Member) -> str:
        """Return a header as an argument, spelt as in the file, with whatever escapes."""
        name, value = member
        return f"{text[name.start : name.end - 1]}: {text[value.start + 1 : value.end]}"

    def credentials(self, entry: Object) -> tuple[list[str], list[Edit]]:  # noqa: ARG002 - Codex has some
        """Return the headers that an entry gets from variables, as arguments, and the edits that pass these on."""
        return [], []

    def restored(self, entry: Object, headers: Pairs) -> tuple[Pairs, list[Edit]]:  # noqa: ARG002 - Codex has some
        """Return *headers* without those of `credentials`, and the edits that undo it."""
        return headers, []

    # ── showing ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def hides(self, comment: str) -> bool:
        """Whether *comment* may be an entry that was commented out, with its secrets."""
        return '"' in comment

    def commented(self, comment: str, shown: str) -> str:
        """Return *shown* as a comment of the same kind as *comment*."""
        return f"// {shown}" if comment.startswith("//") else f"/* {shown} */"


@dataclass(frozen=True)
class Toml(Dialect):
    """``config.toml`` of Codex: one ``[mcp_servers.NAME]`` for each server, with tables of its own below it."""

    headers: str = "http_headers"

    def document(self, text: str) -> toml.TomlDocument:
        try:
            return toml.read(text)
        except toml.TomlError as error:
            raise ConfigError(f"not valid TOML: {error}") from None

    def servers(self, text: str) -> list[Server]:
        document = self.document(text)
        section = document.root.get(_CODEX_SECTION)
        if section is None:
            raise NoServersError(f"no servers: it has no [{_CODEX_SECTION}.NAME]")
        if not isinstance(section.value, Object):
            raise ConfigError(f"no servers: {_CODEX_SECTION} is not a table")
        found = partial(_codex_server, text, document)
        return sorted((found(*member) for member in section.value.members), key=lambda server: server.start)

    def sections(self, root: Object) -> Iterator[tuple[str, Node]]:
        return ((key.value, value) for key, value in root.members if key.value == _CODEX_SECTION)

    def entry(self, text: str) -> Node:
        if not text.startswith("["):
            return toml.inline(text)
        [[_, tables]] = toml.positions(text).root.members
        [[_, entry]] = tables.members if isinstance(tables, Object) else ()
        return entry

    def value(self, text: str) -> Any:
        value = super().value(text)
        entry = self.entry(text)
        if isinstance(entry, Object) and self.credentials(entry)[0]:
            # As other clients write it, so that a host fills it in.
            token = f"Bearer ${{env:{value.pop(_TOKEN)}}}"
            value["headers"] = {**value.get("headers", {}), "Authorization": token}
        return value

    def has_comments(self, text: str) -> bool:
        return text.startswith("[") and bool(toml.positions(text).comments)

    @property
    def url_keys(self) -> tuple[str, ...]:
        return ("url",)

    def trouble(self, text: str) -> str | None:
        entry = self.entry(text)
        found = [entry.get(key) for key in ("url", self.headers)] if isinstance(entry, Object) else []
        url, headers = found or (None, None)
        if url is None or headers is None or text[headers.value.start] == "{":
            return None
        if text[headers.value.start] == "[" and url.value.end < headers.value.start:
            return None
        return f"its {self.headers} are written in a way that assay cannot edit"

    def written(self, word: str) -> str:
        # A string of JSON is one of TOML, but for DEL, which TOML wants escaped.
        return json.dumps(word, ensure_ascii=False).replace("\x7f", "\\u007f")

    def key(self, name: str) -> str:
        return name

    def pair(self, name: str, value: str) -> str:
        return f"{self.written(name)} = {self.written(value)}"

    def added(self, text: str, after: Member, name: str, value: str) -> Edit:
        end, before = after.value.end, gap(text, after.key.start)
        return Edit(end, end, f"{', ' if before == ' ' else before}{name} = {value}")

    def removed(self, text: str, entry: Object, member: Member) -> Edit:
        if text.startswith("{"):
            return super().removed(text, entry, member)
        if text[member.value.start] == "[" and member.key.start > member.value.start:
            # A table of its own, with what is between it and the value before it.
            start = max(each.value.end for each in entry.members if each.value.end <= member.value.start)
            return Edit(start, member.value.end, "")
        return Edit(member.key.start - len(gap(text, member.key.start)), member.value.end, "")

    def laid_out(self, text: str, before: Node, within: list[int], lines: list[str], brackets: str) -> Edit:
        if brackets == "[]":
            return super().laid_out(text, before, within, lines, brackets)
        # An inline table has no line ends in it.
        return Edit(before.start, before.end, f"{{ {', '.join(lines)} }}")

    def header_argument(self, text: str, member: Member) -> str:  # noqa: ARG002 - names may have no quotes here
        return self.written(f"{member.key.value}: {plain(member.value)}")

    def credentials(self, entry: Object) -> tuple[list[str], list[Edit]]:
        token = entry.get(_TOKEN)
        name = plain(token.value) if token is not None else None
        if token is None or not isinstance(name, str) or not _VARIABLE.fullmatch(name):
            return [], []
        if entry.get(_PASSED_ON) or "authorization" in map(str.lower, _keys(entry).get(self.headers, {})):
            return [], []
        edits = [
            Edit(token.key.start, token.key.end, _PASSED_ON),
            Edit(token.value.start, token.value.end, f"[{self.written(name)}]"),
        ]
        return [self.written(f"Authorization: Bearer env:{name}")], edits

    def restored(self, entry: Object, headers: Pairs) -> tuple[Pairs, list[Edit]]:
        passed_on = entry.get(_PASSED_ON)
        names = plain(passed_on.value) if passed_on is not None else None
        header = ("Authorization", f"Bearer env:{names[0]}") if isinstance(names, list) and len(names) == 1 else None
        if passed_on is None or names is None or header not in headers:
            return headers, []
        edits = [
            Edit(passed_on.key.start, passed_on.key.end, _TOKEN),
            Edit(passed_on.value.start, passed_on.value.end, self.written(names[0])),
        ]
        return tuple(each for each in headers if each != header), edits

    def hides(self, comment: str) -> bool:
        return any(sign in comment for sign in "\"'=")

    def commented(self, comment: str, shown: str) -> str:  # noqa: ARG002 - there is one kind
        return f"# {shown}"


JSON: Final = Dialect()
WINDSURF: Final = Dialect(url="serverUrl")
GEMINI: Final = Dialect(url="httpUrl", sse="url", has_type=False)
"""Its `httpUrl` is streamable HTTP, its `url` HTTP+SSE; a `type` is `http` or `sse`, and in older versions unknown."""
CODEX: Final = Toml()


def dialect_of(name: str) -> Dialect:
    """Return the dialect of the file called *name*, by its path."""
    *folders, file = re.split(r"[\\/]", name)
    if file.lower().endswith(".toml"):
        return CODEX
    if folders[-1:] == [".gemini"]:
        return GEMINI
    return WINDSURF if folders[-1:] == ["windsurf"] else JSON


# ── pieces ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def written(word: str) -> str:
    """Return *word* as a JSON string: in plain letters, but for what has no UTF-8."""
    plainly = json.dumps(word, ensure_ascii=False)
    return plainly if plainly.encode(errors="ignore").decode() == plainly else json.dumps(word)


def gap(text: str, at: int) -> str:
    """Return what goes between two things in the style of the one *at*: the start of its line, if it is first there."""
    start = _LINE_START.search(text, 0, at)
    return start[0] if start else " "


def _keys(entry: Node) -> Mapping[str, Any]:
    value = plain(entry)
    return value if isinstance(value, dict) else {}


def _servers(text: str, section: str, value: Node) -> list[Server]:
    if not isinstance(value, Object):
        raise ConfigError(f"no servers: {section} is not an object")
    return [
        Server(section, key.value, entry.start, entry.end, text[entry.start : entry.end])
        for key, entry in value.members
    ]


def _of_projects(projects: Object) -> Iterator[tuple[str, Node]]:
    for path, project in projects.members:
        found = project.get(SECTIONS[0]) if isinstance(project, Object) else None
        if found is not None:
            yield f"{_PROJECTS}/{path.value}", found.value


def _codex_server(text: str, document: toml.TomlDocument, key: jsonc.Scalar, value: Node) -> Server:
    numbers = [at for at, table in enumerate(document.tables) if table.path[:2] == (_CODEX_SECTION, key.value)]
    if numbers and isinstance(value, Object):
        start, end = document.tables[numbers[0]].start, document.tables[numbers[-1]].end
        together = numbers[-1] - numbers[0] < len(numbers)
        trouble = "" if together else "its tables are not next to each other in the file, and assay cannot edit that"
        return Server(_CODEX_SECTION, key.value, start, end, text[start:end], trouble)
    trouble = "" if text[value.start] == "{" else "it is not written as a table, and assay cannot edit that"
    return Server(_CODEX_SECTION, key.value, value.start, value.end, text[value.start : value.end], trouble)
