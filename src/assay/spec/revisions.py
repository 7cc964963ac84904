"""
The released revisions of the protocol in the order of their dates, and the features of each one.

This is the only place that compares dates: other modules ask for a feature. Schemas and methods are elsewhere.
"""

from typing import Final, NamedTuple, TypeGuard

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


class Features(NamedTuple):
    """The features of one revision that the methods and the schema do not show."""

    handshake: bool = True
    """The conversation opens with ``initialize``. Without it each request names its revision in ``_meta``."""
    batches: bool = False
    """A frame may be an array of messages."""
    annotations: bool = False
    """Tools may have annotations."""
    titles: bool = False
    """Tools, prompts and resources may have a title for people."""
    output_schemas: bool = False
    """Tools may have an ``outputSchema``, and results ``structuredContent``."""
    bare_envelopes: bool = True
    """The schema of a request leaves out ``jsonrpc`` and ``id``."""
    failed_results: bool = False
    """Bad arguments of a tool call are answered with a failed result, which the model sees, not with an error."""
    optional_error_id: bool = False
    """An error without a readable request has no id. Before, its id is null."""
    primed_streams: bool = False
    """An HTTP stream may begin with an event that has an id and no data, so that a client can resume early."""
    capability_modes: bool = False
    """The client declares the modes of elicitation and the parts of sampling that it supports."""
    tool_names: bool = False
    """The names of tools should have 1 to 128 of certain characters."""
    ordered_lists: bool = False
    """A list of tools should have the same order each time."""
    tasks: bool = False
    """Requests may run as tasks. Later revisions have tasks as an extension."""
    error_codes: tuple[tuple[int, str], ...] = ()
    """The error codes whose data the schema defines, each with the name of its definition."""
    result_types: bool = False
    """Each result has a ``resultType``."""


_OLDEST: Final = Features()
_WITH_BATCHES: Final = Features(annotations=True, batches=True)
_WITH_OUTPUTS: Final = Features(annotations=True, titles=True, output_schemas=True)
_WITH_TASKS: Final = _WITH_OUTPUTS._replace(
    bare_envelopes=False,
    failed_results=True,
    optional_error_id=True,
    primed_streams=True,
    capability_modes=True,
    tool_names=True,
    tasks=True,
    error_codes=((-32042, "URLElicitationRequiredError"),),
)
_STATELESS: Final = _WITH_TASKS._replace(
    handshake=False,
    ordered_lists=True,
    tasks=False,
    error_codes=(
        (-32020, "HeaderMismatchError"),
        (-32021, "MissingRequiredClientCapabilityError"),
        (-32022, "UnsupportedProtocolVersionError"),
    ),
    result_types=True,
)

FEATURES: Final[dict[str | None, Features]] = {
    "2024-11-05": _OLDEST,
    "2025-03-26": _WITH_BATCHES,
    "2025-06-18": _WITH_OUTPUTS,
    "2025-11-25": _WITH_TASKS,
    "2026-07-28": _STATELESS,
}
"""The row of each revision. A new revision is one more row."""

LATEST_HANDSHAKE: Final = next(each for each in reversed(REVISIONS) if FEATURES[each].handshake)
"""The newest revision that opens with ``initialize``."""

WITHOUT_HEADER: Final = "2025-03-26"
"""The revision of an HTTP request without a version header, by the specification."""


def features_of(revision: str | None) -> Features:
    """Return the row of *revision*; that of the oldest one while no revision is agreed, or for an unknown revision."""
    return FEATURES.get(revision, _OLDEST)


def nearest_handshake(revision: str) -> str:
    """Return the newest revision with a handshake that is not newer than *revision*, which may be any text."""
    return max((each for each in REVISIONS if FEATURES[each].handshake and each <= revision), default=REVISIONS[0])


def is_known(revision: object) -> TypeGuard[str]:
    """Return whether messages can be judged by *revision*, any value of a peer."""
    return isinstance(revision, str) and revision in FEATURES


def newer_than(revision: str) -> tuple[str, ...]:
    """Return the revisions after *revision*, oldest first."""
    return REVISIONS[position(revision) :]


def named(revision: str) -> str:
    """Return the revision that a person names: ``latest`` is the last one, anything else stands for itself."""
    return LATEST if revision == "latest" else revision


def handshake(revision: str) -> bool:
    """
    Return whether a conversation in *revision* opens with ``initialize``.

    An unknown revision counts by its date: a newer one than `LATEST` has no handshake either.
    """
    row = FEATURES.get(revision)
    return row.handshake if row is not None else revision < LATEST


def position(revision: str) -> int:
    """Return the number of *revision* in the order of dates, from 1; an unknown one is a ValueError."""
    try:
        return REVISIONS.index(revision) + 1
    except ValueError:
        raise ValueError(f"there is no revision {revision!r}; there are {', '.join(REVISIONS)}") from None
