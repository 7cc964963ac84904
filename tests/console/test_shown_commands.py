"""The commands that the console and the report show on their pages work."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

from assay.cli.main import parser
from kit.command import assay_text
from kit.places import ROOT
from kit.rows import rows

SOURCE = ROOT / "src" / "assay"
PAGES = sorted((*SOURCE.glob("web/*.js"), *SOURCE.glob("console/*.py")))
RUN = ("wrap", "trust")
"""Commands that start nothing, and have nothing to do here."""


def shown() -> Iterator[str]:
    """Every command line in a text of the pages."""
    for page in PAGES:
        text = re.sub(r'/\*.*?\*/|"""(?:.*?)"""|^\s*(?://|#).*?$', "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
        shown = "\n".join(re.findall(r"<\$\{Command\}>(.*?)<//>", text))
        yield from re.findall(r"assay .*", shown)
        yield from re.findall(r"`(assay [^`]+)`", text)
        yield from re.findall(r"use (assay [a-z]+ --[^\"`;]*)", text)


COMMANDS = sorted(set(shown()))
assert len(COMMANDS) > 4


@rows("line", COMMANDS)
def test_a_command_on_a_page_is_valid(line: str, tmp_path: Path) -> None:
    words = shlex.split(re.sub(r"\$\{[^}]*\}", "x", line))[1:]
    if words:
        parser(words[0]).parse_args(words)
    if "$" not in line and line.removeprefix("assay ").startswith(RUN):
        done = assay_text(*words, cwd=tmp_path, HOME=str(tmp_path))
        assert not re.search(r"usage:|: give |unknown|specify", done.stderr), done.stderr
