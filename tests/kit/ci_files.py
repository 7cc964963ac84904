"""The action, the hooks of pre-commit, and the files of the page about CI."""

import re
from typing import Any

import yaml

from kit.places import ROOT

ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
HOOKS = {hook["id"]: hook for hook in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))}
PAGE = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
WORKFLOW, GITLAB, PRE_COMMIT = (yaml.safe_load(text) for text in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL))


def steps_of(job: str) -> list[dict[str, Any]]:
    steps: list[dict[str, Any]] = WORKFLOW["jobs"][job]["steps"]
    return steps
