"""Writes the documentation page on what changed between revisions, from the compiled revisions."""

from collections.abc import Iterable
from itertools import pairwise
from typing import Final

from assay.spec.methods import methods
from assay.spec.revision_diff import RevisionChange, changes
from assay.spec.revisions import REVISIONS, handshake
from assay.spec.schema import protocol_schema

_INTRODUCTION: Final = """\
<!-- Generated from the facts by `make docs`: change those, not this page. -->

# What changed between revisions

You move a client or a server to a newer revision of the protocol, or the other side has moved and refuses you.
This page lists what each revision changed on the wire: methods first, then definitions, then fields.
`assay schemas diff OLD NEW` compares any two revisions, and `--definition Tool` shows one definition only.

| revision | opens with | methods | definitions |
| --- | --- | --- | --- |
"""

_LEGEND: Final = """
*Breaks* says whether a receiver that judges by the older revision refuses something the newer one allows there.
An empty cell means that the place alone does not tell.
`[]` stands for the items of an array, `{}` for the values of an object.
Rows with several definitions say that the same happened in each of them.
Up to 2025-06-18 the definitions of requests and notifications leave out `jsonrpc` and `id`, though messages have them.
"""


def revisions_page() -> str:
    """Return the whole page, in Markdown; the same text on every run."""
    rows = "".join(_row(_revision(revision)) for revision in REVISIONS)
    parts = [_INTRODUCTION + rows + _LEGEND]
    for old, new in pairwise(REVISIONS):
        parts += [f"## {old} → {new}\n", _methods(old, new) + section(changes(old, new))]
    return "\n".join(parts)


def section(found: list[RevisionChange]) -> str:
    """Return the added and removed definitions and a table of the other changes, in Markdown."""
    text = ""
    for title, kind in (("New definitions", "added"), ("Definitions that are gone", "removed")):
        text += _listed(title, [change.definition for change in found if not change.field and change.kind == kind])
    rows = "".join(_row(cells) for cells in _cells(found))
    return text + (f"| definition | field | change | breaks |\n| --- | --- | --- | --- |\n{rows}" if rows else "")


def _methods(old: str, new: str) -> str:
    came = _listed("New methods", [name for name in methods(new) if name not in methods(old)])
    return came + _listed("Methods that are gone", [name for name in methods(old) if name not in methods(new)])


def _revision(revision: str) -> list[str]:
    opening = "`initialize`" if handshake(revision) else "any request; each names its revision"
    return [revision, opening, str(len(methods(revision))), str(len(protocol_schema(revision).definitions))]


def _listed(title: str, names: Iterable[str]) -> str:
    text = ", ".join(f"`{name}`" for name in names)
    return f"{title}: {text}.\n\n" if text else ""


def _cells(found: list[RevisionChange]) -> list[list[str]]:
    """Return a row for each change within a definition; definitions that changed alike share a row."""
    alike: dict[tuple[str, str, bool | None], list[str]] = {}
    for change in found:
        if change.field or change.kind == "changed":
            alike.setdefault((change.field, change.words, change.breaking), []).append(change.definition)
    return [
        [", ".join(f"`{name}`" for name in names), f"`{field}`" if field else "", words, _breaks(breaking)]
        for (field, words, breaking), names in alike.items()
    ]


def _breaks(breaking: bool | None) -> str:
    return {True: "yes", False: "no", None: ""}[breaking]


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |\n".replace("|  |", "| |")
