"""
Put the guard in front of the server in one entry of a client's configuration, or remove it. Text in, text out, no I/O.

Only these members change: `command`, `args` and `type`, which every client reads, and for a server at a URL the members
that become them. No member is added that a client might not know and reject.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Final

from assay.cli.clients.dialect import PASSED_ON, TOKEN, ServerEntry, written
from assay.cli.clients.jsonc import Array

NAME: Final = "--name"
_ORDER: Final = (NAME, "--mode", "--journal", "--lock")
"""Options that `assay wrap` writes, in the order in which it writes them."""

_PROGRAMS: Final = frozenset({"assay", "assay.exe"})


def is_program(name: object) -> bool:
    """Whether *name* looks like a path of assay, on any platform. Another program may have the same name."""
    return isinstance(name, str) and re.split(r"[\\/]", name)[-1].lower() in _PROGRAMS


def starts_guard(entry: ServerEntry) -> bool:
    """Whether *entry* starts a guard in any way, `uvx assay guard` included."""
    value = entry.written
    args = value.get("args") if isinstance(value, dict) else None
    words = [value["command"], *args] if isinstance(args, list) and "command" in value else []
    return any(is_program(word) and following == "guard" for word, following in pairwise(words))


@dataclass(frozen=True, slots=True)
class GuardCommand:
    """The command of a guard in an entry."""

    program: str
    """The program as written in the file, quotes included."""
    options: tuple[str, ...] = ()
    """The options of the guard, without those that name the server."""

    def value(self, option: str) -> str | None:
        """Return the value of *option*; None if it is not given."""
        words = iter(self.options)
        for word in words:
            name, equals, value = word.partition("=")
            if name == option:
                return value if equals else next(words, "")
        return None

    def with_options(self, wanted: Mapping[str, str]) -> "GuardCommand":
        """Return the same guard with other values for the options in *wanted*."""
        given = list(self.options)
        for option, value in wanted.items():
            at = next((at for at, word in enumerate(given) if word.partition("=")[0] == option), None)
            if at is not None and given[at] != option:
                given[at] = f"{option}={value}"
            elif at is not None:
                given[at : at + 2] = [option, value]
            else:
                before = _ORDER[: _ORDER.index(option)]
                ends = (at + 2 - ("=" in word) for at, word in enumerate(given) if word.partition("=")[0] in before)
                at = max(ends, default=0)
                given[at:at] = [option, value]
        return replace(self, options=tuple(given))


@dataclass(frozen=True, slots=True)
class Guarded:
    """An entry that starts a guard."""

    entry: ServerEntry
    guard: GuardCommand
    first: int | None
    """The index of the server's command among the arguments; None for a server at a URL."""
    url: str = ""
    headers: tuple[tuple[str, str], ...] = ()

    def with_guard(self, guard: GuardCommand) -> str:
        """Return the text of the entry with another *guard*."""
        entry, args, words = self.entry, _args(self.entry), [written(word) for word in ("guard", *guard.options)]
        if self.first is not None:
            words += ['"--"', entry.text_of(args.items[self.first])]
            after = entry.with_front(args, words, instead_of=self.first + 1)
        else:
            after = entry.laid_out(args, _at_url(words, self.url, self.headers), "[]")
        return entry.rewritten({"command": ("command", guard.program), "args": ("args", after)})

    @property
    def bare(self) -> str:
        """The text of the entry without the guard. It equals the original, except that the key of a URL may differ."""
        entry, dialect, args = self.entry, self.entry.dialect, _args(self.entry)
        if self.first is not None:
            command = entry.text_of(args.items[self.first])
            rest = entry.with_front(args, (), instead_of=self.first + 1)
            return entry.rewritten({"command": ("command", command), "args": ("args", rest)})
        headers, names = self.headers, entry.written.get(PASSED_ON)
        changes = {"command": (dialect.url, written(self.url)), **_type(entry, "http")}
        token = ("Authorization", f"Bearer env:{names[0]}") if isinstance(names, list) and len(names) == 1 else None
        if dialect.is_toml and token in headers:
            headers = tuple(each for each in headers if each != token)
            changes[PASSED_ON] = (TOKEN, written(str(names[0])))
        lines = [f"{written(name)}{dialect.sign}{written(value)}" for name, value in headers]
        changes["args"] = (dialect.headers, entry.laid_out(args, lines, "{}")) if lines else None
        return entry.rewritten(changes)


def guarded_in(entry: ServerEntry) -> Guarded | None:
    """Parse the guard in *entry*; None unless it has the form that `guarded` writes."""
    value = entry.written
    if not isinstance(value, dict) or entry.urls or entry.dialect.headers in value:
        return None
    words = value.get("args")
    if not is_program(value.get("command")) or not isinstance(words, list) or words[:1] != ["guard"]:
        return None
    if not all(isinstance(each, str) for each in words):
        return None
    program = entry.text_of(entry["command"].value)
    if "--" in words:
        first = words.index("--") + 1
        return Guarded(entry, GuardCommand(program, tuple(words[1 : first - 1])), first) if words[first:] else None
    options: list[str] = []
    given: dict[str, list[str]] = {"--target": [], "--header": []}
    remaining = iter(words[1:])
    for word in remaining:
        name, equals, text = word.partition("=")
        if name in given:
            given[name].append(text if equals else next(remaining, ""))
        else:
            options.append(word)
    parted = [header.partition(":") for header in given["--header"]]
    headers = tuple((name.strip(), text.strip()) for name, _, text in parted)
    if len(given["--target"]) != 1 or len(dict(headers)) < len(headers):
        return None
    return Guarded(entry, GuardCommand(program, tuple(options)), None, given["--target"][0], headers)


def guarded(entry: ServerEntry, guard: GuardCommand) -> str:
    """Return the text of *entry* with *guard* in front of its server. The entry must have no objection."""
    words = [written(word) for word in ("guard", *guard.options)]
    changes: dict[str, tuple[str, str] | None]
    if "command" in entry.written:
        words += ['"--"', entry.text_of(entry["command"].value)]
        changes = {"command": ("command", guard.program)}
        if "args" not in entry.written:
            return entry.rewritten(changes, "command", f"[{', '.join(words)}]")
        return entry.rewritten({**changes, "args": ("args", entry.with_front(_args(entry), words))})
    # `url` becomes `command` and `headers` become `args`, each in its place, so that nothing else moves.
    [url], key = entry.urls, entry.dialect.headers
    changes = {url: ("command", guard.program), **_type(entry, "stdio")}
    headers = [*entry.written.get(key, {}).items()]
    if entry.token is not None:
        headers.append(("Authorization", f"Bearer env:{entry.token}"))
        changes[TOKEN] = (PASSED_ON, f"[{written(entry.token)}]")
    lines = _at_url(words, entry.written[url], headers)
    if key in entry.written and not entry.is_below(entry[key].value):
        return entry.rewritten({**changes, key: ("args", entry.laid_out(entry[key].value, lines, "[]"))})
    if key in entry.written:
        # A separate TOML table cannot become an array in its place.
        changes[key] = None
    return entry.rewritten(changes, url, f"[{', '.join(lines)}]")


def _at_url(words: list[str], url: str, headers: Iterable[tuple[str, str]]) -> list[str]:
    """Return the arguments of a guard at a URL, as groups that are each on a line if there are several lines."""
    return [
        ", ".join(words),
        f'"--target", {written(url)}',
        *(f'"--header", {written(f"{name}: {value}")}' for name, value in headers),
    ]


def _type(entry: ServerEntry, name: str) -> dict[str, tuple[str, str] | None]:
    """Return the change of the entry's type to *name*, if it has a type."""
    if "type" not in entry.written:
        return {}
    return {"type": ("type", f'"{name}"') if entry.dialect.has_type else None}


def _args(entry: ServerEntry) -> Array:
    args: Any = entry["args"].value
    if not isinstance(args, Array):
        raise TypeError("args are an array")
    return args
