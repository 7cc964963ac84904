"""
One entry of a client's configuration, with the guard in front of its server and without. Text in, text out, no I/O.

Only what has to change is written anew: the members that every client reads (`command`, `args`, `type`) and, for a
server at a URL, those that become them. Nothing is added that a client might not know, so that none can object to it.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Final, Literal

from assay.clients.jsonc import Array, Edit, Member, Node, Object, edited, plain, read

Mode = Literal["audit", "enforce"]

_PROGRAMS: Final = frozenset({"assay", "assay.exe"})
_LINE_START: Final = re.compile(r"(?:\r\n|\r|\n)[ \t]*\Z")


@dataclass(frozen=True, slots=True)
class Guard:
    """How the guard is started."""

    program: str
    """As it is written: a JSON string."""
    options: tuple[str, ...] = ()
    """The guard's own, without what names the server."""

    def with_mode(self, mode: Mode | None) -> "Guard":
        """The same guard in *mode*; None leaves it as it is."""
        if mode is None:
            return self
        options = list(self.options)
        for at, option in enumerate(options):
            if option.startswith("--mode="):
                options[at] = f"--mode={mode}"
                break
            if option == "--mode" and at + 1 < len(options):
                options[at + 1] = mode
                break
        else:
            options = ["--mode", mode, *options]
        return replace(self, options=tuple(options))


@dataclass(frozen=True, slots=True)
class Guarded:
    """An entry that starts a guard."""

    text: str
    entry: Object
    guard: Guard
    first: int | None
    """Which of the arguments is the server's command; None for a server at a URL."""
    url: str = ""
    headers: tuple[tuple[str, str], ...] = ()

    @property
    def bare(self) -> str:
        """The entry without the guard: as it was, but perhaps for the spelling of one with a URL."""
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
        edits = [
            Edit(command.key.start, command.key.end, '"url"'),
            Edit(command.value.start, command.value.end, written(self.url)),
            *_type(self.entry, "http"),
        ]
        if not self.headers:
            return [*edits, _removal(self.entry, args)]
        lines = [f"{written(name)}: {written(value)}" for name, value in self.headers]
        laid_out = _laid_out(self.text, args.value, [item.start for item in _array(args).items], lines, "{}")
        return [*edits, Edit(args.key.start, args.key.end, '"headers"'), laid_out]


def is_program(name: object) -> bool:
    """Whether *name* ends like a path of this program, on any platform. Any other program can be called that, too."""
    return isinstance(name, str) and re.split(r"[\\/]", name)[-1].lower() in _PROGRAMS


def starts_guard(text: str) -> bool:
    """Whether the entry in *text* starts a guard, in whatever way: `uvx assay guard` and the like count, too."""
    entry = plain(read(text).root)
    args = entry.get("args") if isinstance(entry, dict) else None
    words = [entry["command"], *args] if isinstance(args, list) and "command" in entry else []
    return any(is_program(word) and following == "guard" for word, following in pairwise(words))


def program_of(text: str) -> tuple[str, Mapping[str, Any]]:
    """The command of the entry in *text*, and the variables that it is started with."""
    entry = plain(read(text).root)
    env = entry.get("env")
    return str(entry.get("command")), env if isinstance(env, dict) else {}


def guarded_in(text: str) -> Guarded | None:
    """How the entry in *text* starts the guard; None if it does not, or not in the way that `guarded` writes it."""
    entry = read(text).root
    if not isinstance(entry, Object) or entry.get("url") or entry.get("headers"):
        return None
    command, args = entry.get("command"), entry.get("args")
    if command is None or args is None or not is_program(plain(command.value)):
        return None
    words = plain(args.value)
    if not _are_texts(words) or words[:1] != ["guard"]:
        return None
    program = text[command.value.start : command.value.end]
    if "--" not in words:
        return _at_url(text, entry, program, words[1:])
    first = words.index("--") + 1
    return Guarded(text, entry, Guard(program, tuple(words[1 : first - 1])), first) if first < len(words) else None


def _at_url(text: str, entry: Object, program: str, words: list[str]) -> Guarded | None:
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
    return Guarded(text, entry, Guard(program, tuple(options)), None, given["--target"][0], headers)


def guarded(text: str, guard: Guard) -> str:
    """The entry in *text*, to which there is no objection, with *guard* in front of its server."""
    entry = read(text).root
    if not isinstance(entry, Object):
        raise TypeError("an entry is an object")
    return edited(
        text, _before_command(text, entry, guard) if entry.get("command") else _before_url(text, entry, guard)
    )


def _before_command(text: str, entry: Object, guard: Guard) -> list[Edit]:
    key, command = _member(entry, "command")
    words = ", ".join((*map(written, ("guard", *guard.options, "--")), text[command.start : command.end]))
    program = Edit(command.start, command.end, guard.program)
    member = entry.get("args")
    if member is None:
        return [program, Edit(command.end, command.end, f',{_gap(text, key.start)}"args": [{words}]')]
    args = _array(member)
    if not args.items:
        return [program, Edit(args.start + 1, args.start + 1, words)]
    first = args.items[0].start
    return [program, Edit(first, first, f"{words},{_gap(text, first)}")]


def _before_url(text: str, entry: Object, guard: Guard) -> list[Edit]:
    """`url` becomes `command` and `headers` become `args`, each in its place, so that nothing else has to move."""
    key, url = _member(entry, "url")
    lines = [", ".join(map(written, ("guard", *guard.options))), f'"--target", {text[url.start : url.end]}']
    edits = [Edit(key.start, key.end, '"command"'), Edit(url.start, url.end, guard.program), *_type(entry, "stdio")]
    headers = entry.get("headers")
    if headers is None:
        return [*edits, Edit(url.end, url.end, f',{_gap(text, key.start)}"args": [{", ".join(lines)}]')]
    members = headers.value.members if isinstance(headers.value, Object) else ()
    # As they are spelt, with whatever escapes.
    lines += [
        f'"--header", {text[name.start : name.end - 1]}: {text[value.start + 1 : value.end]}' for name, value in members
    ]
    laid_out = _laid_out(text, headers.value, [name.start for name, _ in members], lines, "[]")
    return [*edits, Edit(headers.key.start, headers.key.end, '"args"'), laid_out]


# ── pieces ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def written(word: str) -> str:
    """*word* as a JSON string: in plain letters, but for what has no UTF-8."""
    plainly = json.dumps(word, ensure_ascii=False)
    return plainly if plainly.encode(errors="ignore").decode() == plainly else json.dumps(word)


def _type(entry: Object, name: str) -> list[Edit]:
    """What makes the entry say that it is of type *name*, if it says anything."""
    member = entry.get("type")
    return [] if member is None else [Edit(member.value.start, member.value.end, f'"{name}"')]


def _removal(entry: Object, member: Member) -> Edit:
    at = entry.members.index(member)
    if at:
        return Edit(entry.members[at - 1].value.end, member.value.end, "")
    return Edit(member.key.start, entry.members[1].key.start, "")


def _laid_out(text: str, before: Node, within: list[int], lines: list[str], brackets: str) -> Edit:
    """*lines* in place of *before*: as lines, if the first thing *within* it begins one, else in one."""
    gap = _gap(text, within[0]) if within else " "
    begin, end = ("" if each == " " else each for each in (gap, _gap(text, before.end - 1)))
    joined = f",{gap}".join(lines)
    return Edit(before.start, before.end, f"{brackets[0]}{begin}{joined}{end if begin else ''}{brackets[1]}")


def _gap(text: str, at: int) -> str:
    """What goes between two things in the style of the one *at*: the start of its line, if it is the first there."""
    start = _LINE_START.search(text, 0, at)
    return start[0] if start else " "


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
