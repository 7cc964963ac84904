"""Limits on what a peer can make us do, each with its reason; the tiers of clients and what they limit. No I/O."""

from dataclasses import dataclass

DEEPEST = 254
"""The highest `Limits.depth`."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one conversation. Every number can be set; the defaults fit all traffic we have recorded."""

    frame_bytes: int = 16 << 20
    """
    Bytes of one message, without the newline: 16 MiB, for images and files in Base64; 1 MiB for ``assay serve`` and
    ``assay validate``. Beyond it: ``framing/size``.
    """

    depth: int = 128
    """
    Levels of nesting, at most 254. Ordinary traffic stays below 64; deep nesting overflows the stack of JSON Schema
    engines. Beyond it: ``syntax/depth``.
    """

    values: int = 500_000
    """
    Values and keys of one message; an array or object counts as one more. Each takes some 0.2 µs, while other messages
    wait. The largest recorded message has 7,827. Beyond it: ``syntax/values``.
    """

    id_bytes: int = 1024
    """
    Characters of the id of a request or task, or of a progress token. Beyond it: ``envelope/id``,
    ``protocol/token-size``.
    """

    cursor_bytes: int = 64 * 1024
    """
    Characters of a pagination cursor, which may contain encoded state. Beyond it: ``protocol/token-size``.
    """

    batch_entries: int = 1000
    """
    Messages in one batch. Each may cause an error of a kilobyte or more. Beyond it: ``envelope/batch``.
    """

    open_requests: int = 10_000
    """
    Requests that one party may have open at once. Each takes about 200 bytes. Beyond it: ``protocol/too-many-open``.
    """

    settled: int = 512
    """
    Answered and abandoned requests to remember, to recognize second responses and reused ids. A response to an older
    one: ``protocol/unsolicited``.
    """

    tools: int = 5_000
    """
    Tools to remember with their schemas; the largest server we know lists under 300. Beyond it:
    ``contract/schema-size``, and their calls are not judged.
    """

    contract_bytes: int = 8 << 20
    """
    Bytes of the schemas of all tools of one server. The largest list we know has 77 KB. Beyond it: as for ``tools``.
    """

    violations: int = 20
    """
    Violations listed in one verdict; ``Verdict.more`` counts the rest.
    """

    garbage_answers: int = 16
    """
    Error responses in a row to unreadable input, so that two confused peers cannot loop; then none until the peer
    sends a readable frame.
    """

    def __post_init__(self) -> None:
        for name in self.__slots__:
            if getattr(self, name) < 1:
                raise ValueError(f"the limit {name} must be at least 1")
        # The depth that can be checked without visiting every value; no parser we know needs more.
        if self.depth > DEEPEST:
            raise ValueError(f"the limit depth must be at most {DEEPEST}")


DEFAULT = Limits()

REQUESTS = Limits(frame_bytes=1 << 20)
"""The default limits of our own server and of asset files: specs/001 §3 allows 1 MiB for a request."""

ASSET_TOOLS = (
    "list_schemas", "get_schema", "list_examples", "get_example", "validate_asset", "diff_assets", "populate_backend",
)  # fmt: skip
"""The tools of our own asset server (specs/001). They are methods, too."""

TIERS = ("community", "pro", "enterprise")
"""From the lowest to the highest: a tier has everything of those before it."""
