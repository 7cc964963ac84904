"""
Installs a wheel in a new environment, and runs what a new user would run; then what the Dockerfile runs.

`python tests/real/platforms/try_wheel.py WHEEL`. Needs the network, so that `make dist` runs it and not the suite. It
needs no Assay in the environment that starts it.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Timer

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from kit.dockerfile import copied, rests_of, words_of
from kit.places import ROOT

SECONDS = 300
"""What one step may take; installing takes longest, from a slow network."""

PIP = ("pip", "install", "--quiet", "--disable-pip-version-check")


def main(wheel: Path) -> None:
    """Both; the first thing that fails ends it."""
    with TemporaryDirectory(prefix="assay-dist-") as made:
        try_wheel(wheel.resolve(), Path(made))
    with TemporaryDirectory(prefix="assay-image-") as made:
        try_dockerfile(Path(made))
    print(f"{wheel}: installed and tried")


def try_wheel(wheel: Path, home: Path) -> None:
    """In an environment that has no extra first, whose hint is then followed."""
    step(home, sys.executable, "-m", "venv", "environment")
    step(home, *PIP, str(wheel))
    step(home, "assay", "--version")
    step(home, "assay", "check", str(ROOT / "examples" / "conversation.jsonl"), status=1, shown="contract/input")
    step(home, "assay", "demo", "--once", shown="without the guard")
    step(home, "assay", "demo", status=2, shown="assay demo --once needs no extra; serving needs ")
    told = step(home, "assay", "guard", "--target", "http://127.0.0.1:1/mcp", status=2, shown=f"'{wheel}[http]'")
    step(home, *PIP, told.rpartition(" ")[2].strip().strip("'"))
    step(home, "assay", "guard", "--target", "http://127.0.0.1:1/mcp", shown="0 findings")
    try_demo(home)


def try_demo(home: Path) -> None:
    """The demonstration while it serves: what it says to type, typed."""
    print("$ assay demo 127.0.0.1:0", flush=True)
    command = [str(home / "environment" / "bin" / "assay"), "demo", "127.0.0.1:0"]
    with subprocess.Popen(command, cwd=home, env=environment(home), stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        watchdog = Timer(SECONDS, running.kill)
        watchdog.start()
        shown: list[str] = []
        for line in running.stdout:
            shown.append(line)
            if line == "Ctrl-C ends it.\n":
                break
        calls = [line.strip() for line in shown if " call http" in line]
        for line in calls[:1] + calls[-1:]:
            step(home, "sh", "-ec", line)
        running.terminate()
        running.wait()
        watchdog.cancel()
    if running.returncode != 0 or not calls:
        sys.exit(f"{''.join(shown)}\nthe demonstration ended with status {running.returncode}")


def try_dockerfile(home: Path) -> None:
    """The instructions that need no Docker, below *home* in place of the root directory."""
    work = home / "src"
    work.mkdir()
    for name in copied():
        (work / name).parent.mkdir(exist_ok=True)
        (shutil.copytree if (ROOT / name).is_dir() else shutil.copy)(ROOT / name, work / name)
    # Only root can give a directory to another user, and not every system has a `python`.
    ours = {"10001:10001": f"{os.getuid()}:{os.getgid()}", " /": f" {home}/", " python ": f" {sys.executable} "}
    for command in rests_of("RUN"):
        moved = f" {command}"
        for name, replacement in ours.items():
            moved = moved.replace(name, replacement)
        step(work, "sh", "-ec", moved.strip())
    step(home / "work", str(home / "opt" / "assay" / "bin" / words_of("ENTRYPOINT")[0]), *words_of("CMD"))


def step(home: Path, *command: str, status: int = 0, shown: str = "") -> str:
    """Runs *command* in *home*; what it printed. Exits if that, or its status, is another."""
    print("$", *command, flush=True)
    done = subprocess.run(
        command,
        cwd=home,
        env=environment(home),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    if done.returncode != status or shown not in done.stdout:
        sys.exit(f"{done.stdout}\nexpected status {status} and {shown!r}, found status {done.returncode}")
    return done.stdout


def environment(home: Path) -> dict[str, str]:
    """The variables of a user who has nothing but the new environment."""
    unwanted = ("PYTHON", "VIRTUAL_ENV", "XDG_", "MAKE")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(unwanted)}
    return {**kept, "PATH": f"{home / 'environment' / 'bin'}:{os.environ['PATH']}", "HOME": str(home)}


if __name__ == "__main__":
    main(Path(sys.argv[1]))
