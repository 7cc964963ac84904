"""A short run of what `make soak` runs for long, the same each time."""

from mutations import seeds
from soak import soak

from kit.rows import rows


@rows("name", ["serve-http", "sc-enforce", "sh-audit", "hc-enforce", "hh-audit"])
def test_no_changed_message_ends_a_process_or_stays_without_an_answer(name: str) -> None:
    soak(name, 300 if name.startswith("sc") else 60, 1, seeds())
