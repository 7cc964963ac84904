"""A user whose state directory a test has for itself, and the commands that the user runs."""

import subprocess
from pathlib import Path

from own_documents import draft_document, extension_document, written

from kit.command import assay_text, variables_but


class Machine:
    """A user with a state directory of their own, in a directory with the files of a draft and of an extension."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        written(directory / "draft.json", draft_document())
        written(directory / "x.json", extension_document())
        self.folder = directory / "state" / "assay" / "schemas"

    def run(self, *arguments: str, said: str = "") -> subprocess.CompletedProcess[str]:
        env = {**variables_but("ASSAY_"), "XDG_STATE_HOME": str(self.directory / "state"), "ASSAY_JOURNAL": "off"}
        return assay_text(*arguments, cwd=self.directory, env=env, said=said)

    def good(self, *arguments: str) -> str:
        """What a command prints that succeeds."""
        done = self.run(*arguments)
        assert (done.returncode, done.stderr) == (0, ""), done.stderr
        return done.stdout

    def refused(self, *arguments: str) -> str:
        """The one line of a command that fails."""
        done = self.run(*arguments)
        assert (done.returncode, done.stdout) == (2, "")
        [line] = done.stderr.splitlines()
        return line.removeprefix("assay schemas: ")
