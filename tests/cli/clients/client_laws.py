"""Configurations of every shape: spaces, comments, escapes and commas wherever a person could put them."""

import json
import re
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

SECRET = "s3cr3t"  # noqa: S105 - it keeps none
"""Stands in every value of a variable and of a header, and nowhere else."""

_GAPS = (
    "", "", "", " ", " ", "\n", "\n  ", "\r\n\t", "\r", "  ", "/**/", " /* a\n, } ] */ ", "// c\n",
    ' // { "x": 1,\r\n  ', "//\n//\n",
)  # fmt: skip

_WORDS = (
    "npx",
    "-y",
    "--",
    "guard",
    "--mode",
    "@scope/pkg",
    "${workspaceFolder}/a b",
    "",
    "é漢🙂",
    '"\\/',
    "a\nb",
    "//",
    "/*",
)
_NAMES = ("x", "a b", "files", "", "é", "assay", 'quo"te')

Pairs = list[tuple[str, Any]]


class Writer:
    """Writes values as a person with no manners would."""

    def __init__(self, draw: Callable[[st.SearchStrategy[Any]], Any]) -> None:
        self._draw = draw

    def gap(self) -> str:
        gap: str = self._draw(st.sampled_from(_GAPS))
        return gap

    def string(self, text: str) -> str:
        """*text* with some of its characters escaped that need not be."""
        loud = self._draw(st.integers(0, 7)) == 0
        return '"' + "".join(_escaped(each, loud) for each in text) + '"'

    def value(self, value: Any) -> str:
        """Lists of pairs are objects, tuples arrays, strings strings; anything else is written as it is."""
        if isinstance(value, str):
            return self.string(value)
        if isinstance(value, list):
            members = [f"{self.string(name)}{self.gap()}:{self.gap()}{self.value(each)}" for name, each in value]
            return self._inside("{", members, "}")
        if isinstance(value, tuple):
            return self._inside("[", [self.value(each) for each in value], "]")
        return str(value["raw"])

    def _inside(self, opening: str, parts: list[str], closing: str) -> str:
        comma = "," if parts and self._draw(st.booleans()) else ""
        joined = ",".join(f"{self.gap()}{part}{self.gap()}" for part in parts)
        return f"{opening}{joined or self.gap()}{comma}{self.gap() if comma else ''}{closing}"


def _escaped(character: str, loud: bool) -> str:
    if character in '"\\' or character < " " or (loud and character.isascii()):
        return f"\\u{ord(character):04x}"
    return character


_words = st.sampled_from(_WORDS)
_secrets = _words.map(lambda word: f"{SECRET}{word}".replace("\n", "."))
_header_names = st.sampled_from(("Authorization", "X-Key", "x", "~"))

_others: st.SearchStrategy[tuple[str, Any]] = st.sampled_from((
    ("cwd", "${workspaceFolder}"), ("timeout", {"raw": "-1.5e3"}), ("disabled", {"raw": "false"}),
    ("autoApprove", ("a", "b")), ("dev", [("watch", "src/**")]), ("envFile", ".env"), ("note", {"raw": "null"}),
))  # fmt: skip


@st.composite
def _commands(draw: st.DrawFn) -> Pairs:
    entry: Pairs = [("command", draw(_words.filter(bool)))]
    if draw(st.booleans()):
        entry.append(("args", tuple(draw(st.lists(_words, max_size=3)))))
    if draw(st.booleans()):
        entry.append(("type", "stdio"))
    if draw(st.booleans()):
        entry.append(("env", [(f"A{n}", value) for n, value in enumerate(draw(st.lists(_secrets, max_size=2)))]))
    return entry


@st.composite
def _urls(draw: st.DrawFn) -> Pairs:
    entry: Pairs = [
        ("url", draw(st.sampled_from(("http://localhost:1/mcp", "https://é.example/?a=%20", "${input:u}"))))
    ]
    if draw(st.booleans()):
        names = draw(st.lists(_header_names, max_size=2, unique=True))
        entry.append(("headers", [(name, draw(_secrets)) for name in names]))
    if draw(st.booleans()):
        entry.append(("type", draw(st.sampled_from(("http", "streamable-http", "streamableHttp")))))
    return entry


_left: st.SearchStrategy[Pairs] = st.sampled_from((
    [], [("type", "sse"), ("url", "http://a/sse")], [("command", "a"), ("disabled", {"raw": "true"})],
    [("serverUrl", "http://a"), ("url", "http://b")], [("command", {"raw": "1"})], [("url", "https://a.example/mcp")],
))  # fmt: skip


@st.composite
def _entries(draw: st.DrawFn) -> Pairs:
    entry = draw(st.one_of(_commands(), _commands(), _urls(), _left))
    for other in draw(st.lists(_others, max_size=2, unique_by=lambda pair: pair[0])):
        if other[0] not in dict(entry):
            entry = [*entry, other]
    return list(draw(st.permutations(entry)))


@st.composite
def configurations(draw: st.DrawFn) -> str:
    """A file with a server or more, of which none runs behind the guard."""
    writer = Writer(draw)
    names = draw(st.lists(st.sampled_from(_NAMES), min_size=1, max_size=3, unique=True))
    section = draw(st.sampled_from(("mcpServers", "servers")))
    members: Pairs = [(section, [(name, draw(_entries())) for name in names])]
    if draw(st.booleans()):
        members.insert(draw(st.integers(0, 1)), ("inputs", ([("id", "u"), ("password", {"raw": "true"})],)))
    mark = "\ufeff" if draw(st.integers(0, 7)) == 0 else ""
    return f"{mark}{writer.gap()}{writer.value(members)}{writer.gap()}"


# ── the TOML of Codex ────────────────────────────────────────────────────────────────────────────────────────────────

_TOML_WORDS = ("npx", "-y", "--", "guard", "", "é漢🙂", '"\\/', "a\nb", "#", "[x]", "it's", "\x7f", "'''", '"""')
_ENDS = ("\n", "\n", " # c\n", "  \n\n", "\n# [mcp_servers.no]\n", " # it's\n")


class TomlWriter:
    """Writes the same value in every way that TOML has for it."""

    def __init__(self, draw: Callable[[st.SearchStrategy[Any]], Any]) -> None:
        self._draw = draw

    def pick(self, *choices: str) -> str:
        choice: str = self._draw(st.sampled_from(choices))
        return choice

    def string(self, text: str) -> str:
        basic = json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
        ways = [basic, f'""{basic}""', '"' + "".join(f"\\U{ord(each):08x}" for each in text) + '"']
        if text.isprintable() and "'" not in text:
            ways += [f"'{text}'", f"'''\n{text}'''"]
        return self.pick(*ways)

    def key(self, name: str) -> str:
        return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name, ensure_ascii=False)

    def array(self, words: list[str]) -> str:
        between = self.pick(",", ", ", ",\n  ", ", # c\n\t")
        comma = self.pick("", ",", " ,\n") if words else ""
        return f"[{self.pick('', ' ', chr(10))}{between.join(map(self.string, words))}{comma}]"

    def inline(self, pairs: Pairs) -> str:
        return "{ " + ", ".join(f"{self.key(name)} = {self.string(value)}" for name, value in pairs) + " }"

    def line(self, name: str, value: str) -> str:
        return f"{self.pick('', '  ', chr(9))}{name}{self.pick(' = ', '=')}{value}{self.pick(*_ENDS)}"


@st.composite
def _codex_entry(draw: st.DrawFn, name: str) -> str:
    writer = TomlWriter(draw)
    words = st.sampled_from(_TOML_WORDS)
    header = f"mcp_servers.{writer.key(name)}"
    secrets = [(f"A{n}", SECRET + each) for n, each in enumerate(draw(st.lists(st.sampled_from("abc"), max_size=2)))]
    key = writer.pick("env", "env", "http_headers")
    if key == "env":
        own = [writer.line("command", writer.string(draw(words.filter(bool))))]
        if draw(st.booleans()):
            own.append(writer.line("args", writer.array(draw(st.lists(words, max_size=3)))))
    else:
        own = [writer.line("url", writer.string(writer.pick("http://localhost:1/mcp", "https://a.example/mcp")))]
    own.append(writer.line("tool_timeout_sec", writer.pick("1.5", "60", "1_000")))
    below, in_line = "", draw(st.booleans())
    if secrets and in_line:
        own.append(writer.line(key, writer.inline(secrets)))
    elif secrets:
        lines = "".join(writer.line(each, writer.string(value)) for each, value in secrets)
        below = f"[{header}.{key}]{writer.pick(*_ENDS)}{lines}"
    return f"[{header}]{writer.pick(*_ENDS)}{''.join(draw(st.permutations(own)))}{below}"


_codex_names = st.sampled_from(("x", "a b", "é", "files", 'quo"te', "a.b"))
_before_servers = ("", 'model = "gpt" # c\n', "[a]\nb = [1, {c = 1979-05-27 07:32:00}]\n", "x = nan\n\n")
_after_servers = ("", "[projects.'/a']\nb = 1\n", "[[list]]\nb = 1\n[[list]]\n", "# the end")


@st.composite
def codex_configurations(draw: st.DrawFn) -> str:
    """A ``config.toml`` with a server or more, of which none runs behind the guard."""
    names = draw(st.lists(_codex_names, min_size=1, max_size=3, unique=True))
    before, after = draw(st.sampled_from(_before_servers)), draw(st.sampled_from(_after_servers))
    text = before + "".join(draw(_codex_entry(name)) for name in names) + after
    mark = "\ufeff" if draw(st.integers(0, 7)) == 0 else ""
    return mark + (text.replace("\n", "\r\n") if draw(st.booleans()) else text)
