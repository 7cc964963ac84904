"""
Put the guard in front of the server in one entry of a client's configuration, or remove it. Text in, text out, no I/O.

Only these members change: `command`, `args` and `type`, which every client reads, and for a server at a URL the members
that become them. No member is added that a client might not know and reject.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from ipaddress import ip_address
from itertools import pairwise
from typing import Any, Final
from urllib.parse import urlsplit

from assay.cli.clients.dialect import PASSED_ON, TOKEN, ServerEntry, written
from assay.cli.clients.parsing import Node
from assay.cli.options import FROM_ENVIRONMENT
from assay.spec.schema import closest

NAME: Final = "--name"
PAYLOADS: Final = "--set journal.payloads"
"""The option with this setting; others are independent of it."""

_ORDER: Final = (NAME, "--mode", "--journal", PAYLOADS, "--lock")
"""Options that `assay wrap` writes, in the order in which it writes them."""

_PROGRAMS: Final = frozenset({"assay", "assay.exe"})

_STDIO: Final = ("stdio", "local")
_HTTP: Final = ("http", "streamable-http", "streamableHttp", "streamable_http")

_HEADER_NAME: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~][A-Za-z0-9!#$%&'*+.^_`|~-]*")
"""A token (RFC 9110, 5.6.2) without a leading hyphen, which would make it an option."""

_CREDENTIALS: Final = (
    *("auth", "oauth", "headersHelper"),  # Claude Code, Cursor, Gemini CLI
    "authProviderType",  # Gemini CLI
    *("bearer_token", "bearer_token_env_var", "env_http_headers", "scopes", "oauth_resource"),  # Codex
)
"""Members that make a client sign in or add a secret that is not in the file."""

_STEERING: Final = ("ASSAY_", "PYTHON", "LD_", "DYLD_")
"""Prefixes of variables that configure a guard or load other code into its process."""


# ── what can be put behind the guard ─────────────────────────────────────────────────────────────────────────────────


def objection(server: ServerEntry) -> str | None:
    """Return why *server* cannot be put behind the guard; None if it can."""
    entry = server.value
    if not isinstance(entry, dict):
        return "it is not an object"
    if server.unwritable is not None:
        return server.unwritable
    url, command, kind, args = (entry.get(name) for name in ("url", "command", "type", "args"))
    # Without a type, a URL that ends in /sse has that transport by convention.
    by_name = "type" not in entry and isinstance(url, str) and url.partition("?")[0].rstrip("/").endswith("/sse")
    if kind == "sse" or by_name:
        return "it has the HTTP+SSE transport of 2024-11-05, which the guard does not support"
    if "command" in entry and "url" in entry:
        return "it has both a command and a url"
    if "command" not in entry and "url" not in entry:
        meant = ((name, closest(name[:100], ("command", "url"))) for name in entry)
        slip = next((f"; did you mean {close[0]} by {name}?" for name, close in meant if close), "")
        return f"it has neither a command nor a url{slip}"
    if kind is not None and kind not in (_STDIO if "command" in entry else _HTTP):
        return "its type is not that of a server with a command, or of one with a url"
    if "command" in entry and not (isinstance(command, str) and command):
        return "its command is not a string"
    words = isinstance(args, list) and all(isinstance(each, str) for each in args)
    if "args" in entry and not ("command" in entry and words):
        return "its args are not a list of strings for a command"
    # VS Code starts a debugger on the command, which must be node or python (mcpDevMode.ts).
    if isinstance(entry.get("dev"), dict) and entry["dev"].get("debug"):
        return "it has dev.debug, which works on the server's own command only"
    if "command" in entry:
        return None
    if not re.match(r"https?://|\$\{", str(url)):
        return "its url is neither http nor https"
    headers = entry.get("headers", {})
    if not isinstance(headers, dict) or not all(_is_header(name, value) for name, value in headers.items()):
        return "its headers cannot be given on a command line"
    if any(name in entry for name in _CREDENTIALS):
        return "its client signs in to its url, which does not work through the guard"
    return None


def _is_header(name: str, value: Any) -> bool:
    if not _HEADER_NAME.fullmatch(name) or not isinstance(value, str):
        return False
    # The guard would read a value with the prefix env: as the name of a variable.
    return not re.search(r"[\x00-\x1f\x7f]", value) and not FROM_ENVIRONMENT.fullmatch(value.strip())


def hesitation(server: ServerEntry) -> str | None:
    """Return why *server* goes behind the guard only when named with --server; None if it always does."""
    entry = server.value
    if is_disabled(entry):
        return "it is disabled"
    if "url" in entry and not entry.get("headers") and not _is_local(str(entry["url"])):
        return "its client may sign in to its url (OAuth), which does not work through the guard"
    return None


def is_disabled(entry: Mapping[str, Any]) -> bool:
    """Whether *entry* is disabled: Codex and Zed have `enabled`, other clients `disabled`."""
    return entry.get("disabled") is True or entry.get("enabled") is False


def _is_local(url: str) -> bool:
    """Whether *url* is on this machine, where servers need no sign-in."""
    try:
        host = urlsplit(url).hostname or ""
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def advice(server: ServerEntry) -> str | None:
    """Return warnings to show before *server* goes behind the guard."""
    entry = server.value
    env = entry.get("env")
    steering = [name for name in env if name.upper().startswith(_STEERING)] if isinstance(env, dict) else []
    if steering:
        return f"env sets {', '.join(steering[:5])}, which the guard obeys too; check that you want this"
    if server.written.get(server.dialect.headers):
        return "headers become arguments, which others on this machine may see in the list of processes"
    # With a token, for example from a variable, the client does not sign in.
    if str(entry.get("url", "")).startswith("https:") and not entry.get("headers"):
        return "if the client signs in to it (OAuth), that does not work through the guard; assay unwrap undoes it"
    return None


# ── the command of a guard ───────────────────────────────────────────────────────────────────────────────────────────


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
        return next((value for name, value, _, _ in reversed(self._given()) if name == option), None)

    def with_options(self, wanted: Mapping[str, str]) -> "GuardCommand":
        """Return the same guard with other values for the options in *wanted*."""
        guard = self
        for option, value in wanted.items():
            given, words = guard._given(), list(guard.options)
            after = max((end for name, _, _, end in given if name in _ORDER[: _ORDER.index(option)]), default=0)
            # The last of several values counts, as in the guard.
            start, end = next((spot for name, _, *spot in reversed(given) if name == option), (after, after))
            flag, _, setting = option.partition(" ")
            text = f"{setting}={value}" if setting else value
            words[start:end] = [f"{flag}={text}"] if end == start + 1 else [flag, text]
            guard = replace(guard, options=tuple(words))
        return guard

    def _given(self) -> list[tuple[str, str, int, int]]:
        """Return each word that may be an option: its name and value, and where the two start and end."""
        found = []
        for at, (word, following) in enumerate(pairwise((*self.options, ""))):
            name, equals, value = word.partition("=")
            value = value if equals else following
            if name == "--set":
                setting, _, value = value.partition("=")
                name = f"{name} {setting.strip()}"
            found.append((name, value, at, at + (1 if equals else 2)))
        return found


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
        entry, args, words = self.entry, self._args, [written(word) for word in ("guard", *guard.options)]
        if self.first is None:
            after = entry.laid_out(args, _at_url(words, self.url, self.headers), "[]")
        else:
            words += ['"--"', entry.text_of(args.items[self.first])]
            after = entry.with_front(args, words, instead_of=self.first + 1)
        return entry.rewritten({"command": {"command": guard.program}, "args": {"args": after}})

    @property
    def bare(self) -> str:
        """The text of the entry without the guard. It equals the original, except that the key of a URL may differ."""
        entry, dialect, args = self.entry, self.entry.dialect, self._args
        if self.first is not None:
            command = entry.text_of(args.items[self.first])
            rest = entry.with_front(args, (), instead_of=self.first + 1)
            return entry.rewritten({"command": {"command": command}, "args": {"args": rest}})
        headers, names = self.headers, entry.written.get(PASSED_ON)
        changes = {"command": {dialect.url: written(self.url)}, "args": {}, **_type(entry, "http")}
        token = ("Authorization", f"Bearer env:{names[0]}") if isinstance(names, list) and len(names) == 1 else None
        if dialect.is_toml and token in headers:
            headers = tuple(each for each in headers if each != token)
            changes[PASSED_ON] = {TOKEN: written(str(names[0]))}
        if headers:
            sign = " = " if dialect.is_toml else ": "
            lines = [f"{written(name)}{sign}{written(value)}" for name, value in headers]
            changes["args"] = {dialect.headers: entry.laid_out(args, lines, "{}")}
        return entry.rewritten(changes)

    @property
    def _args(self) -> Node:
        return self.entry.node.members["args"].value


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
    program = entry.text_of(entry.node.members["command"].value)
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
    words, members = [written(word) for word in ("guard", *guard.options)], entry.node.members
    if "command" in members:
        words += ['"--"', entry.text_of(members["command"].value)]
        if "args" not in members:
            return entry.rewritten({"command": {"command": guard.program, "args": f"[{', '.join(words)}]"}})
        args = entry.with_front(members["args"].value, words)
        return entry.rewritten({"command": {"command": guard.program}, "args": {"args": args}})
    # `url` becomes `command` and `headers` become `args`, each in its place, so that nothing else moves.
    [url], key = entry.urls, entry.dialect.headers
    changes = {url: {"command": guard.program}, **_type(entry, "stdio")}
    headers = [*entry.written.get(key, {}).items()]
    if entry.token is not None:
        headers.append(("Authorization", f"Bearer env:{entry.token}"))
        changes[TOKEN] = {PASSED_ON: f"[{written(entry.token)}]"}
    lines = _at_url(words, entry.written[url], headers)
    if key in members and not entry.is_below(members[key].value):
        changes[key] = {"args": entry.laid_out(members[key].value, lines, "[]")}
        return entry.rewritten(changes)
    # A separate TOML table cannot become an array in its place.
    changes[key] = {}
    changes[url]["args"] = f"[{', '.join(lines)}]"
    return entry.rewritten(changes)


def _at_url(words: list[str], url: str, headers: Iterable[tuple[str, str]]) -> list[str]:
    """Return the arguments of a guard at a URL, as groups that are each on a line if there are several lines."""
    return [
        ", ".join(words),
        f'"--target", {written(url)}',
        *(f'"--header", {written(f"{name}: {value}")}' for name, value in headers),
    ]


def _type(entry: ServerEntry, name: str) -> dict[str, dict[str, str]]:
    """Return the change of the entry's type to *name*, if it has a type."""
    return {"type": {"type": f'"{name}"'} if entry.dialect.has_type else {}}
