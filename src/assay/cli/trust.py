"""``assay trust``: accept the settings of a directory that can make the guard weaker."""

from __future__ import annotations

import argparse
import os

from assay.cli.program import agreed, has_terminal, speaker
from assay.model.errors import UsageError
from assay.model.printable import plain
from assay.rules import RULES
from assay.rules.policy import fitting
from assay.settings import SettingsError
from assay.settings.loading import in_file, in_flags, made
from assay.settings.settings_files import FILE, FoundSettings, accepted, forget, found_file, hash_of, remember
from assay.settings.weakening import Weakening, weakenings

_say = speaker("trust")

_EPILOG = """\
assay guard, lock and call take only stricter settings from an assay.toml in the working directory. After
`assay trust FILE` they take all of its settings, until the file changes. A file named with --config needs no trust.

Exit status: 0 done or nothing to do, 1 you answered no, 2 the file could not be read or you could not be asked.
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register ``trust``."""
    parser = subparsers.add_parser(
        "trust",
        description="Show the settings in an assay.toml that can weaken the guard, and ask whether to trust the file.",
        epilog=_EPILOG,
    )
    doing = parser.add_mutually_exclusive_group(required=True)
    doing.add_argument("file", metavar="FILE", nargs="?", help="the assay.toml to trust")
    doing.add_argument("--list", action="store_true", help="list trusted files and whether they have changed")
    doing.add_argument("--remove", metavar="FILE", help="stop trusting FILE")
    parser.add_argument("--yes", action="store_true", help="do not ask; required without a terminal")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Accept a file, list the trusted files, or remove one; return the exit status."""
    if args.list:
        for path, hashed in sorted(accepted(os.environ).items()):
            print(plain(f"{path}{_since(path, hashed)}"))
        return 0
    if args.remove is not None:
        there = forget(os.environ, args.remove)
        _say(f"{args.remove}: {'no longer trusted' if there else 'was not trusted'}")
        return 0
    return _trust(args.file, unasked=args.yes)


def _since(path: str, hashed: str) -> str:
    """Return what has changed in a file since it was accepted."""
    try:
        with open(path, "rb") as file:
            return "" if hash_of(file.read()) == hashed else "  (changed: not trusted)"
    except OSError as error:
        return f"  ({error.strerror})"


def _trust(path: str, *, unasked: bool) -> int:
    found = _read(path)
    weak = _weakenings(found)
    if not weak:
        _say(f"{path}: cannot weaken the guard; all its settings already count")
        return 0
    print(plain(f"{path} can make the guard weaker:"))
    for each in weak:
        print(plain(f"  {each}  (without it: {each.without})"))
    if not unasked and not has_terminal():
        raise UsageError("nothing was trusted: there is no terminal to ask on; use --yes")
    if not unasked and not agreed(f"Trust {plain(path)} as it is now?"):
        _say(f"{path}: not trusted")
        return 1
    remember(os.environ, found.path, found.content)
    _say(f"{path}: trusted until it changes")
    return 0


def _read(path: str) -> FoundSettings:
    """Read the file at *path*. Raises `SettingsError`."""
    if os.path.basename(path) != FILE:
        raise SettingsError(f"{path}: expected a file called {FILE}; --config takes any other, without trust")
    found = found_file({}, os.path.dirname(path) or os.curdir, None, lambda _: None, shared=False)
    if found is None:
        raise SettingsError(f"{path}: No such file or directory")
    return found


def _weakenings(found: FoundSettings) -> list[Weakening]:
    """
    Return the settings of the file that can weaken the guard, whatever else is set.

    Options may refuse what is only reported by default, so the policy is compared with that, too. Exceptions are shown
    whether or not they have ended.
    """
    file = in_file(found)
    rungs = {each.rung for each in RULES.values() if "refuse" in fitting(each.id)}
    refused = list(in_flags([f"guard.policy.{rung}/*=refuse" for rung in rungs]))
    # An error in the file is reported here, not when the guard starts.
    weak = {each.path: each for each in weakenings(file, (), made(file), "")}
    for each in weakenings(file, refused, made([*file, *refused]), ""):
        weak.setdefault(each.path, each)
    return list(weak.values())
