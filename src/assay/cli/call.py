"""``assay call``: a small client that lists the tools of a server or calls one, and judges every message."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from json import dumps
from shlex import join
from time import monotonic
from typing import Any, NamedTuple

from assay import __version__
from assay.base.extras import missing
from assay.base.printable import counted, plain
from assay.base.server_names import name_of_command
from assay.base.verdict import Party, Verdict, Violation
from assay.cli.guard_plan import FOUND, LEVELS, recording_of
from assay.cli.options import HeaderError, add_headers, add_settings, add_time_limit, given_headers
from assay.cli.program import program, say, speaker
from assay.cli.slow_answers import SlowAnswers, add_max_ms
from assay.cli.terminal.results import example, result_lines, tool_lines
from assay.cli.terminal.style import Style
from assay.cli.terminal.verdicts import message_lines
from assay.core.conversation import Conversation
from assay.core.masked_commands import masked_command
from assay.core.masking import masked_url
from assay.core.quarantined_names import listed
from assay.core.render import as_json
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
from assay.engine.wording import found
from assay.ladder import syntax
from assay.records.outcomes import outcome_of, title
from assay.settings import Settings, load_cautiously
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
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_headers(parser)
    add_time_limit(parser, "the whole conversation")
    parser.add_argument("--format", choices=("text", "json"), default="text", help="default: %(default)s")
    parser.add_argument(
        "--fail-on",
        choices=LEVELS,
        default="refuse",
        help="exit with 1 after any finding, or only if a guard would stop a message or a tool (default: %(default)s)",
    )
    parser.add_argument(
        "--record",
        metavar="FILE",
        help="write every message to FILE, which assay check reads; in a directory, to a new file each time",
    )
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


class CallUsageError(Exception):
    """The words of the command line cannot be used; the message is one line."""


def run(args: argparse.Namespace) -> int:
    """List the tools or call one; return the exit status."""
    found = None
    try:
        wanted = _wanted(args.words, args.command)
        found = _Findings(args, wanted.tool)
        return _converse(args, wanted, found)
    except InterruptedInquiryError:
        return 130
    except CallUsageError as error:
        _say(str(error))
    except InquiryError as error:
        _say(f"{wanted.server}: {error}{late(error, args.timeout)}{remedy(str(error))}")
        for line in error.last_words if isinstance(error, LineError) else ():
            print(f"    {_plain(line)}", file=sys.stderr)
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


def _wanted(words: Sequence[str], command: Sequence[str]) -> _Wanted:
    """Parse the words before ``--`` and the *command* after it. Raises `CallUsageError`."""
    words, command = list(words), list(command)
    url = ""
    if not command:
        if not words:
            raise CallUsageError("name a server: assay call URL, or assay call -- COMMAND")
        url = words.pop(0)
        if "://" not in url:
            raise CallUsageError(f"{url}: expected a URL, or a command after --: assay call -- {url} …")
    elif not words and len(command) > 2 and _is_object(command[-1]):
        command, words = command[:-2], command[-2:]
    if len(words) > 2:
        raise CallUsageError(f"expected TOOL and ARGUMENTS, found {len(words)} words: {' '.join(words)}")
    if url and words and "://" in words[0]:
        raise CallUsageError("expected one URL")
    tool = words[0] if words else None
    return _Wanted(url, tuple(command), tool, _arguments(words[1]) if len(words) > 1 else {})


def _is_object(text: str) -> bool:
    return text.lstrip().startswith("{") and isinstance(syntax.read(os.fsencode(text)), dict)


def _arguments(text: str) -> dict[str, Any]:
    """Return the object in *text*, in the file that @ names, or on standard input. Raises `CallUsageError`."""
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
        raise CallUsageError(f"{source}: {error.strerror}") from None
    value = syntax.read(frame.strip())
    if isinstance(value, dict):
        return value

    why = value.found if isinstance(value, Violation) else found(value)
    raise CallUsageError(f"{source}: expected a JSON object such as '{{\"x\": 1}}', found {why}")


# ── the conversation ─────────────────────────────────────────────────────────────────────────────────────────────────


def _converse(args: argparse.Namespace, wanted: _Wanted, found: _Findings) -> int:
    settings = load_cautiously(os.environ, os.curdir, file=args.config, flags=args.set, log=say).settings
    limits = settings.guard_limits
    client = {"name": "assay-call", "version": __version__}
    with Signals() as signals, _judging(args, wanted, settings) as judge:

        def opened() -> AbstractContextManager[ServerLine]:
            return _opened(args, wanted, settings, signals, client)

        try:
            with conversing(
                opened,
                _ignore,
                limits,
                args.timeout,
                client=client,
                heard=found.add,
                judge=judge,
            ) as (asking, opening):
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


@contextmanager
def _judging(args: argparse.Namespace, wanted: _Wanted, settings: Settings) -> Iterator[Callable[..., Conversation]]:
    """Return what makes the conversation: with --record, it is written to a file."""
    # A server that ends after server/discover is started again: a second conversation.
    with recording_of(args.record, settings, say, alone=False, is_quiet=args.quiet) as recording:
        yield Conversation if recording is None else recording.judge(wanted.server)


def _ignore(_: str) -> None:
    """Ignore log lines: everything worth printing arrives as a verdict."""


def _opened(
    args: argparse.Namespace, wanted: _Wanted, settings: Settings, signals: Signals, client: dict[str, str]
) -> AbstractContextManager[ServerLine]:
    if wanted.command:
        if args.header:
            raise CallUsageError("--header is for a server at a URL")
        return ChildLine(wanted.command, signals, settings.guard_limits.frame_bytes)
    try:
        from assay.edges.probe.http_line import HttpLine  # noqa: PLC0415 - it needs an extra

        headers = given_headers(args.header, os.environ)
        return HttpLine(wanted.url, settings.guard_limits.frame_bytes, client, headers, settings.upstream)
    except ImportError as error:
        raise InquiryError(f"a server at a URL needs {missing(error, 'http')}") from None
    except HeaderError as error:
        raise CallUsageError(str(error)) from None


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
        self.progress = _Progress(wanted=not quiet and sys.stderr.isatty())
        self._tool = tool
        self._quiet = quiet

    def add(self, verdict: Verdict) -> None:
        """Add the verdict on one message. A missing response is reported as the error that it is."""
        if verdict.kind == "missing":
            return
        self.heard += verdict.party is Party.SERVER
        if verdict.method == "notifications/progress":
            self.progress.show(verdict.value)
        if self.slow is not None:
            self.slow.note(verdict, monotonic())
        if not verdict.violations:
            return
        self.verdicts.append(verdict)
        self.others += len(verdict.violations) if self._is_about_others(verdict) else 0

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


class _Progress:
    """One line on a terminal with the progress of a call."""

    def __init__(self, *, wanted: bool) -> None:
        self.wanted = wanted

    def show(self, notification: Any) -> None:
        """Replace the line by the progress in a notification."""
        params = notification.get("params") if isinstance(notification, dict) else None
        if not self.wanted or not isinstance(params, dict):
            return
        total = f"/{params['total']}" if "total" in params else ""
        message = f"  {params['message']}" if isinstance(params.get("message"), str) else ""
        line = _plain(f"{params.get('progress')}{total}{message}")[:78]
        print(f"\r\x1b[K{line}", end="", file=sys.stderr, flush=True)

    def clear(self) -> None:
        """Remove the line."""
        if self.wanted:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


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
        for page in self._pages():
            self._tools += [tool for tool in page if isinstance(tool, dict)]

    def _pages(self) -> Iterator[list[Any]]:
        params: dict[str, Any] = {}
        for _ in range(MOST_PAGES):
            result = self._result(self._inquiry.ask("tools/list", params))
            listed = result.get("tools")
            if not isinstance(listed, list):
                return
            yield listed
            cursor = result.get("nextCursor")
            if not isinstance(cursor, str):
                return
            params = {"cursor": cursor}

    def _result(self, verdict: Verdict) -> dict[str, Any]:
        """Return the part of the tools/list result that a client can use."""
        value = verdict.value if isinstance(verdict.value, dict) else {}
        result = value.get("result")
        if not isinstance(result, dict) or not verdict.accepted:
            self._failed = "clients may reject the list" if isinstance(result, dict) else _error_text(value)
            return {}
        return {**result, "tools": list(self._usable(result.get("tools"), verdict))}

    def _usable(self, listed: Any, verdict: Verdict) -> Iterator[Any]:
        """Leave out the entries that the guard would quarantine."""
        useless = {each.at.split("/")[3] for each in verdict.violations if each.action == "quarantine"}
        for number, tool in enumerate(listed if isinstance(listed, list) else ()):
            if str(number) not in useless:
                yield tool
        self._quarantined += [each.name for each in verdict.quarantined]

    # ── the list ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def tools(self) -> bool:
        """Print the tools; return whether they could not be listed."""
        self._asked = {"tools": self._tools}
        if not self._json:
            self._show_tools()
        return bool(self._failed)

    def _show_tools(self) -> None:
        style = Style(sys.stdout)
        print(f"{self._server_text()}, MCP {self._inquiry.revision}, {counted(len(self._tools), 'tool')}")
        for tool in self._tools:
            print()
            print("\n".join(tool_lines(tool, style)))
        if self._tools:
            arguments = dumps(example(self._tools[0]), ensure_ascii=False)
            again = self._wanted.again(str(self._tools[0].get("name")), arguments)
            print(f"\n{style.paint('Call one:', 'dim')} {_plain(again)}")
        if self._quarantined:
            them = "it" if len(self._quarantined) == 1 else "them"
            _say(f"clients may reject {listed(self._quarantined)}; enforce mode would hide {them}")
        if self._failed:
            _say(f"tools/list failed: {self._failed}")

    def _server_text(self) -> str:
        server = self._server()
        return _plain(" ".join(filter(None, (server.get("name"), server.get("version")))) or self._wanted.server)

    def _server(self) -> dict[str, str]:
        return server_of(self._opening)

    # ── the call ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def call(self, name: str) -> bool:
        """Call a tool and print the result; return whether the call failed."""
        self._doubt(name)
        params: dict[str, Any] = {"name": name, "arguments": self._wanted.arguments}
        if self._found.progress.wanted:
            params["_meta"] = {"progressToken": "call"}
        verdict = self._inquiry.ask("tools/call", params)
        self._found.progress.clear()
        value = verdict.value if isinstance(verdict.value, dict) else {}
        result, error = value.get("result"), value.get("error")
        self._asked = {"tool": name, **({"error": error} if error is not None else {"result": result})}
        if self._json:
            pass
        elif isinstance(result, dict):
            self._show_result(result)
        else:
            _say(f"{name}: {_error_text(value)}")
            for line in _reasons(value):
                print(_plain(f"    {line}"), file=sys.stderr)
        if self._found.others and not self._quiet:
            _say(f"{counted(self._found.others, 'finding')} about other tools: {self._wanted.again()}")
        return not isinstance(result, dict) or result.get("isError") is True or not verdict.accepted

    def end(self) -> None:
        """Print the JSON object, which has the findings of the whole conversation."""
        if self._json:
            self._print_json(self._asked)

    def _doubt(self, name: str) -> None:
        """Warn if tools/list has no such tool. The call is made anyway."""
        names = [str(tool.get("name")) for tool in self._tools]
        if name in names or self._json:
            return

        _say(f"the server lists no tool {name}{suggestion(name, names)}")

    def _show_result(self, result: dict[str, Any]) -> None:
        for line in result_lines(result):
            print(line)
        if result.get("isError") is True:
            sys.stdout.flush()
            _say(f"{self._wanted.tool}: the tool returned isError")

    def _print_json(self, found: dict[str, Any]) -> None:
        findings = [
            {"party": verdict.party, "message": title(verdict), **as_json(each)}
            for verdict in self._found.verdicts
            for each in verdict.violations
        ]
        shown = {"server": self._server(), "revision": self._inquiry.revision, **found, "findings": findings}
        write_utf8(dumps(shown, indent=2, ensure_ascii=False) + "\n")


def _error_text(value: Any) -> str:
    """Return the error of a response as one line: its code and its message."""
    error = value.get("error") if isinstance(value, dict) else None
    if not isinstance(error, dict):
        return "the server sent no usable response"
    return f"error {error.get('code')}: {error_text(error)}"


def _reasons(value: Any) -> Iterator[str]:
    """Yield the violations that a guard lists in an error, one line each."""
    error = value.get("error") if isinstance(value, dict) else None
    data = error.get("data") if isinstance(error, dict) else None
    listed = data.get("violations") if isinstance(data, dict) else None
    for each in listed[:_MOST_REASONS] if isinstance(listed, list) else ():
        if isinstance(each, dict):
            place = each.get("at") or "the message"
            yield f"{place}: expected {each.get('expected')}, found {each.get('found')} [{each.get('rule')}]"


def _plain(text: str) -> str:
    return plain(text)


def late(error: Exception, seconds: float) -> str:
    """Return the end of the message about a server that did not respond within *seconds*; empty for other errors."""
    return f" within {seconds:g} s; --timeout SECONDS sets the limit" if isinstance(error, LateError) else ""
