"""Questions to a person at the terminal."""

import sys


def has_terminal() -> bool:
    """Whether there is a terminal to ask on."""
    return sys.stdin is not None and sys.stdin.isatty()


def agreed(question: str) -> bool:
    """Ask *question* on the terminal; return whether the answer is yes. Buffered output is printed first."""
    sys.stdout.flush()
    try:
        print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
        answer = sys.stdin.readline()
    except KeyboardInterrupt:
        # The terminal shows ^C after the question and stays on that line.
        print(file=sys.stderr)
        raise
    return answer.strip().lower() in {"y", "yes"}
