"""
The extensions that a party declares: their identifiers and settings. No I/O, no clock.

An unknown extension may do anything: its methods and results are forwarded, and only reported. A known one does not
open the door to methods that it does not have, unless it is declared in a revision that is unknown here.
"""

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, Final

from assay.base.verdict import Party, Violation
from assay.engine.budget import Budget
from assay.engine.pointers import escaped
from assay.engine.wording import found as found_words
from assay.ladder.protocol import Judge
from assay.rules import violation
from assay.spec.extensions.official import LONGEST, SKILLS, TASKS, Extension, ExtensionSet, is_identifier
from assay.spec.revisions import position

EXTENSIONS: Final = "extensions"
EXPERIMENTAL: Final = "experimental"

_RESERVED: Final = frozenset({"modelcontextprotocol", "mcp"})
"""The second labels of prefixes that belong to the protocol: ``io.modelcontextprotocol/``, ``dev.mcp/``."""

_REVISION: Final = "revision"

_MOST: Final = 64
"""Extensions of one declaration that are judged. Real clients declare fewer than ten."""


def goes_beyond(capabilities: Mapping[str, Any] | None, known: ExtensionSet) -> bool:
    """Return whether a party declares an unknown extension or an experimental capability, which may do anything."""
    if not capabilities:
        return False
    declared = capabilities.get(EXTENSIONS)
    unknown = isinstance(declared, dict) and (
        not known.identifiers.keys() >= declared.keys()
        or any(has_revision(capabilities, known.identifiers[each]) for each in declared)
    )
    return unknown or bool(capabilities.get(EXPERIMENTAL))


def has_revision(capabilities: Mapping[str, Any] | None, extension: Extension) -> bool:
    """
    Return whether a party declares *extension* in a revision that is unknown here.

    SEP-3392: an extension that makes a breaking change adds a `revision` to its settings, and without one it is the
    first revision. That is the one which our definitions have.
    """
    return _REVISION in settings_of(capabilities, extension.identifier)


def declares(capabilities: Mapping[str, Any] | None, identifier: str) -> bool | None:
    """Return whether a party declares the extension *identifier*; None while its capabilities are unknown."""
    if capabilities is None:
        return None
    declared = capabilities.get(EXTENSIONS)
    return isinstance(declared, dict) and identifier in declared


def settings_of(capabilities: Mapping[str, Any] | None, identifier: str) -> Mapping[str, Any]:
    """Return the settings that a party declares the extension *identifier* with; empty without any."""
    declared = (capabilities or {}).get(EXTENSIONS)
    settings = declared.get(identifier) if isinstance(declared, dict) else None
    return settings if isinstance(settings, dict) else {}


def check(party: Party, capabilities: Mapping[str, Any], at: str, judge: Judge, budget: Budget) -> list[Violation]:
    """Return the violations of what *party* declares; *at* is the pointer to its *capabilities*."""
    declared = capabilities.get(EXTENSIONS)
    found: list[Violation] = []
    if isinstance(declared, dict):
        for identifier, settings in islice(declared.items(), _MOST):
            here = f"{at}/{EXTENSIONS}/{escaped(identifier[:LONGEST])}"
            found += _check_one(party, identifier, settings, here, judge, budget)
    if party is Party.SERVER:
        found += _check_legacy(capabilities, at, judge)
        found += _check_resources(capabilities, at, judge)
    return found


def _check_one(
    party: Party, identifier: str, settings: Any, at: str, judge: Judge, budget: Budget
) -> Iterator[Violation]:
    if not is_identifier(identifier):
        yield violation(
            "extension/identifier",
            at,
            expected="a dotted prefix, a slash and a name",
            found=f'"{identifier[:60]}"',
            revision=judge.revision,
        )
        return
    extension = judge.extensions.identifiers.get(identifier)
    if extension is None:
        yield from _check_reserved(identifier, at, judge)
    if not isinstance(settings, dict):
        yield _wrong_settings(at, "an object ({} for no settings)", found_words(settings), judge)
        return
    if extension is not None and _REVISION in settings:
        yield _unknown_revision(at, settings[_REVISION], judge)
        return
    # Before its first revision an extension means nothing, and may be declared in any way.
    defined = extension is not None and position(judge.revision) >= extension.first
    definition = dict(extension.settings).get(party.value) if extension is not None and defined else None
    if extension is not None and definition is not None:
        faults, _ = judge.extension_definition(extension, definition).check(
            "extension/settings", settings, at, judge.revision, budget
        )
        yield from faults


def _check_reserved(identifier: str, at: str, judge: Judge) -> Iterator[Violation]:
    """Yield a report about an unknown identifier that only the protocol may use: it may be newer than Assay."""
    labels = identifier.partition("/")[0].split(".")
    if len(labels) > 1 and labels[1].lower() in _RESERVED:
        known = ", ".join(sorted(judge.extensions.identifiers))
        yield violation(
            "extension/reserved", at, expected=f"one of {known}", found=f'"{identifier[:60]}"', revision=judge.revision
        )


def _check_legacy(capabilities: Mapping[str, Any], at: str, judge: Judge) -> list[Violation]:
    """Return the violation of a server that declares tasks as the revision before had them."""
    if judge.features.handshake or TASKS.name not in capabilities:
        return []
    return [
        violation(
            "tasks/legacy",
            f"{at}/{TASKS.name}",
            expected=f'"{TASKS.identifier}" in {EXTENSIONS}',
            found="the capability tasks",
            revision=judge.revision,
        )
    ]


def _check_resources(capabilities: Mapping[str, Any], at: str, judge: Judge) -> list[Violation]:
    """Return the violation of a server that has skills, and not the resources that their files are."""
    judged = declares(capabilities, SKILLS.identifier) and not has_revision(capabilities, SKILLS)
    if not judged or "resources" in capabilities:
        return []
    return [
        violation(
            "skills/resources", at, expected="the capability resources", found="skills alone", revision=judge.revision
        )
    ]


def _unknown_revision(at: str, revision: Any, judge: Judge) -> Violation:
    return violation(
        "extension/revision",
        f"{at}/{_REVISION}",
        expected="no revision, which means the first one",
        found=found_words(revision),
        revision=judge.revision,
    )


def _wrong_settings(at: str, expected: str, found: str, judge: Judge) -> Violation:
    return violation("extension/settings", at, expected=expected, found=found, revision=judge.revision)
