"""
The dialect of Codex: TOML, edited in place. Text in, text out, no I/O.

`tomllib` decides what a text means (see `assay.cli.clients.toml`).
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from assay.cli.clients import jsonc, toml
from assay.cli.clients.dialect import ConfigError, Dialect, NoServersError, Pairs, ServerEntry, gap, keys
from assay.cli.clients.jsonc import Member, Node, Object, plain
from assay.ladder.spots import Edit

_SECTION: Final = "mcp_servers"
_TOKEN: Final = "bearer_token_env_var"  # noqa: S105 - the name of a key
_PASSED_ON: Final = "env_vars"
"""Codex reads the variable in the first for a URL, and passes those in the second on to a command."""

_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True)
class Toml(Dialect):
    """``config.toml`` of Codex: one ``[mcp_servers.NAME]`` for each server, with tables of its own below it."""

    headers: str = "http_headers"

    def document(self, text: str) -> toml.TomlDocument:
        try:
            return toml.read(text)
        except toml.TomlError as error:
            raise ConfigError(str(error)) from None

    def servers(self, text: str) -> list[ServerEntry]:
        document = self.document(text)
        section = document.root.get(_SECTION)
        if section is None:
            raise NoServersError(f"no servers: it has no [{_SECTION}.NAME]")
        if not isinstance(section.value, Object):
            raise ConfigError(f"no servers: {_SECTION} is not a table")
        found = partial(_server, text, document)
        return sorted((found(*member) for member in section.value.members), key=lambda server: server.start)

    def sections(self, root: Object) -> Iterator[tuple[str, Node]]:
        return ((key.value, value) for key, value in root.members if key.value == _SECTION)

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
            # In the form of other clients, so that the variable is filled in the same way.
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
        # A JSON string is a TOML string, except for DEL, which TOML requires escaped.
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
            # A separate table, with the text between it and the value before it.
            start = max(each.value.end for each in entry.members if each.value.end <= member.value.start)
            return Edit(start, member.value.end, "")
        return Edit(member.key.start - len(gap(text, member.key.start)), member.value.end, "")

    def laid_out(self, text: str, before: Node, within: list[int], lines: list[str], brackets: str) -> Edit:
        if brackets == "[]":
            return super().laid_out(text, before, within, lines, brackets)
        # An inline table has no line breaks.
        return Edit(before.start, before.end, f"{{ {', '.join(lines)} }}")

    def header_argument(self, text: str, member: Member) -> str:  # noqa: ARG002 - names may have no quotes here
        return self.written(f"{member.key.value}: {plain(member.value)}")

    def credentials(self, entry: Object) -> tuple[list[str], list[Edit]]:
        token = entry.get(_TOKEN)
        name = plain(token.value) if token is not None else None
        if token is None or not isinstance(name, str) or not _VARIABLE.fullmatch(name):
            return [], []
        if entry.get(_PASSED_ON) or "authorization" in map(str.lower, keys(entry).get(self.headers, {})):
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


def _server(text: str, document: toml.TomlDocument, key: jsonc.Scalar, value: Node) -> ServerEntry:
    numbers = [at for at, table in enumerate(document.tables) if table.path[:2] == (_SECTION, key.value)]
    if numbers and isinstance(value, Object):
        start, end = document.tables[numbers[0]].start, document.tables[numbers[-1]].end
        together = numbers[-1] - numbers[0] < len(numbers)
        trouble = "" if together else "its tables are not next to each other in the file, and assay cannot edit that"
        return ServerEntry(_SECTION, key.value, start, end, text[start:end], trouble)
    trouble = "" if text[value.start] == "{" else "it is not written as a table, and assay cannot edit that"
    return ServerEntry(_SECTION, key.value, value.start, value.end, text[value.start : value.end], trouble)
