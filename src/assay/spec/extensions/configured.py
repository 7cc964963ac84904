"""
Extensions that an operator configured: an identifier, the definitions of a document, and methods that use them.

They are judged as the official ones are. No I/O, no state.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

from assay.spec.document_facts import DocumentError, DocumentFacts
from assay.spec.extensions.official import LONGEST, OFFICIAL, Extension, is_identifier
from assay.spec.methods import Method, PartyName, revisions_of
from assay.spec.revisions import LATEST, REVISIONS, position
from assay.spec.schema import extension_schema, facts, suggestion

NOTIFICATIONS: Final = "notifications/"
"""How the methods of notifications begin; every other method is one of requests."""

# By the specification every message may have these beside its own members.
_OF_PARAMS: Final = ("_meta",)
_OF_RESULTS: Final = ("_meta", "resultType")


class ConfiguredMethod(NamedTuple):
    """A method of a configured extension."""

    name: str
    sender: PartyName
    params: str | None
    """The definition of its params; None for params that are not judged."""
    result: str | None
    """The definition of its result; None for a notification, or for a result that is not judged."""


def check_identifier(identifier: str) -> None:
    """Raise `ValueError` unless *identifier* can name an extension that is not official."""
    if not is_identifier(identifier) or identifier.endswith("/"):
        raise ValueError(f"expected an identifier such as com.example/name, found {identifier[:80]!r}")
    if identifier in OFFICIAL.identifiers:
        raise ValueError(f"{identifier} is an official extension, which is judged already")


def check_method(name: str) -> None:
    """Raise `ValueError` unless *name* can be a method of an extension that is not official."""
    if not name or len(name) > LONGEST or not name.isprintable():
        raise ValueError("a method needs a name of printable characters")
    if elsewhere := revisions_of(name):
        raise ValueError(f"{name} is a method of {', '.join(elsewhere)}")
    if owner := OFFICIAL.owner(name, LATEST):
        raise ValueError(f"{name} is reserved for the extension {owner.identifier}")


def configured(identifier: str, file: str, document: DocumentFacts, methods: Iterable[ConfiguredMethod]) -> Extension:
    """
    Return the extension; *file* is the name of its *document* for people.

    Raises `DocumentError` for a definition that is missing or cannot be compiled.
    """
    check_references(document)
    extension = Extension(
        name=identifier,
        identifier=identifier,
        standing="configured",
        facts=file,
        first=1,
        methods=tuple(_method(each, document, file) for each in methods),
        document=document,
    )
    check_compiles(extension)
    return extension


def check_references(document: DocumentFacts) -> None:
    """Raise `DocumentError` for a reference to what neither the document nor the latest revision defines."""
    for name, user in document.lacking.items():
        if not facts().defines(name, position(LATEST)):
            near = suggestion(name, document.definitions(0))
            raise DocumentError(f"{user} refers to {name}, which neither the file nor {LATEST} defines{near}")


def check_compiles(extension: Extension) -> None:
    """Raise `DocumentError` if a definition of *extension* cannot be used on top of the latest revision."""
    try:
        extension_schema(extension, LATEST).check()
    except ValueError as error:
        raise DocumentError(str(error)) from None


def _method(method: ConfiguredMethod, document: DocumentFacts, file: str) -> Method:
    for name, beside in ((method.params, _OF_PARAMS), (method.result, _OF_RESULTS)):
        if name is not None:
            if not document.defines(name, 0):
                near = suggestion(name, document.definitions(0))
                raise DocumentError(f"{method.name}: {file} has no definition {name!r}{near}")
            document.admit(name, beside)
    return Method(
        name=method.name,
        kind="notification" if method.name.startswith(NOTIFICATIONS) else "request",
        senders=(method.sender,),
        revisions=REVISIONS,
        definition="",
        result=method.result,
        capability=None,
        params=method.params,
    )
