"""
Judge a server card, and the entries of an AI catalog that lead to cards: documents, not messages. No I/O, no clock.

Whatever a document contains, its violations are only reported.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import islice
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from assay.base.loopback import leads_here
from assay.base.verdict import Violation
from assay.engine.fault import Fault
from assay.engine.pointers import escaped
from assay.engine.wording import found as found_words
from assay.engine.wording import listed, shown
from assay.ladder import syntax
from assay.ladder.protocol import definition_of
from assay.rules import broken, violation
from assay.spec.extensions.official import OFFICIAL, SERVER_CARD
from assay.spec.revisions import LATEST

NAME: Final = "server-card"
"""The name below the path of an MCP endpoint that is reserved for its card."""

MEDIA_TYPE: Final = "application/mcp-server-card+json"

DOCUMENT_BYTES: Final = 1 << 20
"""Bytes of a card or a catalog that is judged. A card has one or two thousand; a catalog has some hundred an entry."""

MOST_LISTED: Final = 20
"""Violations of one document that are listed, as many as of a message."""

_MOST_COUNTED: Final = 200
"""Violations that are counted: a document can have 40,000, which take two seconds, and other clients wait meanwhile."""

_PRIMITIVES: Final = ("tools", "prompts", "resources", "resourceTemplates")

_VARIABLE: Final = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")

_RANGE: Final = re.compile(r"[\^~<>=]|.*(?:\|\||\s-\s|,\s*[\^~<>=])|v?(?:[0-9]+\.)*[xX*](?:\.|$)")
"""How a range of versions begins, or is joined: ``^1.2``, ``>=1``, ``1 - 2``, ``1.x``. Not ``1.0.0-x.7``."""

_LONGEST_VERSION: Final = 255
"""Characters of a version by its definition; a longer one is a violation of that."""

_LONGEST_URL: Final = 8192
"""Characters of a URL that is parsed: servers accept about as many."""


class DocumentFindings(NamedTuple):
    """The listed violations of a document, and at least how many more there are."""

    violations: tuple[Violation, ...]
    more: int = 0

    def and_also(self, others: Iterable[Violation], more: int = 0) -> "DocumentFindings":
        """Return these and *others*, as many as are listed."""
        every = (*self.violations, *islice(others, _MOST_COUNTED))
        return DocumentFindings(every[:MOST_LISTED], self.more + more + max(0, len(every) - MOST_LISTED))


NOTHING: Final = DocumentFindings(())


def read_document(content: bytes) -> Any | Violation:
    """Return the JSON value of a document, or the violation: exactly one value with one reading, as for messages."""
    value = syntax.read(content)
    if not isinstance(value, Violation):
        return value
    # That of the rule is about messages.
    hint = "Check the URL or the path, and the program that writes the document."
    return replace(value, action="report", hint=hint if value.rule == "syntax/json" else value.hint)


def check_card(card: Any, at: str = "") -> DocumentFindings:
    """Return the violations of *card*, which is at the pointer *at* of its document."""
    found = _check_schema(card, at)
    return found.and_also(_check_members(card, at)) if isinstance(card, dict) else found


def check_catalog(catalog: Any) -> DocumentFindings:
    """Return the violations of the entries of an AI *catalog* that lead to server cards, and of the cards in it."""
    entries = catalog.get("entries") if isinstance(catalog, dict) else None
    if not isinstance(entries, list):
        what = "an object with an array of entries"
        return NOTHING.and_also([violation("card/catalog", expected=what, found=found_words(catalog))])
    found = NOTHING
    for number, entry in enumerate(entries):
        at = f"/entries/{number}"
        found = found.and_also(_check_entry(entry, at))
        if is_card_entry(entry) and "data" in entry:
            found = found.and_also(*check_card(entry["data"], f"{at}/data"))
        if found.more:
            # More would not be listed, and thousands of invalid cards take seconds to explain.
            break
    return found


def is_card_entry(entry: Any) -> bool:
    """
    Return whether an entry of an AI catalog is about a server card: by its type, or by what it leads to.

    A catalog also lists agents, skills and the like; their entries are not judged.
    """
    if not isinstance(entry, dict):
        return False
    kind, url, data = entry.get("type"), entry.get("url"), entry.get("data")
    named = "$schema" in data and "server-card" in str(data["$schema"])[:200] if isinstance(data, dict) else False
    leads = isinstance(url, str) and url.endswith("/server-card")
    known = (each for each in (kind, entry.get("mediaType")) if isinstance(each, str))
    return leads or named or any("mcp-server" in each[:200].lower() for each in known)


# ── a card ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _check_schema(card: Any, at: str) -> DocumentFindings:
    # The facts of the card have one version for all revisions, and lie on top of the newest.
    validator = OFFICIAL.schema(SERVER_CARD, LATEST).validator("ServerCard", formats=True)
    faults = validator.faults(card, at=at, most=MOST_LISTED)
    return DocumentFindings(tuple(map(_by_schema, faults.distinct())), faults.more)


def _by_schema(fault: Fault) -> Violation:
    if fault.keyword == "format":
        return broken("card/format", fault)
    definition = definition_of(fault.schema_at) or "ServerCard"
    hint = f"`assay schemas show {SERVER_CARD.name} {definition}` shows the expected shape."
    return broken("card/schema", fault, detail=definition, hint=hint)


def _check_members(card: Mapping[str, Any], at: str) -> Iterator[Violation]:
    """Yield the violations that no schema finds."""
    version = card.get("version")
    if isinstance(version, str) and len(version) <= _LONGEST_VERSION and _RANGE.match(version.strip()):
        yield violation("card/version", f"{at}/version", expected="one version, such as 1.4.0", found=shown(version))
    for name in _PRIMITIVES:
        if name in card:
            yield violation("card/primitives", f"{at}/{name}", expected=f"no {name}", found=found_words(card[name]))
    for number, remote in enumerate(_list(card.get("remotes"))):
        if isinstance(remote, dict):
            yield from _check_remote(remote, f"{at}/remotes/{number}")


def _check_remote(remote: Mapping[str, Any], at: str) -> Iterator[Violation]:
    url = remote.get("url")
    if isinstance(url, str) and len(url) <= _LONGEST_URL:
        yield from _check_variables(url, f"{at}/url", remote)
        yield from _check_url(url, f"{at}/url")
    for number, header in enumerate(_list(remote.get("headers"))):
        if isinstance(header, dict):
            yield from _check_header(header, f"{at}/headers/{number}", remote)
    yield from _check_inputs(remote, at)


def _check_header(header: Mapping[str, Any], at: str, remote: Mapping[str, Any]) -> Iterator[Violation]:
    value = header.get("value")
    if isinstance(value, str) and len(value) <= _LONGEST_URL:
        yield from _check_variables(value, f"{at}/value", header, remote)
    yield from _check_input(header, at)
    yield from _check_inputs(header, at)


def _check_variables(text: str, at: str, *owners: Mapping[str, Any]) -> Iterator[Violation]:
    """Yield a violation if *text* has variables that none of its *owners* defines."""
    known = [_variables(each) for each in owners]
    missing = [name for name in dict.fromkeys(_VARIABLE.findall(text)) if not any(name in each for each in known)]
    if missing:
        names = listed([f"`{name}`" for name in missing[:4]], len(missing))
        yield violation("card/remote", at, expected=f"a definition of {names} in variables", found="none")


def _check_url(url: str, at: str) -> Iterator[Violation]:
    """Yield the violations of the URL of a remote. Its variables can be anything, a host and a port included."""
    if not url.startswith(("http://", "https://")):
        # One that begins with a variable; any other breaks its definition.
        return
    try:
        # A variable stands for some text; as a port only a number can be parsed.
        split = urlsplit(_VARIABLE.sub("0", url))
        host, password = split.hostname or "", split.password
        _ = split.port
    except ValueError:
        host, password = "", None
    if not host:
        yield violation("card/remote", at, expected="a URL with a host", found=shown(url))
    elif password is not None:
        # Not shown: it is a secret.
        yield violation("card/secret", at, expected="a URL without a password", found="a URL with a password")
    elif split.scheme == "http" and not leads_here(host) and not _VARIABLE.search(urlsplit(url).netloc):
        yield violation("card/remote", at, expected="an https URL", found=shown(url))


def _check_inputs(owner: Mapping[str, Any], at: str) -> Iterator[Violation]:
    for name, each in _variables(owner).items():
        if isinstance(each, dict):
            yield from _check_input(each, f"{at}/variables/{escaped(name)}")


def _check_input(given: Mapping[str, Any], at: str) -> Iterator[Violation]:
    """Yield a violation if an input that is marked as a secret has a fixed value. The value itself is not shown."""
    if given.get("isSecret") is not True:
        return
    for name in ("value", "default"):
        value = given.get(name)
        if isinstance(value, str) and value and _VARIABLE.search(value[:_LONGEST_URL]) is None:
            yield violation("card/secret", f"{at}/{name}", expected=f"no {name} for a secret", found="one")


def _variables(owner: Mapping[str, Any]) -> Mapping[str, Any]:
    variables = owner.get("variables")
    return variables if isinstance(variables, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


# ── an entry of a catalog ────────────────────────────────────────────────────────────────────────────────────────────


def _check_entry(entry: Any, at: str) -> Iterator[Violation]:
    if not isinstance(entry, dict):
        yield violation("card/catalog", at, expected="an object", found=found_words(entry))
        return
    if not is_card_entry(entry):
        return
    for name, expected in (("identifier", "a text"), ("type", f'"{MEDIA_TYPE}"')):
        value = entry.get(name)
        if not isinstance(value, str) or not value or (name == "type" and value != MEDIA_TYPE):
            found = found_words(value) if name in entry else "none"
            yield violation("card/catalog", f"{at}/{name}", expected=expected, found=found)
    places = [name for name in ("url", "data") if name in entry]
    if len(places) != 1:
        yield violation(
            "card/catalog", at, expected="exactly one of url and data", found=" and ".join(places) or "none"
        )
    if "url" in entry and not isinstance(entry["url"], str):
        yield violation("card/catalog", f"{at}/url", expected="a URL", found=found_words(entry["url"]))
