"""
Call a tool of a server with our own client, and judge every message. It waits.

The server is behind a guard over HTTP, or behind a guard that is started for the call and ended after it.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager
from time import monotonic
from typing import Any, Final

from assay import __version__
from assay.base.verdict import Verdict
from assay.console.api_values import CallConfirmError, CallFailedError, CallWish, NewGuard
from assay.console.console_rows import CallAnswer
from assay.core.redaction import Redactor
from assay.edges.probe.child_line import ChildLine
from assay.edges.probe.server_probe import MOST_PAGES, Inquiry, InquiryError, LineError, ServerLine, conversing
from assay.settings import Settings

_SECONDS: Final = 60.0
"""Time limit of the whole conversation, as of `assay call`."""

_CLIENT: Final = {"name": "assay-console", "version": __version__}


class ToolCaller:
    """Calls tools, each in a conversation of its own."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._redactor = Redactor(settings.journal.redact)

    def __call__(self, wish: CallWish) -> CallAnswer:
        """Call a tool. Raises `CallConfirmError` and `CallFailedError`."""
        heard: list[Verdict] = []
        try:
            with conversing(
                lambda: self._opened(wish),
                lambda _: None,
                self._settings.guard_limits,
                _SECONDS,
                client=_CLIENT,
                heard=heard.append,
            ) as (inquiry, _):
                _check(wish, inquiry)
                before = len(heard)
                began = monotonic()
                answer = inquiry.ask("tools/call", {"name": wish.tool, "arguments": wish.arguments})
                return self._answer(heard[before:], answer, inquiry.revision, (monotonic() - began) * 1000)
        except InquiryError as error:
            raise CallFailedError(": ".join((str(error), *map(self._redactor.text, _last_line(error))))) from None

    def _opened(self, wish: CallWish) -> AbstractContextManager[ServerLine]:
        limit = self._settings.guard_limits.frame_bytes
        if wish.guard is not None:
            directory = wish.guard.start.directory
            if not os.path.isdir(directory):
                raise CallFailedError(f"the directory {directory} of the server is not there any more")
            # Over pipes: a port would be open to other users of this machine.
            return ChildLine(_command(wish.guard), None, limit, cwd=directory)
        try:
            from assay.edges.probe.http_line import HttpLine  # noqa: PLC0415 - an extra
        except ImportError as error:
            raise CallFailedError(str(error)) from None
        headers = [("authorization", wish.authorization)] if wish.authorization else []
        return HttpLine(wish.url, limit, _CLIENT, headers, self._settings.upstream)

    def _answer(self, heard: list[Verdict], answer: Verdict, revision: str, latency: float) -> CallAnswer:
        request = next((each for each in heard if each.kind == "request" and each.method == "tools/call"), None)
        both = [each for each in (request, answer) if each is not None]
        return {
            "request": request.value if request is not None else {},
            "response": answer.value if isinstance(answer.value, dict) else None,
            "latency": latency,
            "revision": revision,
            "verdicts": [self._verdict(each) for each in both],
            "others": sum(len(each.violations) for each in heard if each not in both),
        }

    def _verdict(self, verdict: Verdict) -> dict[str, Any]:
        violations = [self._redactor.violation(each) for each in verdict.violations]
        return {"party": verdict.party.value, "accepted": verdict.accepted, "violations": violations}


def _last_line(error: InquiryError) -> list[str]:
    """Return the last line of the server on stderr; that of the guard before it, if the server wrote nothing."""
    said = list(error.last_words) if isinstance(error, LineError) else []
    return [each for each in said if not each.startswith("assay:")][-1:] or said[-1:]


def _command(guard: NewGuard) -> list[str]:
    """Return the command of a guard over STDIO that is like the running one."""
    # Another name than that of the client's server, so that the page shows which is which.
    options = [f"--name={guard.name} (call)", *([f"--mode={guard.mode}"] if guard.mode else [])]
    if guard.payloads:
        options += ["--set", "journal.payloads=true"]
    # -P: a module in the directory of the server must not run in place of one of ours.
    return [sys.executable, "-P", "-m", "assay", "guard", "--quiet", *options, "--", *guard.start.words]


def _check(wish: CallWish, inquiry: Inquiry) -> None:
    """Raise `CallConfirmError` for a tool that may change something, unless the user has confirmed the call."""
    found = next((each for each in _tools(inquiry) if each.get("name") == wish.tool), None)
    if wish.confirmed:
        return
    annotations = found.get("annotations") if found is not None else None
    if not isinstance(annotations, dict):
        annotations = None
    if annotations is None or annotations.get("readOnlyHint") is not True:
        why = "does not say that it only reads" if found is not None else "is not in the list of tools"
        raise CallConfirmError(annotations, f"the tool {wish.tool[:100]} {why}; confirm the call")


def _tools(inquiry: Inquiry) -> Iterator[dict[str, Any]]:
    """Yield the tools. The whole list is read: a call is judged by the tool's schemas."""
    params: dict[str, Any] = {}
    found: list[dict[str, Any]] = []
    for _ in range(MOST_PAGES):
        value = inquiry.ask("tools/list", params).value
        result = value.get("result") if isinstance(value, dict) else None
        listed = result.get("tools") if isinstance(result, dict) else None
        if not isinstance(listed, list) or not isinstance(result, dict):
            break
        found += [each for each in listed if isinstance(each, dict)]
        cursor = result.get("nextCursor")
        if not isinstance(cursor, str):
            break
        params = {"cursor": cursor}
    yield from found
