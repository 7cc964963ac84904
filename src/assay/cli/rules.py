"""``assay rules`` and ``assay explain``: list the rules; show the source of one and how to fix a violation."""

from __future__ import annotations

import argparse
import sys
from itertools import chain
from typing import Final

import orjson

from assay.cli.program import say
from assay.cli.terminal.style import Style
from assay.cli.terminal.table import Column, Table
from assay.edges.standard_streams import write_utf8
from assay.model.errors import CanonicalError
from assay.rules import RULES, Rule
from assay.spec.schema import suggestion

_RUNGS = (
    "framing", "syntax", "envelope", "protocol", "extension", "tasks", "skills", "apps", "contract", "lock", "guard",
)  # fmt: skip
"""The rungs from the bytes up. A test compares them with the rules."""

_READABLE: Final = 30
"""Minimal width of the column with sentences; on a narrower terminal the sentence goes on the next line."""

_COLOURS: Final = {"refuse": "red", "quarantine": "yellow", "report": "cyan"}


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register ``rules`` and ``explain``."""
    rules = subparsers.add_parser(
        "rules",
        description="List every rule: its identifier, the default action for a violation, and what it requires.",
    )
    rules.add_argument(
        "--rung",
        choices=_RUNGS,
        metavar="RUNG",
        help=f"only this rung: {', '.join(_RUNGS[:-1])} or {_RUNGS[-1]}",
    )
    rules.add_argument("--format", choices=("text", "json"), default="text", help="default: %(default)s")
    rules.set_defaults(run=run_rules)
    explain = subparsers.add_parser(
        "explain",
        description="Explain one rule: what it requires, why, its source, an example, and how to fix a violation.",
    )
    explain.add_argument(
        "rule",
        metavar="RULE",
        help="an identifier such as contract/input; or a rung such as contract, to list its rules",
    )
    explain.set_defaults(run=run_explain)


def run_rules(args: argparse.Namespace) -> int:
    """Print every rule, or those of one rung; return the exit status."""
    chosen = [rule for rule in RULES.values() if args.rung in {None, rule.rung}]
    if args.format == "json":
        # The templates of sentences are for findings, and no promise.
        shown = [{name: each for name, each in rule._asdict().items() if name != "says"} for rule in chosen]
        write_utf8(orjson.dumps(shown, option=orjson.OPT_INDENT_2).decode() + "\n")
    else:
        print("\n".join(_table(chosen)))
    return 0


def _table(rules: list[Rule]) -> list[str]:
    style = Style(sys.stdout)
    width = max(len(rule.id) for rule in rules)
    room = style.width - (width + 14)
    is_wide = room >= _READABLE
    columns = [Column("rule", width), Column("action", 10)]
    columns += [Column("requirement", room, hanging=0)] if is_wide else []
    table, lines = Table(style, columns, wide=True), []
    for rule in rules:
        lines += table.lines(
            {"rule": (rule.id, "bold"), "action": (rule.action, _COLOURS[rule.action]), "requirement": rule.asks}
        )
        lines += [] if is_wide else style.wrapped(rule.asks, 4)
    return lines


def run_explain(args: argparse.Namespace) -> int:
    """Print one rule in full, or the rules of one rung; return the exit status."""
    if args.rule.rstrip("/*") in _RUNGS:
        print("\n".join(_table([rule for rule in RULES.values() if rule.rung == args.rule.rstrip("/*")])))
        return 0
    rule = RULES.get(args.rule)
    if rule is None:
        same = [known for known in RULES if known.partition("/")[2] == args.rule]
        near = f"; did you mean {' or '.join(same)}?" if same else suggestion(args.rule, (*RULES, *_RUNGS))
        say(f"unknown rule {args.rule!r}{near}", "explain")
        say("assay rules lists them all")
        return 2
    print("\n".join(_explanation(rule)))
    return 0


def _explanation(rule: Rule) -> list[str]:
    style = Style(sys.stdout)
    error = CanonicalError.to_jsonrpc_error(rule.code)
    strict = f"; with guard.strict: {rule.strict}" if rule.strict else ""
    parts = [
        ("requirement", rule.asks),
        ("reason", rule.why),
        ("source", rule.source.replace("{revision}", "(the revision in use)")),
        ("violation", rule.example),
        ("fix", rule.fix),
        ("enforce mode", f"{rule.action}{strict}"),
        ("error", f"{error['code']} “{error['message']}”, HTTP {CanonicalError.to_http_status(rule.code)}"),
    ]
    table = Table(style, [Column("name", 12), Column("text", style.width - 14, hanging=0)])
    lines = [table.lines({"name": (name, "dim"), "text": text}) for name, text in parts]
    return [style.paint(rule.id, "bold"), "", *chain.from_iterable(lines)]
