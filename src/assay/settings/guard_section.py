"""What an operator can set about the guard. No code but for what cannot be."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Final

from assay.guard.restarts import POLICIES

MODES: Final = ("audit", "enforce")


@dataclass(frozen=True, slots=True)
class Ruling:
    """What is done about one rule, or all of a pattern. As a string it is the action alone."""

    SHORT: ClassVar[str] = "action"

    action: str | None = None
    """``pass``, ``refuse``, ``quarantine`` or ``drop``; if there is none, as the table of rules says."""

    repair: bool | None = None
    """Whether slips that have one remedy only are mended, under ``enforce``; if there is none, as ``guard.repair``."""


@dataclass(frozen=True, slots=True)
class RuleException:
    """Something else for one rule, for one reason, up to one day."""

    rule: str = ""
    """The rule, or a pattern of several."""

    tool: str | None = None
    """The tool it is about; if there is none, every message."""

    action: str = "pass"
    """As in `Ruling`."""

    reason: str = ""
    """Why. It is in the journal beside every message that passes for it."""

    until: str | None = field(default=None, metadata={"day": True})
    """The last day on which it holds, in UTC."""


@dataclass(frozen=True, slots=True)
class GuardSettings:
    """How one guard behaves."""

    mode: str = field(default="audit", metadata={"words": lambda: MODES})
    """``audit`` lets everything pass and reports; ``enforce`` stops what breaks the contract."""

    timeout: float = 600.0
    """
    Seconds that a server has for an answer, under ``enforce``, counted anew with each progress; 0 for ever. Tools that
    take longer without a sign of life are rare, and a client that waits for ever is worse.
    """

    frame_bytes: int | None = None
    """Bytes of one message, either way; if there is none, ``limits.frame_bytes``."""

    restart: str = field(default="never", metadata={"words": lambda: POLICIES})
    """
    Whether a server that ends is started again, under ``enforce``: ``on-failure``, unless it has ended with status 0;
    ``always``. What it knew of its client is gone with it, so whoever sets this must know that it can do without.
    """

    restarts: int = 5
    """Starts within a minute, after which it is given up: by then whatever is wrong does not go away by itself."""

    flights: str = "auto"
    """
    The directory for the last messages of broken sessions; ``auto`` for ``flights`` in the folder of the server, below
    the state directory, ``off`` for none.
    """

    record_bytes: int = 256 << 20
    """Bytes of a recording, after which nothing more is recorded: some 250,000 messages of a kilobyte."""

    record_secrets: bool = False
    """
    Whether a recording keeps what looks like a secret. Without it such a message is recorded with its secrets masked,
    and is not judged again.
    """

    shared: bool = False
    """
    Whether sessions over HTTP that are opened in the same way share one child process. Without it each has its own, as
    a server that speaks to one client over its standard streams may expect.
    """

    children: int = 64
    """
    Child processes for sessions at once, where clients come over HTTP. A server takes some 50 MB; one more session ends
    the one that was idle longest. Requests without a session have one child beside these.
    """

    children_each: int = 16
    """Of these, how many one principal may have, where ``[auth]`` tells principals apart; one more ends its own."""

    environment: tuple[str, ...] = ()
    """
    Variables of the guard that every server of a host gets, beside ``PATH``, ``HOME`` and the like and what its entry
    names; ``MY_*`` for all that begin so. The guard has the tokens of all of them, so a server gets none by itself.
    """

    stderr_in_errors: bool = False
    """
    Whether a client over HTTP is told the last lines, redacted, that its session's own child wrote to stderr before it
    ended. They may hold secrets of the server, so only the guard's own stderr has them otherwise. Over standard streams
    the client started the server itself, and is always told.
    """

    lock: str = "auto"
    """
    The file that says what the server was when it was reviewed; ``off`` for none, ``auto`` for `assay.lock` in the
    working directory if that has this server.
    """

    strict: bool = False
    """
    Whether what others can live with is stopped too, under ``enforce``: defects that a specification tells the receiver
    how to read, and tools of which the guard can judge only a part. Without it these are only reported.
    """

    repair: bool | None = None
    """
    Whether slips in arguments that have one reading only are mended, under ``enforce``: models send them daily, and
    many servers take them. If there is none, yes, unless ``strict`` is set.
    """

    fail_open: bool = False
    """Whether what the guard cannot judge passes, under ``enforce``, and is only reported."""

    policy: Mapping[str, Ruling] = field(default_factory=dict)
    """What is done about which rule, where that is not what the table of rules says."""

    exceptions: tuple[RuleException, ...] = ()
    """What is treated otherwise for a while."""

    @property
    def repairs(self) -> bool:
        """Whether slips are mended where no rule of the policy says otherwise."""
        return not self.strict if self.repair is None else self.repair

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise ValueError(f"mode is one of {', '.join(MODES)}")
        if self.restart not in POLICIES:
            raise ValueError(f"restart is one of {', '.join(POLICIES)}")
        if not 1 <= self.restarts <= 1000:
            raise ValueError("restarts is 1 to 1000")
        longest = 1 if self.frame_bytes is None else self.frame_bytes
        if self.timeout < 0 or min(longest, self.children, self.children_each) < 1:
            raise ValueError("timeout is 0 or more, frame_bytes 1 or more, children and children_each 1 or more")
        if self.record_bytes < 1 << 16:
            raise ValueError("record_bytes is 65536 or more")
        if any("=" in name or not name for name in self.environment):
            raise ValueError("environment has names of variables, without values")
        if self.policy or self.exceptions:
            from assay.settings.policy_settings import check  # noqa: PLC0415 - the rules are not needed where nothing is said of them

            check(self.policy, self.exceptions)
