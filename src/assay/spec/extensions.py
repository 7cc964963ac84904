"""
The official extensions as a table: identifiers, methods, result types, settings, and the files that have their facts.

No I/O, no state.
"""

import re
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Final, NamedTuple

from assay.spec.methods import Method, PartyName, extension_method
from assay.spec.revisions import position

_LABEL: Final = r"[A-Za-z](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
_NAME: Final = r"(?:[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)?"
_IDENTIFIER: Final = re.compile(rf"{_LABEL}(?:\.{_LABEL})*/{_NAME}")

LONGEST: Final = 256
"""Characters of an identifier: the official ones have 30, and a pattern over a megabyte takes time."""


def is_identifier(text: str) -> bool:
    """Return whether *text* can name an extension: labels with dots between, a slash, and a name or nothing."""
    return len(text) <= LONGEST and _IDENTIFIER.fullmatch(text) is not None


class ResultForm(NamedTuple):
    """A result type that an extension adds to the answers to one method."""

    kind: str
    """The value of `resultType`."""
    method: str
    definition: str


class Extension(NamedTuple):
    """One extension of the protocol."""

    name: str
    """Its short name: in commands, files and rules."""
    identifier: str
    """Its name in capabilities."""
    standing: str
    """How far its specification has come, for people."""
    facts: str
    """The file with its definitions."""
    first: int
    """The number of the first revision that has it, as in the facts."""
    methods: tuple[Method, ...] = ()
    results: tuple[ResultForm, ...] = ()
    settings: tuple[tuple[PartyName, str], ...] = ()
    """The parties that declare it with settings of a definition, and the definition."""
    reserved: tuple[str, ...] = ()
    """Beginnings of method names that belong to it: no other extension has such a method."""
    proved: str | None = None
    """SHA-256 of the official schema that its facts were last proved equal to; None without an official schema."""


# A row: revisions, sender, method, the definition of the message, of its result, and of its params where the message
# has less than is required.
_TASKS: Final = """
5-5  client  tasks/get                 GetTaskRequest          GetTaskResult     TaskRequestParams
5-5  client  tasks/update              UpdateTaskRequest       UpdateTaskResult  UpdateTaskRequestParams
5-5  client  tasks/cancel              CancelTaskRequest       CancelTaskResult  TaskRequestParams
5-5  server  notifications/tasks       TaskStatusNotification  -                 TaskStatusNotificationParams
"""
_SKILLS: Final = """
1-5  client  skills/list               ListSkillsRequest       ListSkillsResult
1-5  client  skills/get                GetSkillRequest         GetSkillResult
1-5  client  resources/directory/read  ReadDirectoryRequest    ReadDirectoryResult
"""


def _methods(table: str) -> tuple[Method, ...]:
    return tuple(extension_method(row) for row in table.strip().splitlines())


TASKS: Final = Extension(
    name="tasks",
    identifier="io.modelcontextprotocol/tasks",
    standing="official; its specification is still a draft",
    facts="tasks.txt",
    first=5,
    methods=_methods(_TASKS),
    results=(ResultForm("task", "tools/call", "CreateTaskResult"),),
    settings=(("client", "TasksExtensionCapability"), ("server", "TasksExtensionCapability")),
    reserved=("tasks/", "notifications/tasks/"),
    proved="10933a5003097bbccb03d964e6a5f7a2819cc4d7a1d07e27c6765cbf5da35c5c",
)
SKILLS: Final = Extension(
    name="skills",
    identifier="io.modelcontextprotocol/skills",
    standing="official",
    facts="skills.txt",
    first=1,
    methods=_methods(_SKILLS),
    settings=(("server", "SkillsServerCapability"),),
    reserved=("skills/", "resources/directory/read"),
)
APPS: Final = Extension(
    name="ui",
    identifier="io.modelcontextprotocol/ui",
    standing="official",
    facts="apps.txt",
    first=1,
    settings=(("client", "UiClientCapability"),),
    reserved=("ui/",),
)

OFFICIAL: Final = (TASKS, SKILLS, APPS)
"""Every official extension."""

EXTENSIONS: Final[Mapping[str, Extension]] = {each.name: each for each in OFFICIAL}
"""The extensions by their short names."""

BY_IDENTIFIER: Final[Mapping[str, Extension]] = {each.identifier: each for each in OFFICIAL}
"""The extensions by the identifiers that parties declare."""


class ExtendedMethod(NamedTuple):
    """A method, and the extension that it belongs to."""

    extension: Extension
    method: Method


@cache
def extended_methods(revision: str) -> Mapping[str, ExtendedMethod]:
    """Return the methods of all extensions in *revision*, by name."""
    return MappingProxyType(
        {
            method.name: ExtendedMethod(each, method)
            for each in OFFICIAL
            for method in each.methods
            if revision in method.revisions
        }
    )


def owner_of(method: str, revision: str) -> Extension | None:
    """Return the extension that names such as *method* are reserved for in *revision*; None without one."""
    now = position(revision)
    return next((each for each in OFFICIAL if now >= each.first and method.startswith(each.reserved)), None)
