"""The command line: `assay COMMAND`. Exit status: 0 clean, 1 findings, 2 could not run, 130 interrupted."""

import argparse
import gc
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any, Final, NamedTuple, NoReturn

from assay import __version__
from assay.cli.program import HelpFormatter, refusal, say
from assay.cli.removed import COMMANDS, FORMATS, OPTIONS, removed
from assay.edges.standard_streams import OutputError, prepare
from assay.model.errors import SettingsError, UsageError
from assay.model.printable import plain
from assay.spec.schema import suggestion

_DESCRIPTION = """\
Assay is a guard for MCP servers. It judges every message between a client and
a server: framing, JSON, JSON-RPC, the official schema of the revision in use,
and the tools' own contracts.
"""

_EPILOG = """\
what do you want to do?
  see a broken server behind the guard   assay demo
  put your clients' servers behind it    assay wrap --all
  guard one server                       assay guard -- COMMAND
  list a server's tools, or call one     assay call -- COMMAND
  judge a recorded conversation          assay check FILE
  see what a guard has judged            assay journal show
  understand a finding                   assay explain RULE
  notice when a reviewed server changes  assay lock -- COMMAND

assay COMMAND --help has the options of a command, and examples.
"""


class Command(NamedTuple):
    """A command of `assay`."""

    name: str
    help: str
    """What it does, in one line."""
    module: str = ""
    """The module that registers it, if that has another name."""


_COMMANDS: Final = (
    Command("guard", "judge every message between a client and a server, and stop invalid ones"),
    Command("wrap", "put the servers of an MCP client behind the guard"),
    Command("unwrap", "take the servers of an MCP client out from behind the guard", "wrap"),
    Command("demo", "see a broken server without and with the guard"),
    Command("call", "list the tools of a server, or call one"),
    Command("check", "judge recorded conversations"),
    Command("report", "make an HTML page of recorded conversations", "check"),
    Command("journal", "list, show or compare the verdicts that guards and servers have recorded"),
    Command("console", "a page in the browser: servers, messages, findings, contracts, live"),
    Command("rules", "list every rule that is enforced"),
    Command("explain", "show what a rule means, where it comes from, and how to fix a violation", "rules"),
    Command("lock", "record what a server offers, and show what has changed since"),
    Command("trust", "accept an assay.toml that can make the guard weaker"),
    Command("replay", "judge the messages of a journal again, and compare the verdicts", "check"),
    Command("schemas", "list, show, export or compare the protocol's own schemas"),
    Command("keys", "make API keys for clients over HTTP"),
    Command("serve", "run the bundled asset server: schemas, examples, validation, diff, backend population"),
    Command("validate", "validate asset files against their schemas"),
)
"""Every command, in the order of the help. Only the module of the command that runs is imported."""


_OPTIONS: Final = ("--help", "--version")
"""Options that are valid without a command."""


class _Parser(argparse.ArgumentParser):
    """Parser of one command. Errors print a short usage and a suggestion for a mistyped option, choice or command."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"formatter_class": HelpFormatter, **options})

    def parse_known_args(  # type: ignore[override]  # its overloads in one
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[Any, list[str]]:
        """Parse, and report unknown arguments here, where the options of the command are known."""
        behind: Sequence[str] | None = None
        if self.get_default("splits") and args is not None and "--" in args:
            # argparse drops --, but arguments before and after it differ in meaning here.
            at = args.index("--")
            args, behind = args[:at], args[at + 1 :]
        known, left = super().parse_known_args(args, namespace)
        if behind is not None:
            known.command = tuple(behind)
        if left:
            command = getattr(known, "command", None) if behind is None else None
            self.error(self._unknown(left, args or (), command))
        return known, left

    def _unknown(self, left: list[str], given: Sequence[str], command: Any) -> str:
        name = next((each.partition("=")[0] for each in left if each.startswith("-")), "")
        if not name:
            return f"unrecognized arguments: {' '.join(left)}"
        if gone := removed(name, OPTIONS):
            return f"{name}: {gone}"
        if command and "--" not in given and given.index(command[0]) < given.index(left[0]):
            remedy = f"; what belongs to the server's command goes after --: {self.prog} -- {command[0]} …"
        else:
            remedy = suggestion(name, (each for each in self._option_string_actions if each.startswith("--")))
        return f"unknown option {name}{remedy}"

    def error(self, message: str) -> NoReturn:
        """Exit with status 2 after the usage, without the list of all options, and *message*."""
        formatter = self._get_formatter()
        formatter._prog = f"{self.prog} [OPTIONS]"
        formatter.add_usage(self.usage, self._get_positional_actions(), [])
        self.exit(2, f"{formatter.format_help()}{self.prog}: error: {plain(message)}\n")

    def _get_values(self, action: argparse.Action, arg_strings: list[str]) -> Any:
        """Return the value of an argument. argparse would parse the ``--`` of ``--name=--`` as an empty list."""
        if action.option_strings and "--" in arg_strings:
            raise argparse.ArgumentError(action, "expected a value, found --")
        return super()._get_values(action, arg_strings)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is None or value in action.choices:
            return
        is_command = isinstance(action, argparse._SubParsersAction)
        table = COMMANDS if is_command else FORMATS if action.dest == "source" else {}
        words = self.prog.split()[1:] if is_command else []
        if gone := removed(" ".join((*words, str(value))), table):
            raise argparse.ArgumentError(None if is_command else action, f"{value}: {gone}")
        known = list(map(str, action.choices))
        remedy = suggestion(str(value), known) or f": choose from {', '.join(known)}"
        if is_command:
            raise argparse.ArgumentError(None, f"unknown command {value!r}{remedy}")
        raise argparse.ArgumentError(action, f"invalid choice {value!r}{remedy}")


def parser(command: str = "", *, in_short: bool = False) -> argparse.ArgumentParser:
    """
    Return the parser of the whole command line; with a *command*, of that command only.

    *in_short* leaves out the options of commands, so that no command is imported.
    """
    top = _Parser(prog="assay", description=_DESCRIPTION, epilog=_EPILOG)
    top.add_argument("--version", action="version", version=f"assay {__version__}")
    commands = top.add_subparsers(title="commands", metavar="COMMAND", dest="chosen", required=True)
    if in_short:
        for each in _COMMANDS:
            commands.add_parser(each.name, help=each.help)
        return top
    for module in dict.fromkeys(each.module or each.name for each in _COMMANDS if command in ("", each.name)):
        import_module(f"assay.cli.{module}").add_parser(commands)
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return the exit status."""
    prepare()
    given = sys.argv[1:] if arguments is None else list(arguments)
    try:
        try:
            return _run(given)
        finally:
            # Also after --help, which raises SystemExit: a write error at interpreter exit would not change the status.
            sys.stdout.flush()
    except BrokenPipeError:
        # The reader closed the pipe (`| head`); there is nothing else to do.
        return 0
    except (OutputError, OSError) as error:
        # Commands handle errors of their own files: this one is standard output, for example on a full disk.
        reason = error.strerror if isinstance(error, OSError) else error
        print(f"assay: cannot write to standard output: {reason}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130


def _run(given: list[str]) -> int:
    if _is_unknown(given):
        return 2
    # Before its module is imported, which uses what this system may lack.
    reason = refusal(given[0])
    if reason is not None:
        say(reason)
        return 2
    # Nothing is garbage while modules are imported, and looking for it takes a tenth of the time.
    gc.disable()
    made = parser(given[0], in_short=_is_option(given[0]))
    gc.enable()
    args = made.parse_args(given)
    try:
        status: int = args.run(args)
    except SettingsError as error:
        # An operator's mistake; any other error is a bug of ours.
        if isinstance(error, UsageError):
            say(str(error), args.chosen)
        else:
            say(f"assay: {error}")
        return 2
    return status


def _is_unknown(given: Sequence[str]) -> bool:
    """Whether the command is unknown or missing; if so, print an error."""
    known = [each.name for each in _COMMANDS]
    if given and (given[0] in known or _is_option(given[0])):
        return False
    if given and (gone := removed(given[0], COMMANDS)):
        say(gone, given[0])
        return True
    if not given:
        parser(in_short=True).print_help(sys.stderr)
        return True

    if given[0].startswith("-"):
        name = given[0].partition("=")[0]
        remedy = suggestion({"-v": "--version", "-V": "--version"}.get(name, name), _OPTIONS)
        remedy = remedy or f"; an option of a command goes after it: assay COMMAND {name}"
        say(f"assay: unknown option {name}{remedy}")
        return True
    say(f"assay: unknown command {given[0]!r}{suggestion(given[0], known)}")
    say("assay --help lists them all")
    return True


def _is_option(word: str) -> bool:
    """Whether *word* is an option of `assay` itself, or a prefix of one, as argparse accepts it."""
    return word == "-h" or (word.startswith("--") and any(each.startswith(word) for each in _OPTIONS))


if __name__ == "__main__":
    sys.exit(main())
