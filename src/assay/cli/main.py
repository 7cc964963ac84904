"""The command line: `assay COMMAND`. Exit status: 0 clean, 1 findings, 2 could not run, 130 interrupted."""

# ruff: noqa: PLC0415  nothing is imported that the command does not need

import argparse
import os
import sys
from collections.abc import Sequence
from typing import Final

_DESCRIPTION = """\
Assay judges every message of a Model Context Protocol conversation: framing, JSON, JSON-RPC,
the official schema of the revision in use, and the tools' own contracts.
"""

_EPILOG = """\
what do you want to do?
  judge what a client and a server say, live       assay guard -- COMMAND
  put a client's servers behind the guard          assay wrap FILE
  see whether a server is what it was              assay lock -- COMMAND
  see what is wrong in a recorded conversation     assay check FILE
  see what a server or guard has judged            assay journal show
  see where two runs differ                        assay journal diff A B
  judge what was recorded once more                assay replay FILE
  understand a finding                             assay explain RULE
  see everything that is enforced                  assay rules
  look something up in the protocol                assay schemas show REVISION DEFINITION
  see what changed between two revisions           assay schemas diff OLD NEW
  serve schemas, examples and asset tools          assay serve
  see whether asset files fit their schemas        assay validate PATH
"""


_COMMANDS: Final = {
    "serve": ("serve",),
    "guard": ("guard",),
    "wrap": ("wrap", "unwrap"),
    "lock": ("lock",),
    "validate": ("validate",),
    "check": ("check",),
    "journal": ("journal",),
    "replay": ("replay",),
    "keys": ("keys",),
    "rules": ("rules", "explain"),
    "schemas": ("schemas",),
}
"""The modules that register commands, in the order of the help, and the commands of each."""


def parser(command: str = "") -> argparse.ArgumentParser:
    """The whole command line; or, for a *command* that there is, only what that needs."""
    from importlib import import_module

    from assay import __version__

    top = argparse.ArgumentParser(
        prog="assay",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="version", version=f"assay {__version__}")
    commands = top.add_subparsers(title="commands", metavar="COMMAND", required=True)
    needed = [module for module, names in _COMMANDS.items() if command in names] or list(_COMMANDS)
    for module in needed:
        import_module(f"assay.cli.{module}").add_parser(commands)
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit status."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    args = parser(given[0] if given else "").parse_args(given)
    try:
        status: int = args.run(args)
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read us has had enough (`| head`). Python would complain once more while it shuts down.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        # What a command reads it has dealt with itself: this is standard output, on a full disk for one.
        print(f"assay: cannot write: {error.strerror}", file=sys.stderr)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 2
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        if not _is_slip(error):
            raise
        print(f"assay: {error}", file=sys.stderr)
        return 2
    return status


def _is_slip(error: Exception) -> bool:
    """Whether *error* is about what an operator configured, and says so itself; any other is a mistake of ours."""
    from assay.settings import SettingsError

    return isinstance(error, SettingsError)


if __name__ == "__main__":
    sys.exit(main())
