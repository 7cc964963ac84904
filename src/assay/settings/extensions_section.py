"""The extensions that an operator configured, with checks of their values. Reads no schema."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from assay.settings.field_rules import word

SENDERS: Final = ("client", "server")

SUFFIX: Final = ".json"
"""How the name of a file with a schema ends. Another name is that of a schema that `assay schemas add` has read."""


def anchored(value: str, directory: str) -> str:
    """
    Return the path of the schema *value*, which is in *directory* or below it; the name of an added schema as it is.

    Raises `ValueError`. A file elsewhere is refused, also by way of a link: settings may come from a stranger, who must
    not choose which files are read.
    """
    if not value.endswith(SUFFIX):
        return value
    home, path = os.path.realpath(directory), os.path.realpath(os.path.join(directory, value))
    if os.path.isabs(value) or not path.startswith(os.path.join(home, "")):
        raise ValueError(
            f"expected a file in the directory of the settings, or below it, found {value[:80]!r}; "
            "assay schemas add reads a file from elsewhere"
        )
    return path


@dataclass(frozen=True, slots=True)
class ExtensionMethod:
    """One method of an extension. A method that begins with ``notifications/`` is a notification."""

    sender: str = word("", lambda: SENDERS)
    """The party that sends it: ``client`` or ``server``."""

    params: str | None = None
    """The definition of its params; if empty, they are not judged."""

    result: str | None = None
    """The definition of its result; if empty, it is not judged."""

    def __post_init__(self) -> None:
        if self.sender not in SENDERS:
            raise ValueError("a method needs a sender: client or server")


@dataclass(frozen=True, slots=True)
class ExtensionSettings:
    """One extension that is not official."""

    schema: str = field(default="", metadata={"anchor": anchored})
    """
    The JSON Schema with its definitions: a file that ends with ``.json``, relative to the file of the settings, or the
    name of a schema that ``assay schemas add`` has read.
    """

    methods: Mapping[str, ExtensionMethod] = field(default_factory=dict)
    """Its methods, by name."""

    def __post_init__(self) -> None:
        if not self.schema:
            raise ValueError("an extension needs a schema: a file, or the name of an added schema")


def check(extensions: Mapping[str, Any]) -> None:
    """Raise `ValueError` for an extension or a method that cannot be configured."""
    from assay.spec.extensions.configured import NOTIFICATIONS, check_identifier, check_method  # noqa: PLC0415 - few

    seen: set[str] = set()
    for identifier, extension in extensions.items():
        check_identifier(identifier)
        for name, method in extension.methods.items():
            check_method(name)
            if name in seen:
                raise ValueError(f"{name}: two extensions have this method")
            seen.add(name)
            if method.result is not None and name.startswith(NOTIFICATIONS):
                raise ValueError(f"{name}: a notification has no result; remove it")
