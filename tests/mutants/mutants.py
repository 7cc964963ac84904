"""
Put one fault at a time into a copy of the source, and see whether the tests notice.

`make mutants` runs it: the table is `mutants.txt`, which has its notation at its top. Each mutant first meets the tests
of its own package, and only if it lives the others. The outcome of each is printed, then the living ones and
the share of killed ones by package; `.cache/mutants/result.json` has the same as data. It is not part of `make test`:
it takes some twenty minutes.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

from kit.places import ROOT

TABLE: Final = Path(__file__).with_name("mutants.txt")
CACHE: Final = ROOT / ".cache" / "mutants"

_JUDGE: Final = (("tests/judge", "--ignore=tests/judge/laws"), ("tests/judge/laws",))
OWN: Final[Mapping[str, Sequence[Sequence[str]]]] = {
    "judge": _JUDGE,
    "rules": _JUDGE,
    # What a conversation decides by its schemas is tested by conversations.
    "schema": (("tests/schema",), *_JUDGE),
    "guard": (("tests/guard",),),
    "edges": (("tests/edges",),),
}
"""The tests of each package, in groups, the fastest first: each group is a run of pytest."""

OTHERS: Final = (
    *("tests/judge", "tests/schema", "tests/guard", "tests/edges", "tests/records", "tests/lock"),
    *("tests/real/stdio", "tests/real/http", "tests/real/children", "tests/real/restart"),
)
"""The tests that a mutant meets if those of its own package do not find it."""

SECONDS: Final = 240
"""Seconds for one group of tests. A mutant that takes longer hangs, which counts as found."""


class Mutant(NamedTuple):
    """One fault."""

    number: int
    module: str
    """Its path below the package."""
    kind: str
    title: str
    before: str
    after: str

    @property
    def package(self) -> str:
        """The package of the module."""
        return self.module.partition("/")[0]

    def applied(self, text: str) -> str:
        """Return *text*, the module, with the fault. Raises `ValueError` unless its place exists exactly once."""
        if text.count(self.before) != 1:
            raise ValueError(f"{self.module}: {text.count(self.before)} places for: {self.title}")
        changed = text.replace(self.before, self.after)
        compile(changed, self.module, "exec")
        return changed


def read(text: str) -> Iterator[Mutant]:
    """Yield the mutants of the table."""
    for number, block in enumerate(text.split("\n[")[1:], 1):
        head, title, *lines = block.rstrip("\n").split("\n")
        module, _, kind = head.partition("] ")
        sides = ("\n".join(line[2:] for line in lines if line[:1] == sign) for sign in "-+")
        yield Mutant(number, module, kind, title, *sides)


class Outcome(NamedTuple):
    """What became of a mutant."""

    mutant: Mutant
    killed_by: str
    """The tests that found it: those of its package, or others; empty if it lives."""
    seconds: float


class Ground:
    """A copy of the source, into which one fault after the other is put."""

    def __init__(self, place: Path) -> None:
        self.source = place / "src"
        self._compiled = place / "python"
        shutil.copytree(ROOT / "src", self.source, ignore=shutil.ignore_patterns("__pycache__"))

    def tried(self, mutant: Mutant, groups: Sequence[tuple[str, Sequence[str]]]) -> Outcome:
        """Return the outcome of the tests of *groups*, one after the other, with *mutant* in place."""
        module = self.source / "assay" / mutant.module
        whole = module.read_text(encoding="utf-8")
        time_of_copy = module.stat().st_mtime_ns
        module.write_text(mutant.applied(whole), encoding="utf-8")
        # A time of its own, by which Python notices that what it has compiled is of another text.
        os.utime(module, (mutant.number, mutant.number))
        began = time.monotonic()
        try:
            found = next((name for name, paths in groups if not self.passes(paths)), "")
        finally:
            module.write_text(whole, encoding="utf-8")
            os.utime(module, ns=(time_of_copy, time_of_copy))
        return Outcome(mutant, found, time.monotonic() - began)

    def passes(self, paths: Sequence[str]) -> bool:
        """Return whether all tests of *paths* pass with the source as it is now."""
        places = {"PYTHONPATH": str(self.source), "PYTHONPYCACHEPREFIX": str(self._compiled)}
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *paths]
        try:
            done = subprocess.run(
                command,
                cwd=ROOT,
                env={**os.environ, **places},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return False
        return done.returncode == 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Try all mutants, or those whose number, module or package is given; return 1 if one lives."""
    parser = argparse.ArgumentParser(prog="make mutants", description="See which faults the tests notice.")
    parser.add_argument("chosen", nargs="*", metavar="NUMBER|MODULE|PACKAGE", help="only these; without one, all")
    parser.add_argument("--own", action="store_true", help="only the tests of the package of each mutant")
    args = parser.parse_args(arguments)
    every = list(read(TABLE.read_text(encoding="utf-8")))
    chosen = [
        each for each in every if not args.chosen or {str(each.number), each.module, each.package} & {*args.chosen}
    ]
    for each in chosen:
        each.applied((ROOT / "src" / "assay" / each.module).read_text(encoding="utf-8"))
    with TemporaryDirectory(prefix="assay-mutants-") as place:
        control = Ground(Path(place) / "control")
        for group in dict.fromkeys(group for each in chosen for group in map(tuple, OWN[each.package])):
            if not control.passes(group):
                parser.exit(2, f"without any fault, these fail: {' '.join(group)}\n")
        outcomes = list(_outcomes(chosen, Path(place), own_only=args.own))
    _report(outcomes)
    return int(any(not each.killed_by for each in outcomes))


def _outcomes(mutants: Sequence[Mutant], place: Path, *, own_only: bool) -> Iterator[Outcome]:
    """Yield the outcome of each mutant as it is known, two at a time, with copies of the source in *place*."""
    grounds: SimpleQueue[Ground] = SimpleQueue()
    for number in range(2):
        grounds.put(Ground(place / str(number)))

    def tried(mutant: Mutant) -> Outcome:
        ground = grounds.get()
        try:
            groups = [(mutant.package, each) for each in OWN[mutant.package]]
            return ground.tried(mutant, groups if own_only else [*groups, ("others", OTHERS)])
        finally:
            grounds.put(ground)

    with ThreadPoolExecutor(2) as pool:
        for outcome in pool.map(tried, mutants):
            mutant = outcome.mutant
            word = f"killed by {outcome.killed_by}" if outcome.killed_by else "LIVES"
            print(f"{mutant.number:4} {word:16} {outcome.seconds:5.1f} s  {mutant.module}: {mutant.title}", flush=True)
            yield outcome


def _report(outcomes: Sequence[Outcome]) -> None:
    """Print the living mutants and the share of killed ones, and write the table as JSON."""
    alive = [each.mutant for each in outcomes if not each.killed_by]
    every, killed = (Counter(each.mutant.package for each in outcomes if each.killed_by or whole) for whole in (1, 0))
    print(f"\n{len(outcomes) - len(alive)} of {len(outcomes)} killed")
    for package in sorted(every):
        print(f"  {package:10} {killed[package]:3} of {every[package]:3}")
    for mutant in alive:
        print(f"  lives: {mutant.number} {mutant.module}: {mutant.title}")
    CACHE.mkdir(parents=True, exist_ok=True)
    rows = [{**each.mutant._asdict(), "killed_by": each.killed_by, "seconds": each.seconds} for each in outcomes]
    (CACHE / "result.json").write_text(json.dumps(rows, indent=1), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
