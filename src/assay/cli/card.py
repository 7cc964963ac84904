"""``assay card``: judge a server card or an AI catalog, and compare a card with the server itself."""

# ruff: noqa: PLC0415  each command imports only what it needs: `assay --help` needs none of it

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING, Any

from assay.cli.call import remedy
from assay.cli.header_options import add_headers
from assay.cli.serve import add_settings
from assay.cli.time_limit import add_time_limit

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from assay.base.verdict import Violation
    from assay.cli.terminal.card_report import JudgedDocument
    from assay.core.extensions.card_rules import DocumentFindings
    from assay.edges.probe.card_inquiry import CardInquiry, FoundDocument
    from assay.settings import Settings

_EPILOG = """\
SOURCE is a file, - for standard input, or a URL: of an MCP endpoint, whose card is at URL/server-card, or of the card.
For a URL the server itself is asked too, and the card is compared with its answer.

  assay card server-card.json
  assay card https://weather.example.com/mcp
  assay card --no-runtime https://weather.example.com/mcp/server-card
  assay card --catalog https://example.com

Exit status: 0 no findings; 1 findings; 2 the document could not be read, or it has no findings and could not be
compared with the server.
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register ``card``."""
    parser = subparsers.add_parser(
        "card",
        help="judge the card of a server",
        description="Judge a server card (experimental, SEP-2127), and compare it with the server itself.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("source", metavar="SOURCE", help="a file, - for standard input, or a URL")
    parser.add_argument("--catalog", action="store_true", help="judge an AI catalog and the cards in it, not a card")
    parser.add_argument("--no-runtime", action="store_true", help="do not ask the server itself")
    add_headers(parser)
    add_time_limit(parser, "everything that the server is asked")
    parser.add_argument("--format", choices=("text", "json"), default="text", help="default: %(default)s")
    add_settings(parser)
    parser.set_defaults(run=run)


class CardError(Exception):
    """The document cannot be judged; the message is one line."""


def run(args: argparse.Namespace) -> int:
    """Judge the document; return the exit status."""
    from assay.base.printable import plain

    try:
        judged = _at_url(args) if "://" in args.source else _in_file(args)
    except CardError as error:
        print(plain(f"assay card: {error}"), file=sys.stderr)
        return 2
    _show(args, judged)
    for line in judged.remarks:
        print(plain(f"assay card: {line}"), file=sys.stderr)
    return 1 if judged.findings.violations else 2 if judged.partial else 0


def _show(args: argparse.Namespace, judged: JudgedDocument) -> None:
    from assay.cli.terminal.card_report import as_object, lines
    from assay.cli.terminal.style import Style

    if args.format == "text":
        print("\n".join(lines(judged, Style(sys.stdout))))
    else:
        import orjson

        from assay.edges.standard_streams import write_utf8

        write_utf8(orjson.dumps(as_object(judged), option=orjson.OPT_INDENT_2).decode() + "\n")
    sys.stdout.flush()


def _judged(content: bytes, *, catalog: bool) -> tuple[Any, DocumentFindings]:
    """Return the value of a document, None if it is not JSON, and its findings."""
    from assay.base.verdict import Violation
    from assay.core.extensions.card_rules import NOTHING, check_card, check_catalog, read_document

    value = read_document(content)
    if isinstance(value, Violation):
        return None, NOTHING.and_also([value])
    return value, check_catalog(value) if catalog else check_card(value)


# ── a file ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _in_file(args: argparse.Namespace) -> JudgedDocument:
    from assay.cli.terminal.card_report import JudgedDocument

    if args.header:
        raise CardError("--header is for a server at a URL")
    # A name that is not UTF-8 can be opened, but not printed.
    name = "standard input" if args.source == "-" else os.fsencode(args.source).decode(errors="replace")
    value, findings = _judged(_content(args.source, name), catalog=args.catalog)
    return JudgedDocument(name, args.catalog, value, findings)


def _content(source: str, name: str) -> bytes:
    from assay.core.extensions.card_rules import DOCUMENT_BYTES

    try:
        if source == "-":
            content = sys.stdin.buffer.read(DOCUMENT_BYTES + 1)
        else:
            with open(source, "rb") as file:
                content = file.read(DOCUMENT_BYTES + 1)
    except OSError as error:
        raise CardError(f"{name}: {error.strerror}") from None
    if len(content) > DOCUMENT_BYTES:
        raise CardError(f"{name}: the document has more than {DOCUMENT_BYTES:,} bytes")
    return content


# ── a URL ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _at_url(args: argparse.Namespace) -> JudgedDocument:
    from assay.cli.header_options import HeaderError, given_headers
    from assay.cli.serve import _log
    from assay.core.masking import masked_url
    from assay.edges.probe.server_probe import InquiryError
    from assay.settings import load_cautiously

    settings = load_cautiously(os.environ, os.curdir, file=args.config, flags=args.set, log=_log).settings
    try:
        inquiry = _inquiry(args, settings, given_headers(args.header, os.environ))
        found = inquiry.document(args.source, catalog=args.catalog)
    except HeaderError as error:
        raise CardError(str(error)) from None
    except InquiryError as error:
        raise CardError(f"{masked_url(args.source)}: {error}{remedy(str(error))}") from None
    judged = _fetched(args, found)
    return judged if args.catalog or args.no_runtime else _compared(judged, inquiry, found)


def _inquiry(args: argparse.Namespace, settings: Settings, headers: Sequence[tuple[str, str]]) -> CardInquiry:
    from assay import __version__

    try:
        from assay.edges.probe.card_inquiry import CardInquiry
    except ImportError as error:
        from assay.base.extras import missing

        raise CardError(f"a document at a URL needs {missing(error, 'http')}") from None
    client = {"name": "assay-card", "version": __version__}
    return CardInquiry(client, headers, settings.upstream, settings.guard_limits, args.timeout)


def _fetched(args: argparse.Namespace, found: FoundDocument) -> JudgedDocument:
    """Judge a document and the response that had it."""
    from assay.cli.terminal.card_report import JudgedDocument
    from assay.core.masking import masked_url

    value, findings = _judged(found.fetched.content, catalog=args.catalog)
    findings = findings.and_also(_of_response(found, card=not args.catalog))
    return JudgedDocument(masked_url(found.place.url), args.catalog, value, findings)


def _of_response(found: FoundDocument, *, card: bool) -> Iterator[Violation]:
    from urllib.parse import urlsplit

    from assay.base.loopback import leads_here
    from assay.core.extensions.card_context import check_response, not_encrypted, not_revalidated

    split = urlsplit(found.place.url)
    if split.scheme != "https" and not leads_here(split.hostname or ""):
        yield not_encrypted()
    yield from check_response(found.fetched.headers, card=card)
    if found.again not in {None, 304}:
        yield not_revalidated(found.again or 0)


def _compared(judged: JudgedDocument, inquiry: CardInquiry, found: FoundDocument) -> JudgedDocument:
    """Compare a card with the server itself, as far as that answers."""
    from assay.cli.terminal.card_report import Compared
    from assay.core.extensions.card_context import check_runtime, remote_at, runtime_of
    from assay.core.masking import masked_url
    from assay.edges.probe.card_inquiry import endpoint_of
    from assay.edges.probe.server_probe import InquiryError

    endpoint = endpoint_of(judged.value, found)
    if not endpoint:
        why = "it has no remote with Streamable HTTP at the address of the card"
        return judged._replace(remarks=(f"{judged.source}: not compared with a server: {why}",))
    remote = remote_at(judged.value, endpoint)
    try:
        revision, opening = inquiry.opening(endpoint)
    except InquiryError as error:
        # A server of HTTP+SSE, as its card says, cannot be asked here.
        legacy = remote is not None and remote[1].get("type") == "sse"
        advice = remedy(str(error)) or "; --no-runtime judges the card alone"
        why = f"{masked_url(endpoint)}: the server itself could not be asked: {error}{advice}"
        return judged._replace(remarks=(why,), partial=not legacy)
    runtime = runtime_of(opening, endpoint)
    remarks = () if remote is not None else (f"no remote of the card has the URL {masked_url(endpoint)}",)
    findings = judged.findings.and_also(check_runtime(judged.value, runtime))
    compared = Compared(masked_url(endpoint), runtime.method, revision)
    return judged._replace(findings=findings, compared=compared, remarks=remarks)
