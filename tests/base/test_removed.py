"""What earlier versions had answers with what to use in its place."""

from pathlib import Path

import pytest

from assay.base.removed import COMMANDS, FORMATS, OPTIONS, SETTINGS
from assay.cli.main import main
from assay.settings import SettingsError, load


@pytest.mark.parametrize("name", FORMATS)
def test_a_removed_format_names_its_successor(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["check", "--from", name, "a.jsonl"])
    assert ended.value.code == 2
    assert f"{name}: removed: {FORMATS[name]}" in capsys.readouterr().err


@pytest.mark.parametrize("name", COMMANDS)
def test_a_removed_command_names_its_successor(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    status: object
    try:
        status = main(name.split())
    except SystemExit as ended:
        status = ended.code
    assert status == 2
    assert f"removed: {COMMANDS[name]}" in capsys.readouterr().err


@pytest.mark.parametrize("name", OPTIONS)
def test_a_removed_option_names_its_successor(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["guard", name, "--", "true"])
    assert ended.value.code == 2
    assert f"{name}: removed: {OPTIONS[name]}" in capsys.readouterr().err


@pytest.mark.parametrize("key", SETTINGS)
def test_a_removed_setting_names_its_successor(key: str, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="removed: "):
        load({}, str(tmp_path), flags=[f"{key}{'' if '.' in key else '.x'}=true"], log=print)


def test_a_policy_that_names_a_removed_rule_says_so(tmp_path: Path) -> None:
    from assay.base.removed import RULES as REMOVED

    rule = min(REMOVED)
    (tmp_path / "a.toml").write_text(f'[guard.policy]\n"{rule}" = "refuse"\n')
    with pytest.raises(SettingsError, match=f"{rule}: removed: leave it out"):
        load({}, str(tmp_path), file=str(tmp_path / "a.toml"), log=print)


def test_every_successor_is_an_instruction() -> None:
    for table in (FORMATS, COMMANDS, OPTIONS, SETTINGS):
        assert all(each.startswith(("use ", "leave ")) for each in table.values())
