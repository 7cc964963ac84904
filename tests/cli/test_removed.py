"""What earlier versions had answers with what to use in its place."""

from pathlib import Path

import pytest

from assay.cli.removed import COMMANDS, FORMATS, OPTIONS
from assay.rules.table import REMOVED
from assay.settings import SettingsError, load
from assay.settings.loading import REMOVED as SETTINGS
from kit.command import assay_text
from kit.rows import rows

TYPED = [
    *((["check", "--from", name, "a.jsonl"], f"{name}: removed: {use}") for name, use in FORMATS.items()),
    *((name.split(), f"removed: {use}") for name, use in COMMANDS.items()),
    *((["guard", name, "--", "true"], f"{name}: removed: {use}") for name, use in OPTIONS.items()),
]


@rows(("typed", "message"), TYPED)
def test_a_removed_format_command_or_option_names_its_successor(typed: list[str], message: str) -> None:
    done = assay_text(*typed)
    assert (done.returncode, message in done.stderr) == (2, True)


def test_a_removed_setting_names_its_successor_and_a_policy_that_names_a_removed_rule_says_so(tmp_path: Path) -> None:
    for key in SETTINGS:
        with pytest.raises(SettingsError, match="removed: "):
            load({}, str(tmp_path), flags=[f"{key}{'' if '.' in key else '.x'}=true"], log=print)
    rule = min(REMOVED)
    (tmp_path / "a.toml").write_text(f'[guard.policy]\n"{rule}" = "refuse"\n')
    with pytest.raises(SettingsError, match=f"{rule}: removed: leave it out"):
        load({}, str(tmp_path), file=str(tmp_path / "a.toml"), log=print)


def test_every_successor_is_an_instruction() -> None:
    for table in (FORMATS, COMMANDS, OPTIONS, SETTINGS):
        assert all(each.startswith(("use ", "leave ")) for each in table.values())
