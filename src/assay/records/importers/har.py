"""HAR 1.2, the archive of HTTP requests that browsers and proxies export."""

import re
from base64 import b64decode
from binascii import Error
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, Final

from assay.base.printable import MASK
from assay.records.importers.http_bodies import HttpExchange, body_of
from assay.records.importers.http_exchanges import Exchanges
from assay.records.importers.http_facts import Headers, headers_of
from assay.records.importers.importer import ImportOptions, seconds
from assay.records.importers.json_documents import Placed, placed_entries
from assay.records.rows import TranscriptRow

OWN_NAME: Final = "assay"
"""The creator of archives that `assay console` exports."""

_MASK: Final = re.compile(re.escape(MASK))
_OWN: Final = re.compile(rb'"creator"\s*:\s*\{\s*"name"\s*:\s*"%s"' % OWN_NAME.encode())
_HEAD: Final = 4096
"""Bytes at the beginning in which the creator is looked for."""

_BEGINNING: Final = re.compile(
    rb'(?:\xef\xbb\xbf)?\s*\{\s*"log"\s*:\s*\{\s*"(?:version|creator|browser|pages|entries|comment|_)'
)


def detect(head: bytes, name: str) -> bool:
    """Return whether the file begins with the log of an archive, or has the name of one."""
    return _BEGINNING.match(head) is not None or (name.lower().endswith(".har") and head.lstrip().startswith(b"{"))


def read(pieces: Iterable[bytes], options: ImportOptions) -> Iterator[TranscriptRow]:
    """Yield the messages of all requests that have one."""
    rest = iter(pieces)
    begin = next(rest, b"")
    found = map(_exchange, placed_entries(chain([begin], rest), "HAR", "log", "entries"))
    # Journals have masked values, and so have archives that are made of them.
    mask = _MASK if _OWN.search(begin[:_HEAD]) else None
    return Exchanges((each for each in found if each is not None), options.remark, mask=mask).rows()


def _exchange(entry: Placed) -> HttpExchange | None:
    request, response = entry.value.get("request"), entry.value.get("response")
    if not isinstance(request, dict) or not isinstance(request.get("url"), str):
        return None
    answered: Mapping[str, Any] = response if isinstance(response, dict) else {}
    begin, took = seconds(entry.value.get("startedDateTime")), entry.value.get("time")
    known = begin is not None and isinstance(took, int | float) and not isinstance(took, bool) and took >= 0
    status = answered.get("status")
    return HttpExchange(
        entry.line,
        str(request.get("method")).upper(),
        request["url"],
        _headers(request),
        _body(request.get("postData")) or b"",
        status if isinstance(status, int) else 0,
        _headers(answered),
        _body(answered.get("content")),
        begin,
        begin + took / 1000 if known and begin is not None and took is not None else None,
    )


def _headers(message: Mapping[str, Any]) -> Headers:
    listed = message.get("headers")
    pairs = [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []
    named = ((each.get("name"), each.get("value")) for each in pairs)
    return headers_of((name, str(value or "")) for name, value in named if isinstance(name, str))


def _body(content: Any) -> bytes | None:
    """Return the bytes of a body; None if the archive does not have it."""
    text = content.get("text") if isinstance(content, dict) else None
    if not isinstance(text, str) or "base64" not in (content.get("encoding"), content.get("_encoding")):
        return body_of(text)
    try:
        return b64decode(text)
    except (Error, ValueError):
        return None
