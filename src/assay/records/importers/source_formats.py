"""The formats of recordings as data: names, where people find the files, and what they cannot show. No code."""

from typing import Final, NamedTuple

REWRITTEN: Final = "spacing, repeated keys, byte order marks and broken UTF-8, as messages were parsed and written anew"
"""What a recorder hides that records values in place of bytes."""

NO_STRAYS: Final = "output that is not JSON"
NO_HEADERS: Final = "HTTP headers"


class SourceFormat(NamedTuple):
    """One format of recordings."""

    name: str
    """The name for ``--from``."""
    title: str
    """The name for people."""
    where: str
    """Where people find such files, in Markdown."""
    cannot: tuple[str, ...] = ()
    """What cannot be found in such a file, for people. Not observed is not passed."""


FORMATS: Final[tuple[SourceFormat, ...]] = (
    SourceFormat("assay", "Assay", "`assay guard --record FILE`, a [journal](#journals) with payloads, a flight"),
    SourceFormat(
        "messages",
        "plain messages, one a line",
        "`tee` around a server, logs of SDKs; `--party` for one side",
        ("who sent a message, if the message does not show it", NO_HEADERS),
    ),
    SourceFormat(
        "inspector",
        "MCP Inspector 2, Protocol",
        "the tab Protocol, *Export*",
        (REWRITTEN, NO_STRAYS, NO_HEADERS, "all but the last 1,000 messages"),
    ),
    SourceFormat(
        "inspector-network",
        "MCP Inspector 2, Network",
        "the tab Network, *Export*",
        (REWRITTEN, "masked values, such as those of code, token and password", "messages on GET streams"),
    ),
    SourceFormat(
        "claude-desktop",
        "Claude Desktop",
        "`mcp-server-NAME.log` and `mcp.log` in `~/Library/Logs/Claude`, `%APPDATA%\\Claude\\logs` or "
        "`~/.config/Claude/logs`",
        (REWRITTEN, "messages that the log cuts or sums up", "the whole text of output that is not JSON"),
    ),
    SourceFormat(
        "vscode",
        "VS Code",
        "*MCP: List Servers*, *Show Output*, at the log level Debug or Trace",
        (REWRITTEN, NO_HEADERS),
    ),
    SourceFormat(
        "har",
        "HAR 1.2",
        "the network tab of a browser, mitmproxy, Proxyman, Charles: export as HAR",
        ("the times of messages in a stream", "bodies that the exporter leaves out, often those of streams"),
    ),
    SourceFormat(
        "map", "JSON lines with a message in a member", "any other program; `--map` names the members", (NO_HEADERS,)
    ),
)
"""Every format. The first one that recognises a file reads it."""
