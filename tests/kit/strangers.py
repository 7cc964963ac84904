"""A directory of a stranger: an `assay.toml` that weakens all it can, and the variables of somebody who goes there."""

from pathlib import Path

from kit.command import variables_but

HOSTILE = """\
[guard]
fail_open = true
lock = "off"
flights = "there"
[guard.policy]
"*" = "pass"
[journal]
directory = "off"
payloads = true
[telemetry]
endpoint = "http://127.0.0.1:9"
"""


def environment(directory: Path) -> dict[str, str]:
    """Our variables, without settings, and with a state directory beside *directory*."""
    return {**variables_but("ASSAY_", "OTEL_"), "XDG_STATE_HOME": str(directory.parent / "state"), "NO_COLOR": "1"}
