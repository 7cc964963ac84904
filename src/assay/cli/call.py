"""``assay call``: a small client that lists the tools of a server or calls one, and judges every message."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from json import dumps
from shlex import join
from time import monotonic
from typing import Any, NamedTuple

from assay import __version__
from assay.cli.guard_plan import FOUND, recording_of
from assay.cli.options import (
    HeaderError,
    add_fail_on,
    add_headers,
    add_record,
    add_settings,
    add_time_limit,
    given_headers,
)
from assay.cli.program import program, say, speaker
from assay.cli.slow_answers import SlowAnswers, add_max_ms
from assay.cli.terminal.results import example, result_lines, tool_lines
from assay.cli.terminal.style import Style
from assay.cli.terminal.verdicts import message_lines
from assay.edges.pipes import Signals
from assay.edges.probe.child_line import ChildLine
from assay.edges.probe.server_probe import (
    MOST_PAGES,
    REJECTED,
    Inquiry,
    InquiryError,
    InterruptedInquiryError,
    LateError,
    LineError,
    ServerLine,
    conversing,
    error_text,
    server_of,
)
from assay.edges.standard_streams import write_utf8
from assay.judge import syntax
from assay.judge.conversation import Conversation
from assay.judge.masking import masked_command, masked_url
from assay.judge.render import as_json
from assay.judge.server_commands import name_of_command
from assay.model.errors import UsageError
from assay.model.printable import counted, listed, plain
from assay.model.verdict import Party, Verdict, Violation
from assay.records.outcomes import outcome_of, title
from assay.rules.sentences import located
from assay.schema.wording import found
from assay.settings import Settings, load_cautiously
from assay.settings.extras import missing
from assay.spec.schema import suggestion

_say = speaker("call")

_MOST_REASONS = 10
"""Violations of an error that are shown."""

_EPILOG = """\
Without TOOL the tools are listed. ARGUMENTS is a JSON object; @FILE reads it from a file, - from standard input.
The result goes to standard output; findings about any message of the conversation go to stderr.

  assay call http://127.0.0.1:8800/demo/mcp
  assay call http://127.0.0.1:8800/demo/mcp weather '{"city": "Paris"}'
  assay call -- npx some-server
  assay call weather '{"city": "Paris"}' -- npx some-server

Everything after -- is the server's command; a JSON object at its end is ARGUMENTS, and the word before it TOOL.

Exit status: 0 no finding counts by --fail-on, and the call succeeded; 1 a finding counts, or the call failed;
2 no conversation with the server; 130 interrupted.
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register ``call``."""
    parser = subparsers.add_parser(
        "call",
        usage="assay call [options] URL [TOOL] [ARGUMENTS]\n       assay call [options] [TOOL] [ARGUMENTS] -- COMMAND",
        description="A small MCP client: lists the tools of a server, calls one, and judges every message.",
        epilog=_EPILOG,
    )
    add_headers(parser)
    add_time_limit(parser, "the whole conversation")
    parser.add_argument("--format", choices=("text", "json"), default="text", help="default: %(default)s")
    add_fail_on(parser, "refuse", "1 after any finding, or only if a guard would stop a message or a tool")
    add_record(parser)
    add_max_ms(parser)
    parser.add_argument("--quiet", action="store_true", help="no findings on stderr")
    add_settings(parser, shared=False)
    parser.add_argument(
        "words", nargs="*", metavar="URL TOOL ARGUMENTS", help="the server at URL, a tool, a JSON object"
    )
    parser.set_defaults(run=run, command=(), splits=True)


class _Wanted(NamedTuple):
    """The server and the call that the command line asks for."""

    url: str
    command: tuple[str, ...]
    headers: Sequence[tuple[str, str]]
    tool: str | None
    arguments: dict[str, Any]

    @property
    def server(self) -> str:
        """The server's URL, or the name of the server that the command starts."""
        return masked_url(self.url) if self.url else name_of_command(self.command)

    def again(self, *words: str) -> str:
        """Return the command line that asks the same server with other *words*: TOOL and ARGUMENTS."""
        if self.url:
            return f"{program()} call {join((masked_url(self.url), *words))}"
        return f"{program()} call {join((*words, '--', *masked_command(self.command)))}"


def run(args: argparse.Namespace) -> int:
    """List the tools or call one; return the exit status."""
    found = None
    try:
        wanted = _wanted(args)
        found = _Findings(args, wanted.tool)
        return _converse(args, wanted, found)
    except InterruptedInquiryError:
        return 130
    except InquiryError as error:
        _say(f"{wanted.server}: {error}{late(error, args.timeout)}{remedy(str(error))}")
        for line in error.last_words if isinstance(error, LineError) else ():
            print(plain(f"    {line}"), file=sys.stderr)
    # A recording that `assay check` judges next shows the end of the server, too.
    return 0 if args.fail_on == "never" and found is not None and found.heard else 2


def remedy(reason: str) -> str:
    """Return what to do about a server that cannot be asked for a *reason*; empty if nothing is known."""
    status, _, why = reason.partition(": ")
    # A server that gives another reason has seen a token.
    if status in {"HTTP 401", "HTTP 403"} and why in {"", REJECTED}:
        return "; give a token with --header 'Authorization: Bearer env:TOKEN'"
    return ""


# ── the command line ─────────────────────────────────────────────────────────────────────────────────────────────────


def _wanted(args: argparse.Namespace) -> _Wanted:
    """Parse the words before ``--`` and the command after it. Raises `UsageError`."""
    words, command = list(args.words), list(args.command)
    url = ""
    if not command:
        if not words:
            raise UsageError("name a server: assay call URL, or assay call -- COMMAND")
        url = words.pop(0)
        if "://" not in url:
            raise UsageError(f"{url}: expected a URL, or a command after --: assay call -- {url} …")
    elif not words and len(command) > 2 and isinstance(syntax.read(os.fsencode(command[-1])), dict):
        command, words = command[:-2], command[-2:]
    if len(words) > 2:
        raise UsageError(f"expected TOOL and ARGUMENTS, found {len(words)} words: {' '.join(words)}")
    if words and "://" in words[0]:
        raise UsageError("expected one URL" if url else f"give only one of {words[0]} and a command after --")
    tool = words[0] if words else None
    arguments = _arguments(words[1]) if len(words) > 1 else {}
    if command and args.header:
        raise UsageError("--header is for a server at a URL")
    try:
        headers = given_headers(args.header, os.environ)
    except HeaderError as error:
        raise UsageError(str(error)) from None
    return _Wanted(url, tuple(command), headers, tool, arguments)


def _arguments(text: str) -> dict[str, Any]:
    """Return the object in *text*, in the file that @ names, or on standard input. Raises `UsageError`."""
    source = "ARGUMENTS"
    frame = os.fsencode(text)
    try:
        if text == "-":
            source, frame = "standard input", sys.stdin.buffer.read()
        elif text.startswith("@"):
            source = text[1:]
            with open(source, "rb") as file:
                frame = file.read()
    except OSError as error:
        raise UsageError(f"{source}: {error.strerror}") from None
    value = syntax.read(frame.strip())
    if isinstance(value, dict):
        return value

    why = value.found if isinstance(value, Violation) else found(value)
    raise UsageError(f"{source}: expected a JSON object such as '{{\"x\": 1}}', found {why}")


# ── the conversation ─────────────────────────────────────────────────────────────────────────────────────────────────


def _converse(args: argparse.Namespace, wanted: _Wanted, found: _Findings) -> int:
    settings = load_cautiously(os.environ, os.curdir, file=args.config, flags=args.set, log=say).settings
    client = {"name": "assay-call", "version": __version__}
    # A server that ends after server/discover is started again: a second conversation in the recording.
    recorded = recording_of(args.record, settings, say, alone=False, is_quiet=args.quiet)
    with Signals() as signals, recorded as recording:
        # Log lines are ignored: everything worth printing arrives as a verdict.
        conversation = conversing(
            opening_of(wanted.command, wanted.url, settings, client, signals=signals, headers=wanted.headers),
            lambda _: None,
            settings.guard_limits,
            args.timeout,
            client=client,
            heard=found.add,
            judge=Conversation if recording is None else recording.judge(wanted.server),
        )
        try:
            with conversation as (asking, opening):
                report = _CallReport(args, wanted, asking, opening, found)
                report.list_tools()
                failed = report.tools() if wanted.tool is None else report.call(wanted.tool)
                if asking.finish() == FOUND:
                    failed = True
                    _say(f"{wanted.server}: the guard exited with status {FOUND}: it has findings")
                report.end()
        finally:
            found.show()
    return 0 if args.fail_on == "never" else int(failed or found.counts(args.fail_on))


def opening_of(
    command: Sequence[str],
    url: str,
    settings: Settings,
    client: Mapping[str, str],
    *,
    signals: Signals | None,
    headers: Sequence[tuple[str, str]] = (),
    env: Mapping[str, str] | None = None,
    cwd: str | None = None,
) -> Callable[[], AbstractContextManager[ServerLine]]:
    """Return what opens a line to the server of a *command*, else to that at *url*. Raises `InquiryError`."""
    longest = settings.guard_limits.frame_bytes
    if signals is not None and command:
        return partial(ChildLine, command, signals, longest, env=env, cwd=cwd)
    try:
        from assay.edges.probe.http_line import HttpLine  # noqa: PLC0415 - it needs an extra
    except ImportError as error:
        raise InquiryError(f"a server at a URL needs {missing(error, 'http')}") from None
    return partial(HttpLine, url, longest, client, headers, settings.upstream)


class _Findings:
    """The findings of a conversation, to be shown after its result."""

    def __init__(self, args: argparse.Namespace, tool: str | None) -> None:
        """With a *tool* to call, findings about other tools are only counted."""
        quiet = args.quiet or args.format == "json"
        self.slow = SlowAnswers(args.max_ms) if args.max_ms is not None else None
        self.heard = 0
        """Messages of the server."""
        self.verdicts: list[Verdict] = []
        self.others = 0
        """Findings about tools that are not called."""
        self.shows_progress = not quiet and sys.stderr.isatty()
        """Whether one line on the terminal has the progress of the call."""
        self._tool = tool
        self._quiet = quiet

    def add(self, verdict: Verdict) -> None:
        """Add the verdict on one message. A missing response is reported as the error that it is."""
        if verdict.kind == "missing":
            return
        self.heard += verdict.party is Party.SERVER
        if verdict.method == "notifications/progress" and isinstance(verdict.value, dict):
            params = verdict.value.get("params")
            if isinstance(params, dict):
                total = f"/{params['total']}" if "total" in params else ""
                message = f"  {params['message']}" if isinstance(params.get("message"), str) else ""
                self.replace_progress(plain(f"{params.get('progress')}{total}{message}")[:78])
        if self.slow is not None:
            self.slow.note(verdict, monotonic())
        if not verdict.violations:
            return
        self.verdicts.append(verdict)
        self.others += len(verdict.violations) if self._is_about_others(verdict) else 0

    def replace_progress(self, line: str = "") -> None:
        """Replace the line with the progress; an empty *line* removes it."""
        if self.shows_progress:
            print(f"\r\x1b[K{line}", end="", file=sys.stderr, flush=True)

    def counts(self, level: str) -> bool:
        """Return whether a finding makes the command fail at this *level*."""
        shown = (each for each in self.verdicts if not self._is_about_others(each))
        return any(level == "report" or outcome_of(each).word != "reported" or each.quarantined for each in shown)

    def show(self) -> None:
        """Print the findings on stderr, unless --quiet was given."""
        sys.stdout.flush()
        style = Style(sys.stderr)
        for verdict in () if self._quiet else self.verdicts:
            if not self._is_about_others(verdict):
                print("\n".join(message_lines(verdict, style)), file=sys.stderr)
        for line in self.slow.lines() if self.slow is not None else ():
            _say(line)

    def _is_about_others(self, verdict: Verdict) -> bool:
        """Whether every finding of a message is about tools that are not called."""
        wanted = (None, ("tool", self._tool))
        return self._tool is not None and all(each.entry not in wanted for each in verdict.violations)


class _CallReport:
    """The requests to one server, and what is printed about the responses."""

    def __init__(
        self, args: argparse.Namespace, wanted: _Wanted, inquiry: Inquiry, opening: dict[str, Any], found: _Findings
    ) -> None:
        self._json = args.format == "json"
        self._quiet = args.quiet or self._json
        self._wanted = wanted
        self._inquiry = inquiry
        self._opening = opening
        self._found = found
        self._tools: list[dict[str, Any]] = []
        self._quarantined: list[str] = []
        self._failed = ""
        self._asked: dict[str, Any] = {}

    def list_tools(self) -> None:
        """Request the tools. A call needs them too: it is judged by the tool's schemas."""
        params: dict[str, Any] = {}
        for _ in range(MOST_PAGES):
            verdict = self._inquiry.ask("tools/list", params)
            value = verdict.value if isinstance(verdict.value, dict) else {}
            result = value.get("result")
            if not isinstance(result, dict) or not verdict.accepted:
                self._failed = "clients may reject the list" if isinstance(result, dict) else _error_text(value)
                return
            # The guard would quarantine these entries.
            useless = {each.at.split("/")[3] for each in verdict.violations if each.action == "quarantine"}
            page = result.get("tools")
            for number, tool in enumerate(page if isinstance(page, list) else ()):
                if isinstance(tool, dict) and str(number) not in useless:
                    self._tools.append(tool)
            self._quarantined += [each.name for each in verdict.quarantined]
            cursor = result.get("nextCursor")
            if not isinstance(cursor, str):
                return
            params = {"cursor": cursor}

    # ── the list ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def tools(self) -> bool:
        """Print the tools; return whether they could not be listed."""
        self._asked = {"tools": self._tools}
        if self._json:
            return bool(self._failed)
        style = Style(sys.stdout)
        server = server_of(self._opening)
        named = " ".join(filter(None, (server.get("name"), server.get("version")))) or self._wanted.server
        print(f"{plain(named)}, MCP {self._inquiry.revision}, {counted(len(self._tools), 'tool')}")
        for tool in self._tools:
            print()
            print("\n".join(tool_lines(tool, style)))
        if self._tools:
            arguments = dumps(example(self._tools[0]), ensure_ascii=False)
            again = self._wanted.again(str(self._tools[0].get("name")), arguments)
            print(f"\n{style.paint('Call one:', 'dim')} {plain(again)}")
        if self._quarantined:
            them = "it" if len(self._quarantined) == 1 else "them"
            _say(f"clients may reject {listed(self._quarantined)}; enforce mode would hide {them}")
        if self._failed:
            _say(f"tools/list failed: {self._failed}")
        return bool(self._failed)

    # ── the call ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def call(self, name: str) -> bool:
        """Call a tool and print the result; return whether the call failed."""
        names = [str(tool.get("name")) for tool in self._tools]
        if name not in names and not self._json:
            # The call is made anyway.
            _say(f"the server lists no tool {name}{suggestion(name, names)}")
        params: dict[str, Any] = {"name": name, "arguments": self._wanted.arguments}
        if self._found.shows_progress:
            params["_meta"] = {"progressToken": "call"}
        verdict = self._inquiry.ask("tools/call", params)
        self._found.replace_progress()
        value = verdict.value if isinstance(verdict.value, dict) else {}
        result, error = value.get("result"), value.get("error")
        self._asked = {"tool": name, **({"error": error} if error is not None else {"result": result})}
        if self._json:
            pass
        elif isinstance(result, dict):
            for line in result_lines(result):
                print(line)
            if result.get("isError") is True:
                _say(f"{name}: the tool returned isError")
        else:
            _say(f"{name}: {_error_text(value)}")
            for line in _reasons(value):
                print(plain(f"    {line}"), file=sys.stderr)
        if self._found.others and not self._quiet:
            _say(f"{counted(self._found.others, 'finding')} about other tools: {self._wanted.again()}")
        return not isinstance(result, dict) or result.get("isError") is True or not verdict.accepted

    def end(self) -> None:
        """Print the JSON object, which has the findings of the whole conversation."""
        if not self._json:
            return
        findings = [
            {"party": verdict.party, "message": title(verdict), **as_json(each)}
            for verdict in self._found.verdicts
            for each in verdict.violations
        ]
        head = {"server": server_of(self._opening), "revision": self._inquiry.revision}
        write_utf8(dumps({**head, **self._asked, "findings": findings}, indent=2, ensure_ascii=False) + "\n")


def _error_of(value: Any) -> dict[str, Any] | None:
    """Return the error of a response; None without one."""
    error = value.get("error") if isinstance(value, dict) else None
    return error if isinstance(error, dict) else None


def _error_text(value: Any) -> str:
    """Return the error of a response as one line: its code and its message."""
    error = _error_of(value)
    return (
        f"error {error.get('code')}: {error_text(error)}" if error is not None else "the server sent no usable response"
    )


def _reasons(value: Any) -> Iterator[str]:
    """Yield the violations that a guard lists in an error, one line each."""
    data = (_error_of(value) or {}).get("data")
    listed = data.get("violations") if isinstance(data, dict) else None
    for each in listed[:_MOST_REASONS] if isinstance(listed, list) else ():
        if isinstance(each, dict):
            rule, at, expected, what = (str(each.get(name) or "") for name in ("rule", "at", "expected", "found"))
            yield f"{located(Violation(rule, at, expected, what, source='', hint=''))} [{rule}]"


def late(error: Exception, seconds: float) -> str:
    """Return the end of the message about a server that did not respond within *seconds*; empty for other errors."""
    return f" within {seconds:g} s; --timeout SECONDS sets the limit" if isinstance(error, LateError) else ""
