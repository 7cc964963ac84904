"""The rows of the console's API, as `docs/console-api.md` describes them. Data only."""

from typing import Any, Final, NotRequired, TypedDict

VERSION: Final = 1
"""Version of the API. It changes when a member changes its meaning, not when one is added."""

COLUMNS: Final = (
    *("seq", "time", "server", "session", "party", "kind", "method", "tool", "id", "of"),
    *("latency", "guard", "in", "out", "verdict", "status", "rules", "at", "principal", "revision", "repeated"),
)
"""The cells of a row of the stream, in order."""

LISTS: Final = ("tools", "prompts", "resources", "resourceTemplates")
"""The lists of a server."""


class ConsoleLimits(TypedDict):
    """The limits of this console: `rows` and `detailBytes` of the store, `exportRows` of one export."""

    rows: int
    detailBytes: int
    exportRows: int


class DroppedCounts(TypedDict):
    """What is not here: rows and details that were dropped as the oldest, and findings that are in no group."""

    rows: int
    details: int
    groups: int


class ServerAnswer(TypedDict):
    """One server of one source."""

    id: int
    name: str
    source: str
    """``journal`` or ``file``."""
    label: str
    """The masked command or URL; of a file, its name."""
    address: str
    """The URL of the guard in front of it, for clients over HTTP; otherwise ""."""
    transport: str
    mode: str
    state: str
    """``running``, ``idle``, ``failed`` or ``ended``."""
    why: str
    stderr: str
    revisions: list[str]
    payloads: bool | None
    """Whether its messages are recorded; None if none has come yet."""
    lock: str
    """``locked``, ``none``, or "" if it is unknown."""
    tools: int | None
    tokens: int | None
    messages: int
    findings: int
    blocked: int
    restarts: int
    callsPerMinute: int
    calls: list[int]
    """Calls of the last minute, in 12 parts, oldest first."""
    p95: float | None
    first: float | None
    last: float | None
    notes: list[str]
    """Remarks about a file, such as what its format cannot show."""


class StateAnswer(TypedDict):
    """The answer of ``GET api/state``."""

    api: int
    assay: str
    epoch: str
    """Changes with each start of the console; ids of events begin with it."""
    now: float
    tick: int
    """Counts all changes; ``GET api/events`` sends those behind it."""
    newest: int
    """The seq of the newest row, 0 without one."""
    oldest: int
    limits: ConsoleLimits
    dropped: DroppedCounts
    loading: list[str]
    """Files that are still being read."""
    failed: list[dict[str, str]]
    """Files that could not be read: `file` and `why`."""
    servers: list[ServerAnswer]
    formats: list[str]
    """The formats of ``POST api/export``."""
    words: list[str]
    """The keys of filter words."""


class RuleText(TypedDict):
    """What is known of a rule."""

    id: str
    asks: str
    why: str
    source: str
    fix: str
    action: str
    example: str


class ViolationLine(TypedDict):
    """A violation in full."""

    rule: str
    at: str
    expected: str
    found: str
    source: str
    hint: str
    action: str
    schemaAt: NotRequired[str]
    reason: NotRequired[str]
    entry: NotRequired[dict[str, str]]
    about: RuleText | None
    """None for a rule that this version does not know."""
    schema: Any
    """The branch of the tool's schema that refused it, if the list of tools is known; otherwise null."""


class FrameText(TypedDict):
    """A message as text, or why it is not there."""

    text: str | None
    base64: NotRequired[str]
    """In place of `text`, for bytes that are not UTF-8."""
    why: str
    """Why there is no text; "" if there is."""


class DeliveredFrame(FrameText):
    """What the receiver got in place of the message."""

    state: str
    """``same``, ``changed``, ``replaced`` by an error, or ``not`` delivered at all."""
    exact: bool
    """Whether the text is exactly what was delivered; otherwise it is made from the recorded changes."""


class HttpPart(TypedDict):
    """The HTTP exchange that carried a message, as far as it is recorded."""

    route: str
    method: str | None
    headers: dict[str, str | list[str]] | None
    """Of the request; most values are not recorded, and are ``(present)``."""
    status: int | None
    """The status of the response, or of the error that the guard sent for the message."""


class MessageAnswer(TypedDict):
    """The answer of ``GET api/messages/SEQ``."""

    seq: int
    row: list[Any]
    server: int
    requestId: str
    traceId: str
    sent: FrameText
    delivered: DeliveredFrame
    violations: list[ViolationLine]
    more: int
    """Violations beyond those that are listed."""
    error: dict[str, Any] | None
    """The canonical error: code, jsonrpcCode, httpStatus, message."""
    quarantined: list[dict[str, str]]
    """The entries of a list that were removed, or under audit would be removed by enforce."""
    removed: bool
    """Whether these entries were removed."""
    repairs: list[dict[str, Any]]
    http: HttpPart | None
    redacted: bool
    notes: list[str]
    related: list[int]
    """The seqs of the same exchange: request, answer, progress, cancellation."""
    record: dict[str, Any]
    """The record of the journal, without the message."""


class TrendCounts(TypedDict):
    """Counts over time, at most 48: the first begins at `start`, and each is `seconds` wide."""

    start: float
    seconds: float
    counts: list[int]


class FindingLine(TypedDict):
    """Findings of one rule, for one tool or method, at one place, of one server."""

    id: int
    server: int
    rule: str
    method: str
    tool: str
    at: str
    """The place; numbers in it are ``*``."""
    entry: str
    party: str
    count: int
    first: float
    last: float
    blocked: int
    """How many of its messages were blocked."""
    wouldBlock: int
    """How many of its messages audit mode forwarded and enforce mode would block."""
    quarantined: int
    """How many of its messages lost an entry for it."""
    wouldQuarantine: int
    """How many of its messages were forwarded with an entry that enforce would remove."""
    action: str
    expected: str
    found: str
    """Of the first one."""
    hint: str
    trend: TrendCounts
    samples: list[int]
    """Seqs of the last ones, newest first."""


class FindingsAnswer(TypedDict):
    """The answer of ``GET api/findings``: groups with most findings first, and the rules that they name."""

    groups: list[FindingLine]
    rules: dict[str, RuleText]
    wouldBlock: int
    """Messages that audit mode forwarded and enforce mode would block, of all servers."""
    blocked: int


class EntryLine(TypedDict):
    """An entry of a list, as the server lists it now."""

    name: str
    title: str
    since: str
    """Against the list before: ``same``, ``added`` or ``changed``; "" for the first list."""
    lock: str
    """Against the lock: ``same``, ``added`` or ``changed``; "" without a lock."""
    changes: list[dict[str, str]]
    """Against the lock, or else the list before: `weight`, `at` and `what`."""
    dialect: str
    """The dialect of a tool's schemas, from ``$schema``; "" for the default."""
    judged: bool
    """Whether calls and results are judged by its schemas."""
    why: list[str]
    """Why it is not judged, or invalid: rules and what was found."""
    quarantined: bool
    """Whether the guard removed it from the list."""
    wouldQuarantine: bool
    """Whether it was forwarded under audit, and would be removed under enforce."""
    tokens: int
    """Estimated: characters of its compact JSON, divided by four."""
    readOnly: bool
    definition: dict[str, Any]


class ListingLine(TypedDict):
    """One list of a server."""

    list: str
    """One of `LISTS`."""
    time: float | None
    seq: int | None
    complete: bool
    entries: list[EntryLine]  # noqa: A003 - the member `list` is the name of a list
    removed: list[str]  # noqa: A003 - as above
    """Names that the list before had, or the lock has, and this list has not."""
    tokens: int


class ContractLine(TypedDict):
    """What a server offers."""

    server: int
    lock: str
    """``locked``, ``none``, or why the lock cannot be compared."""
    lists: list[ListingLine]
    count: int | None
    """The number of tools, if it is known without the list."""
    why: str
    """Why there is no list; "" if there is one."""


class SessionLine(TypedDict):
    """One session of one server."""

    id: int
    server: int
    session: str
    """As in the column ``session``; "" for the only one of a server over STDIO."""
    state: str
    """``open`` or ``closed``."""
    why: str
    client: dict[str, Any]
    """`name`, `version` and `capabilities`, as far as they are known."""
    principal: str | None
    """The authenticated client, of a guard with authentication."""
    revision: str
    messages: int
    findings: int
    open: int
    """Requests without an answer."""
    openIds: list[int]
    """Seqs of some of them."""
    tasks: int
    """Answers that began a task."""
    restarts: int
    first: float
    last: float


class PerformanceLine(TypedDict):
    """Durations of one method and tool of one server. All durations are milliseconds."""

    server: int
    method: str
    tool: str
    count: int
    errors: dict[str, int]
    """By code: the canonical name, the number, or ``isError``."""
    p50: float | None
    p95: float | None
    p99: float | None
    max: float | None
    guardP50: float | None
    """Time that the guard took for the request, before it was forwarded."""
    guardP95: float | None
    buckets: list[tuple[float, int]]
    """Upper bounds in milliseconds, and counts, from the smallest."""
    inBytes: int
    outBytes: int
    largest: int
