"""
Load an operator's own schema in place of the bundled one (specs/003), from a file or a URL.

The only code that ever fetches a schema, and only the named one: references must resolve inside the document, or the
document is refused.
"""

import logging
from typing import Any, Final
from urllib.parse import urlsplit

from assay.judge import syntax
from assay.model.limits import DEFAULT
from assay.model.verdict import Violation
from assay.schema.admission import SchemaLimits, SchemaRefusal, compile_untrusted
from assay.schema.compiled import Compiled, compile_schema
from assay.schema.pointers import as_fragment, escaped

# An override is an operator's own schema, so it may be larger than a tool's: a hundred times the official one, all of
# whose definitions are compiled together here. The limits keep a wrong URL from filling the memory, and its content
# from crashing the engine.
_MOST_BYTES: Final = 16 << 20
_OVERRIDE: Final = SchemaLimits(size=_MOST_BYTES, subschemas=100_000, cost=1_000_000)
_FETCH_SECONDS: Final = 10


class Override:
    """An operator's schema document with its definitions. Raises `ValueError` for an invalid one."""

    def __init__(self, document: Any) -> None:
        member = "$defs" if isinstance(document, dict) and "$defs" in document else "definitions"
        definitions = document.get(member) if isinstance(document, dict) else None
        if not isinstance(definitions, dict) or not definitions:
            raise ValueError("it has neither $defs nor definitions")
        self.definitions: dict[str, Any] = definitions
        self._document = document
        self._at = {name: as_fragment(f"/{member}/{escaped(name)}") for name in definitions}
        self._validators: dict[str, Compiled] = {}
        # Compiled once with a root that uses every definition, to find invalid definitions and references now.
        references = [{"$ref": at} for at in self._at.values()]
        if "$ref" in document:
            # Up to draft 7 a reference hides all keywords beside it.
            references.append({"$ref": document["$ref"]})
        root = {**{key: value for key, value in document.items() if key != "$ref"}, "allOf": references}
        whole = compile_untrusted(root, limits=_OVERRIDE)
        if isinstance(whole, SchemaRefusal):
            raise ValueError(f"{whole.at}: expected {whole.expected}, found {whole.found} [{whole.rule}]")
        if not whole.is_sure:
            # A definition of the protocol must be judged completely or not at all.
            raise ValueError("expected patterns without look-around and back-references [contract/pattern]")
        self.methods: dict[str, str] = {}
        """The definitions of messages by method."""
        for name, schema in definitions.items():
            properties = schema.get("properties") if isinstance(schema, dict) else None
            method = properties.get("method") if isinstance(properties, dict) else None
            if isinstance(method, dict) and isinstance(method.get("const"), str):
                self.methods[method["const"]] = name

    def definition(self, name: str) -> Any:
        """Return the schema of the definition *name*."""
        return self.definitions[name]

    def validator(self, name: str) -> Compiled:
        """Return the validator for the definition *name*."""
        if name not in self._validators:
            self._validators[name] = compile_schema(self._document, at=self._at[name])
        return self._validators[name]


def load(uri: str) -> Override | None:
    """Load the schema at *uri*; None, with a critical log line, if it cannot be used."""
    try:
        document = syntax.read(_fetched(uri), DEFAULT.depth)
        if isinstance(document, Violation):
            raise ValueError(str(document))
        return Override(document)
    except Exception as error:
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        logging.getLogger("assay").critical(
            "schema override %s: %s; the bundled schema stays in force", shown_uri(uri), reason
        )
        return None


def _fetched(uri: str) -> bytes:
    """Fetch the text of a schema. Only a schema that the operator named is ever fetched."""
    # 15 ms, which only programs with a schema of their own take longer to start.
    from urllib.request import url2pathname, urlopen  # noqa: PLC0415

    parts = urlsplit(uri)
    if parts.scheme in {"http", "https"}:
        if "@" in parts.netloc:
            # urllib takes it for a part of the host, and would name it in its error.
            raise ValueError("an address with a user name or password is not supported")
        with urlopen(uri, timeout=_FETCH_SECONDS) as answer:  # noqa: S310 - the scheme is checked above
            text: bytes = answer.read(_MOST_BYTES + 1)
    else:
        with open(url2pathname(parts.path) if parts.scheme == "file" else uri, "rb") as file:
            text = file.read(_MOST_BYTES + 1)
    if len(text) > _MOST_BYTES:
        raise ValueError(f"it has more than {_MOST_BYTES:,} bytes")
    return text


def shown_uri(uri: str) -> str:
    """Return *uri* for the log and for people, without its name, password and query, which may be secret."""
    head, separator, rest = uri.partition("?")[0].rpartition("@")
    return f"{head.partition('://')[0]}://…@{rest}" if separator and "://" in head else uri.partition("?")[0]
