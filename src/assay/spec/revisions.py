"""The released revisions of the protocol, in the order of their dates. No schema, no method is known here."""

from typing import Final

REVISIONS: Final = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28")
"""Oldest first. They are ISO dates: plain string comparison orders them."""

LATEST: Final = REVISIONS[-1]

PROVED: Final = {
    "2024-11-05": "61cea2392d4f284092d09bc84b9ac488c0d5618ac2b38a56942fc5b99fd960ce",
    "2025-03-26": "e720669548c8100a4282c49e580efd6ddf7f28899ea786fc8db251dbdb356131",
    "2025-06-18": "af845e7e5b9d27107d1690f0936022546177a1403e63ffb11470135b296a2e01",
    "2025-11-25": "268a5f82ba70fd7e4b6dc4aa1e64f116f74b4d0edcb69dc046829c79dd4e97e7",
    "2026-07-28": "ef70b61f99b6d2e5e3b46863822eab08dff6a45bedc7a08914e0e5b133f40203",
}
"""
SHA-256 of the official ``schema/<revision>/schema.json`` that our facts were last proved equal to.

Released files do change (2025-06-18 and 2025-11-25 were corrected in July 2026): another copy may give another verdict.
"""

PROVED_AT: Final = "b0f60ba5409db7a6582440a7b473cc0398890f15"
"""The commit of modelcontextprotocol/modelcontextprotocol those files were taken from (2026-08-22)."""


def named(revision: str) -> str:
    """The revision that a person names: ``latest`` is the last one, anything else stands for itself."""
    return LATEST if revision == "latest" else revision


def handshake(revision: str) -> bool:
    """Whether a conversation in *revision* opens with ``initialize``; later ones name the revision in each request."""
    return revision < "2026-07-28"


def position(revision: str) -> int:
    """The number of *revision* in the order of dates, from 1; ValueError with the known ones for any other value."""
    try:
        return REVISIONS.index(revision) + 1
    except ValueError:
        raise ValueError(f"there is no revision {revision!r}; there are {', '.join(REVISIONS)}") from None
