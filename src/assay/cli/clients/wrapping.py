"""
Put the guard in front of the server in one entry of a client's configuration, or remove it. Text in, text out, no I/O.

Only these members change: `command`, `args` and `type`, which every client reads, and for a server at a URL the members
that become them. No member is added that a client might not know and reject.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Final

from assay.cli.clients.dialect import JSON, Dialect, Pairs, gap, written
from assay.cli.clients.jsonc import Array, Member, Object, plain
from assay.ladder.spots import Edit, edited

__all__ = [
    "NAME",
    "GuardCommand",
    "Guarded",
    "guarded",
    "guarded_in",
    "is_program",
    "program_of",
    "starts_guard",
    "written",
]

NAME: Final = "--name"
_ORDER: Final = (NAME, "--mode", "--journal", "--lock")
"""Options that `assay wrap` writes, in the order in which it writes them."""

_PROGRAMS: Final = frozenset({"assay", "assay.exe"})


@dataclass(frozen=True, slots=True)
class GuardCommand:
    """The command of a guard in an entry."""

    program: str
    """The program as written in the file, quotes included."""
    options: tuple[str, ...] = ()
    """The options of the guard, without those that name the server."""

    def has(self, option: str) -> bool:
        """Whether *option* is given."""
        return any(word == option or word.startswith(f"{option}=") for word in self.options)

    def value(self, option: str) -> str | None:
        """Return the value of *option*; None if it is not given."""
        for at, word in enumerate(self.options):
            if word == option:
                return self.options[at + 1] if at + 1 < len(self.options) else None
            if word.startswith(f"{option}="):
                return word.partition("=")[2]
        return None

    def with_options(self, wanted: Mapping[str, str]) -> "GuardCommand":
        """Return the same guard with other values for the options in *wanted*."""
        guard = self
        for option, value in wanted.items():
            guard = replace(guard, options=_with_option(guard.options, option, value))
        return guard


def _with_option(options: tuple[str, ...], option: str, value: str) -> tuple[str, ...]:
    given = list(options)
    for at, word in enumerate(given):
        if word.startswith(f"{option}="):
            return (*given[:at], f"{option}={value}", *given[at + 1 :])
        if word == option:
            return (*given[:at], option, value, *given[at + 2 :])
    before = _ORDER[: _ORDER.index(option)]
    ends = (at + (1 if "=" in word else 2) for at, word in enumerate(given) if word.partition("=")[0] in before)
    at = max(ends, default=0)
    return (*given[:at], option, value, *given[at:])


@dataclass(frozen=True, slots=True)
class Guarded:
    """An entry that starts a guard."""

    text: str
    entry: Object
    dialect: Dialect
    guard: GuardCommand
    first: int | None
    """The index of the server's command among the arguments; None for a server at a URL."""
    url: str = ""
    headers: Pairs = ()

    @property
    def bare(self) -> str:
        """The entry without the guard. It equals the original, except that the key of a URL may differ."""
        command, args = _member(self.entry, "command"), _member(self.entry, "args")
        edits = self._url(command, args) if self.first is None else self._command(self.first, command, _array(args))
        return edited(self.text, edits)

    def _command(self, first: int, command: Member, args: Array) -> list[Edit]:
        own = args.items[first]
        end = args.items[first + 1].start if len(args.items) > first + 1 else args.tail
        return [
            Edit(command.value.start, command.value.end, self.text[own.start : own.end]),
            Edit(args.items[0].start, end, ""),
        ]

    def _url(self, command: Member, args: Member) -> list[Edit]:
        dialect = self.dialect
        edits = [
            Edit(command.key.start, command.key.end, dialect.key(dialect.url)),
            Edit(command.value.start, command.value.end, dialect.written(self.url)),
            *_type(self.text, self.entry, dialect, "http"),
        ]
        headers, credentials = dialect.restored(self.entry, self.headers)
        edits += credentials
        if not headers:
            return [*edits, dialect.removed(self.text, self.entry, args)]
        lines = [dialect.pair(name, value) for name, value in headers]
        within = [item.start for item in _array(args).items]
        laid_out = dialect.laid_out(self.text, args.value, within, lines, "{}")
        return [*edits, Edit(args.key.start, args.key.end, dialect.key(dialect.headers)), laid_out]


def is_program(name: object) -> bool:
    """Whether *name* looks like a path of assay, on any platform. Another program may have the same name."""
    return isinstance(name, str) and re.split(r"[\\/]", name)[-1].lower() in _PROGRAMS


def starts_guard(text: str, dialect: Dialect = JSON) -> bool:
    """Whether the entry in *text* starts a guard in any way, `uvx assay guard` included."""
    entry = plain(dialect.entry(text))
    args = entry.get("args") if isinstance(entry, dict) else None
    words = [entry["command"], *args] if isinstance(args, list) and "command" in entry else []
    return any(is_program(word) and following == "guard" for word, following in pairwise(words))


def program_of(text: str, dialect: Dialect = JSON) -> tuple[str, Mapping[str, Any]]:
    """Return the command of the entry in *text*, and its environment variables."""
    entry = plain(dialect.entry(text))
    env = entry.get("env")
    return str(entry.get("command")), env if isinstance(env, dict) else {}


def guarded_in(text: str, dialect: Dialect = JSON) -> Guarded | None:
    """Parse the guard in the entry in *text*; None unless it has the form that `guarded` writes."""
    entry = dialect.entry(text)
    if not isinstance(entry, Object) or _url(entry, dialect) or entry.get(dialect.headers):
        return None
    command, args = entry.get("command"), entry.get("args")
    if command is None or args is None or not is_program(plain(command.value)):
        return None
    words = plain(args.value)
    if not _are_texts(words) or words[:1] != ["guard"]:
        return None
    program = text[command.value.start : command.value.end]
    if "--" not in words:
        return _at_url(text, entry, dialect, program, words[1:])
    first = words.index("--") + 1
    guard = GuardCommand(program, tuple(words[1 : first - 1]))
    return Guarded(text, entry, dialect, guard, first) if first < len(words) else None


def _at_url(text: str, entry: Object, dialect: Dialect, program: str, words: list[str]) -> Guarded | None:
    options: list[str] = []
    given: dict[str, list[str]] = {"--target": [], "--header": []}
    remaining = iter(words)
    for word in remaining:
        name, equals, value = word.partition("=")
        if name in given:
            given[name].append(value if equals else next(remaining, ""))
        else:
            options.append(word)
    parted = [header.partition(":") for header in given["--header"]]
    headers = tuple((name.strip(), value.strip()) for name, _, value in parted)
    if len(given["--target"]) != 1 or len(dict(headers)) < len(headers):
        return None
    return Guarded(text, entry, dialect, GuardCommand(program, tuple(options)), None, given["--target"][0], headers)


def guarded(text: str, guard: GuardCommand, dialect: Dialect = JSON) -> str:
    """Return the entry in *text* with *guard* in front of its server. The entry must have no objection."""
    entry = dialect.entry(text)
    if not isinstance(entry, Object):
        raise TypeError("an entry is an object")
    before = _before_command if entry.get("command") else _before_url
    return edited(text, before(text, entry, dialect, guard))


def _before_command(text: str, entry: Object, dialect: Dialect, guard: GuardCommand) -> list[Edit]:
    found = _member(entry, "command")
    command = found.value
    words = ", ".join((*map(dialect.written, ("guard", *guard.options, "--")), text[command.start : command.end]))
    program = Edit(command.start, command.end, guard.program)
    member = entry.get("args")
    if member is None:
        return [program, dialect.added(text, found, "args", f"[{words}]")]
    args = _array(member)
    if not args.items:
        return [program, Edit(args.start + 1, args.start + 1, words)]
    first = args.items[0].start
    return [program, Edit(first, first, f"{words},{gap(text, first)}")]


def _before_url(text: str, entry: Object, dialect: Dialect, guard: GuardCommand) -> list[Edit]:
    """Replace `url` by `command` and `headers` by `args`, each in its place, so that nothing else moves."""
    found = _url(entry, dialect)
    if found is None:
        raise KeyError("url")
    key, url = found
    edits = [
        Edit(key.start, key.end, dialect.key("command")),
        Edit(url.start, url.end, guard.program),
        *_type(text, entry, dialect, "stdio"),
    ]
    lines = [", ".join(map(dialect.written, ("guard", *guard.options))), f'"--target", {text[url.start : url.end]}']
    headers = entry.get(dialect.headers)
    members = headers.value.members if headers is not None and isinstance(headers.value, Object) else ()
    credentials, passed_on = dialect.credentials(entry)
    edits += passed_on
    arguments = [*(dialect.header_argument(text, member) for member in members), *credentials]
    lines += [f'"--header", {argument}' for argument in arguments]
    if headers is None:
        return [*edits, dialect.added(text, found, "args", f"[{', '.join(lines)}]")]
    if headers.key.start > headers.value.start:
        # A separate TOML table cannot become an array in its place.
        args = dialect.added(text, found, "args", f"[{', '.join(lines)}]")
        return [*edits, args, dialect.removed(text, entry, headers)]
    laid_out = dialect.laid_out(text, headers.value, [name.start for name, _ in members], lines, "[]")
    return [*edits, Edit(headers.key.start, headers.key.end, dialect.key("args")), laid_out]


# ── pieces ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _url(entry: Object, dialect: Dialect) -> Member | None:
    """Return the member of *entry* with the URL."""
    return next((found for key in dialect.url_keys if (found := entry.get(key))), None)


def _type(text: str, entry: Object, dialect: Dialect, name: str) -> list[Edit]:
    """Return the edit that sets the type of the entry to *name*, if it has a type."""
    member = entry.get("type")
    if member is None:
        return []
    if not dialect.has_type:
        return [dialect.removed(text, entry, member)]
    return [Edit(member.value.start, member.value.end, f'"{name}"')]


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


def _array(member: Member) -> Array:
    if not isinstance(member.value, Array):
        raise TypeError("args are an array")
    return member.value


def _member(entry: Object, name: str) -> Member:
    member = entry.get(name)
    if member is None:
        raise KeyError(name)
    return member
