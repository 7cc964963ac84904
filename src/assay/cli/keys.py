"""``assay keys``: make API keys for clients over HTTP."""

from __future__ import annotations

import argparse
import re
import sys
from datetime import UTC, date, datetime
from getpass import getpass

from assay.cli.program import say
from assay.edges.auth.api_keys import new_key, objection, written_hash
from assay.edges.standard_streams import stop_without_reader
from assay.model.limits import TIERS

# More than any key has: other input is rejected before all of it is read.
_MOST = 8 << 10

_EPILOG = """\
A key is shown once; the configuration has only its hash. One command can store both:

  assay keys new ci --tier pro > ci.key 2>> assay.toml
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register ``keys``."""
    parser = subparsers.add_parser(
        "keys",
        description="Make API keys for clients of a guard or server over HTTP.",
    )
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    new = commands.add_parser(
        "new",
        help="make a key",
        description="Make a key; print it to stdout, and its table for assay.toml to stderr.",
        epilog=_EPILOG,
    )
    new.add_argument("name", metavar="NAME", type=_name, help="name of the client in logs and in the journal")
    new.add_argument("--tier", choices=TIERS, help="tier of this client (default: the server's)")
    new.add_argument(
        "--expires", metavar="DATE", type=_date, help="first day on which the key is invalid, such as 2027-01-01"
    )
    new.set_defaults(run=run_new)
    hashed = commands.add_parser(
        "hash",
        help="print the hash of a key",
        description="Read a key from stdin and print its hash for the configuration.",
    )
    hashed.set_defaults(run=run_hash)


def run_new(args: argparse.Namespace) -> int:
    """Print a new key, and its table for assay.toml."""
    key = new_key()
    lines = [
        f"# The key of {args.name} is shown once and stored nowhere. Add this to assay.toml:",
        f"[auth.keys.{_quoted(args.name)}]",
        f'hash = "{written_hash(key.encode())}"',
        *([f'tier = "{args.tier}"'] if args.tier else []),
        *([f"expires = {args.expires}"] if args.expires else []),
    ]
    # The key first: a broken pipe must not leave a table for a key that was never shown.
    print(key, flush=True)
    stop_without_reader()
    print("\n".join(["", *lines]), file=sys.stderr)
    return 0


def run_hash(args: argparse.Namespace) -> int:  # noqa: ARG001 - every command takes them
    """Read a key, without echo on a terminal, and print its hash."""
    if sys.stdin is not None and sys.stdin.isatty():
        key = getpass("key: ").strip().encode()
    else:
        with open(0, "rb", closefd=False) as file:
            key = file.read(_MOST).strip()
    wrong = objection(key)
    if wrong is not None:
        say(f"{wrong}; `assay keys new` makes a valid one", "keys hash")
        return 2
    print(written_hash(key))
    return 0


def _name(text: str) -> str:
    if not (0 < len(text) <= 64 and text.isprintable()):
        raise argparse.ArgumentTypeError("expected 1 to 64 printable characters")
    return text


def _quoted(name: str) -> str:
    """Return *name* as a TOML key."""
    if re.fullmatch(r"[A-Za-z0-9_-]+", name):
        return name
    escaped = name.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _date(text: str) -> str:
    try:
        day = date.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError("expected a date such as 2027-01-01") from None
    today = datetime.now(UTC).date()
    if day <= today:
        raise argparse.ArgumentTypeError(f"{day} is not after today, {today} (UTC): the key would be invalid at once")
    return day.isoformat()
