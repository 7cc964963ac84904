"""
How MCP clients write their configuration: JSON with comments, and TOML for Codex. Text in, text out, no I/O.

The clients agree on `command`, `args` and `env`. They differ in where the servers are, and in the keys of a URL and its
headers. A file is parsed into nodes with positions, so that an entry is edited in place.
"""

import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from assay.cli.clients.parsing import ConfigError, Document, Node, read_json, read_toml
from assay.judge.text_edit import Edit, edited

_PROJECTS: Final = "projects"
"""Claude Code keeps the servers of one project in ``~/.claude.json``, at ``projects.PATH.mcpServers``."""

TOKEN: Final = "bearer_token_env_var"  # noqa: S105 - the name of a key
PASSED_ON: Final = "env_vars"
"""Codex reads the variable in the first for a URL, and passes those in the second on to a command."""

_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class NoServersError(ConfigError):
    """The file is valid, but has no servers."""


@dataclass(frozen=True)
class Dialect:
    """How a client writes the entries of its servers."""

    sections: tuple[str, ...] = ("mcpServers", "servers", "context_servers")
    """Keys of the object with the servers: VS Code uses the second, Zed the third, all other JSON clients the first."""
    urls: tuple[str, ...] = ("url", "serverUrl", "httpUrl")
    """Keys of a URL."""
    url: str = "url"
    """The key to use for a URL if the backup does not have the original key."""
    sse: str = ""
    """The key of an HTTP+SSE URL in an entry without a type."""
    has_type: bool = True
    """Whether an entry with a command may have ``"type": "stdio"``."""
    headers: str = "headers"
    is_toml: bool = False

    def document(self, text: str) -> Document:
        """Parse a file into a value with positions. Raises `ConfigError`."""
        return read_toml(text) if self.is_toml else read_json(text)

    def servers_in(self, root: Node) -> Iterator[tuple[str, Node]]:
        """Yield each object with servers, with a name that is unique in the file."""
        for key, (_, value) in root.members.items():
            if key in self.sections:
                yield key, value
            for path, (_, project) in value.members.items() if key == _PROJECTS else ():
                if self.sections[0] in project.members:
                    yield f"{_PROJECTS}/{path}", project.members[self.sections[0]].value

    def servers(self, text: str) -> list["ServerEntry"]:
        """Return the servers of a configuration, in the order of its *text*. Raises `ConfigError`."""
        document = self.document(text)
        if not isinstance(document.root.value, dict):
            raise ConfigError("not a client's configuration: expected an object")
        found: list[ServerEntry] = []
        sections = list(self.servers_in(document.root))
        for section, value in sections:
            if not isinstance(value.value, dict):
                raise ConfigError(f"no servers: {section} is not {'a table' if self.is_toml else 'an object'}")
            for name, (_, node) in value.members.items():
                start, end, trouble = node.start, node.end, ""
                if self.is_toml:
                    start, end, trouble = _place(text, document, (section, name), node)
                commented = any(start < at < end for at, _ in document.comments)
                found.append(ServerEntry(self, section, name, text, node, start, end, commented, trouble))
        if not sections:
            keys = f"{', '.join(self.sections[:-1])} or {self.sections[-1]}"
            raise NoServersError(f"no servers: it has no {f'[{self.sections[0]}.NAME]' if self.is_toml else keys}")
        return sorted(found, key=lambda server: server.start)


JSON: Final = Dialect()
WINDSURF: Final = Dialect(url="serverUrl")
GEMINI: Final = Dialect(url="httpUrl", sse="url", has_type=False)
"""Its `httpUrl` is streamable HTTP, its `url` HTTP+SSE; a `type` is `http` or `sse`, and in older versions unknown."""
CODEX: Final = Dialect(("mcp_servers",), ("url",), headers="http_headers", is_toml=True)


def dialect_of(name: str) -> Dialect:
    """Return the dialect of the file called *name*, by its path."""
    *folders, file = re.split(r"[\\/]", name)
    if file.lower().endswith(".toml"):
        return CODEX
    return {".gemini": GEMINI, "windsurf": WINDSURF}.get(folders[-1] if folders else "", JSON)


def _place(text: str, document: Document, path: tuple[str, str], node: Node) -> tuple[int, int, str]:
    """Return where an entry in TOML starts and ends, and why it cannot be edited; empty if it can."""
    own = {at: table for at, table in enumerate(document.tables) if table.path[:2] == path}
    tables = [table.node for table in own.values()] or [node]
    start, end = tables[0].start, tables[-1].end
    # A dotted key can add to a table that has a header elsewhere.
    dotted = text[start] not in "{[" or any(not start <= key.start <= end for key, _ in node.members.values())
    if dotted or not isinstance(node.value, dict):
        return start, end, "it is not written as a table, and assay cannot edit that"
    if own and max(own) - min(own) >= len(own):
        return start, end, "its tables are not next to each other in the file, and assay cannot edit that"
    return start, end, ""


# ── one entry ────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class ServerEntry:
    """One server of a configuration, and where it is."""

    dialect: Dialect
    section: str
    name: str
    source: str = field(repr=False)
    """The text of the file."""
    node: Node = field(repr=False)
    start: int
    end: int
    has_comments: bool
    trouble: str
    """Why the entry cannot be edited in place; empty if it can."""

    @property
    def text(self) -> str:
        """The text of the entry."""
        return self.source[self.start : self.end]

    @property
    def project(self) -> str | None:
        """The folder of the project that the server is for; None if it is for all projects."""
        section, slash, path = self.section.partition("/")
        return path if slash and section == _PROJECTS else None

    @property
    def label(self) -> str:
        """The name for messages, with the project if the file has several."""
        return self.name if self.project is None else f"{self.name} (project {self.project})"

    @cached_property
    def written(self) -> Any:
        """The value of the entry, with the keys of the file."""
        return self.node.plain

    @cached_property
    def value(self) -> Any:
        """The value of the entry with the keys that most clients use: `url`, `headers`."""
        if not isinstance(self.written, dict):
            return self.written
        value, dialect = dict(self.written), self.dialect
        if dialect.sse and dialect.sse in value and "type" not in value:
            value["type"] = "sse"
        if len(self.urls) == 1:
            value["url"] = value.pop(self.urls[0])
        if dialect.headers in value:
            value["headers"] = value.pop(dialect.headers)
        if self.token is not None:
            # In the form of other clients, so that the variable is filled in the same way.
            value["headers"] = {**value.get("headers", {}), "Authorization": f"Bearer ${{env:{value.pop(TOKEN)}}}"}
        return value

    @property
    def urls(self) -> list[str]:
        """The keys of URLs in the entry."""
        return [key for key in self.dialect.urls if key in self.node.members]

    @property
    def token(self) -> str | None:
        """The variable with the token that Codex adds to requests; None if the guard cannot add it instead."""
        if not self.dialect.is_toml or not self.urls or PASSED_ON in self.written:
            return None
        name, headers = self.written.get(TOKEN), self.written.get(self.dialect.headers, {})
        known = isinstance(name, str) and _VARIABLE.fullmatch(name) and isinstance(headers, dict)
        return name if known and "authorization" not in map(str.lower, headers) else None

    @property
    def unwritable(self) -> str | None:
        """Why the layout of the entry prevents putting it behind the guard; None if nothing does."""
        if len(self.urls) > 1:
            return f"it has more than one url: {' and '.join(self.urls)}"
        members, key = self.node.members, self.dialect.headers
        if not self.dialect.is_toml or not self.urls or key not in members:
            return None
        start = members[key].value.start
        is_later_table = self.source[start] == "[" and members[self.urls[0]].value.end < start
        if self.source[start] == "{" or is_later_table:
            return None
        return f"its {key} are written in a way that assay cannot edit"

    def text_of(self, node: Node) -> str:
        """Return the text of *node*."""
        return self.source[node.start : node.end]

    def rewritten(self, changes: Mapping[str, Mapping[str, str]]) -> str:
        """
        Return the text of the entry with other members.

        *changes* has, by key, the members that take the place of that one: their keys, and the texts of their values.
        """
        own, dialect = list(self.node.members.values()), self.dialect
        edits: list[Edit] = []
        for number, (key, value) in enumerate(own):
            if key.value not in changes:
                continue
            before = gap(self.source, key.start)
            new = [(name if dialect.is_toml else f'"{name}"', text) for name, text in changes[key.value].items()]
            if new:
                if key.value not in changes[key.value]:
                    edits.append(Edit(key.start, key.end, new[0][0]))
                # In a `[table]` each member is on a line of its own.
                comma, sign = "" if self._is_table else ",", " = " if dialect.is_toml else ": "
                added = "".join(f"{comma}{before}{name}{sign}{text}" for name, text in new[1:])
                edits.append(Edit(value.start, value.end, new[0][1] + added))
            elif self.is_below(value):
                # A table of its own, with the text between it and the value before it.
                edits.append(Edit(max(each.value.end for each in own if each.value.end <= value.start), value.end, ""))
            elif self._is_table:
                edits.append(Edit(key.start - len(before), value.end, ""))
            elif all(not changes.get(each.key.value, True) for each in own[:number]):
                edits.append(Edit(key.start, own[number + 1].key.start, ""))
            else:
                edits.append(Edit(own[number - 1].value.end, value.end, ""))
        return edited(self.text, (Edit(start - self.start, end - self.start, text) for start, end, text in edits))

    @property
    def _is_table(self) -> bool:
        return self.source[self.start] == "["

    def is_below(self, value: Node) -> bool:
        """Whether *value* is a TOML table of its own, below the entry."""
        return isinstance(value.value, dict) and self.source[value.start] == "["

    def with_front(self, array: Node, words: Sequence[str], instead_of: int = 0) -> str:
        """Return the text of *array* with *words* in place of its first items."""
        items = array.items
        first = items[0].start if items else array.start + 1
        rest = items[instead_of].start if len(items) > instead_of else array.tail
        between = f",{gap(self.source, first)}" if words and len(items) > instead_of else ""
        return f"{self.source[array.start : first]}{', '.join(words)}{between}{self.source[rest : array.end]}"

    def laid_out(self, like: Node, lines: Sequence[str], brackets: str) -> str:
        """Return *lines* in *brackets*: one below the other if *like*, which they replace, is written that way."""
        if self.dialect.is_toml and brackets == "{}":
            # An inline table has no line breaks.
            return f"{{ {', '.join(lines)} }}"
        inside = like.items or [key for key, _ in like.members.values()]
        between = gap(self.source, inside[0].start) if inside else " "
        begin, end = ("" if each == " " else each for each in (between, gap(self.source, like.end - 1)))
        return f"{brackets[0]}{begin}{f',{between}'.join(lines)}{end if begin else ''}{brackets[1]}"

    def parsed(self, text: str) -> Any:
        """Return the value of *text*, another text for this entry."""
        if not self.dialect.is_toml:
            return read_json(text).root.plain
        return tomllib.loads(text)[self.section][self.name] if self._is_table else tomllib.loads(f"x = {text}")["x"]


def written(word: str) -> str:
    """Return *word* as a string of JSON and of TOML, unescaped except where it must not be."""
    # TOML has no raw DEL, and UTF-8 no surrogates.
    plainly = json.dumps(word, ensure_ascii=False).replace("\x7f", "\\u007f")
    return plainly if plainly.encode(errors="ignore").decode() == plainly else json.dumps(word)


def gap(text: str, at: int) -> str:
    """Return the separator before a new item: a line break and indent if the item *at* starts a line."""
    start = at
    while start and text[start - 1] in " \t":
        start -= 1
    breaks = next((each for each in ("\r\n", "\r", "\n") if text.endswith(each, 0, start)), None)
    return " " if breaks is None else breaks + text[start:at]
