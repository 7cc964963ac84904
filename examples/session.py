"""
Say the lines of a file to `assay serve`, over the catalogue beside this file, and show each with its answer.

    python examples/session.py examples/session.jsonl
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

HERE = Path(__file__).resolve().parent
SERVE = [
    sys.executable,
    "-m",
    "assay",
    "serve",
    "--schemas",
    "jsonschema",
    "--examples",
    "examples",
    "--journal",
    "off",
]


def session(lines: Sequence[str]) -> Iterator[tuple[str, str | None]]:
    """Each of *lines*, with the server's answer, which is a line, too; None where nothing is due."""
    with TemporaryDirectory() as directory:
        done = subprocess.run(
            SERVE,
            input="".join(f"{line}\n" for line in lines),
            capture_output=True,
            cwd=HERE / "catalogue",
            env={**os.environ, "MCP_READY_FILE": str(Path(directory) / "ready")},
            encoding="utf-8",
            check=False,
        )
    if done.returncode:
        sys.exit(done.stderr)
    answers = iter(done.stdout.splitlines())
    for line in lines:
        yield line, next(answers) if is_answered(line) else None


def is_answered(line: str) -> bool:
    """Whether *line* gets an answer: all but blank lines and notifications do."""
    try:
        message = json.loads(line)
    except ValueError:
        return bool(line.strip())
    return not isinstance(message, dict) or "id" in message or "method" not in message


def laid_out(value: Any, width: int, before: int = 0) -> list[str]:
    """*value* as JSON: on one line, *before* characters into it, if it fits; else each member on lines of its own."""
    text = written(value)
    if before + len(text) <= width or not isinstance(value, dict | list) or not value:
        return [text]
    if isinstance(value, list):
        return ["[", *below([laid_out(each, width - 3) for each in value]), "]"]
    *short, (name, last) = value.items()
    head = "".join(f"{written(key)}:{written(member)}," for key, member in short) + f"{written(name)}:"
    first, *rest = laid_out(last, width, before + len(head) + 2)
    if rest and before + len(head) + len(first) < width:
        # A long last member begins on the line of the short ones before it.
        return [f"{{{head}{first}", *rest[:-1], f"{rest[-1]}}}"]
    keys = [f"{written(key)}:" for key in value]
    members = [laid_out(member, width - 3, len(key)) for key, member in zip(keys, value.values(), strict=True)]
    return ["{", *below([[key + first, *rest] for key, (first, *rest) in zip(keys, members, strict=True)]), "}"]


def below(members: Sequence[list[str]]) -> list[str]:
    """The lines of *members*, indented, with commas between them."""
    parted = [*([*lines[:-1], f"{lines[-1]},"] for lines in members[:-1]), members[-1]]
    return [f"  {line}" for lines in parted for line in lines]


def written(value: Any) -> str:
    """*value* as it travels."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def cut(line: str, width: int) -> str:
    """*line*, or as much of it as fits."""
    return line if len(line) <= width else f"{line[: width - 1]}…"


def main(names: Sequence[str]) -> None:
    """Show the sessions in the files called *names*."""
    width = shutil.get_terminal_size((100, 24)).columns - 3
    for name in names or [str(HERE / "session.jsonl")]:
        for line, answer in session(Path(name).read_text(encoding="utf-8").splitlines()):
            print(f"→ {line}")
            for number, shown in enumerate(laid_out(json.loads(answer), width) if answer else []):
                print("  " if number else "← ", cut(shown, width), sep="")


if __name__ == "__main__":
    main(sys.argv[1:])
