"""Which feature needs which tier. A table and a comparison; who is in which tier is somebody else's business."""

from collections.abc import Mapping
from typing import Final

from assay.assets.response.model import UpgradeHint
from assay.base.tiers import TIERS

_RANK: Final = {tier: rank for rank, tier in enumerate(TIERS)}


def needs(feature: str, tier: str) -> UpgradeHint:
    """The hint that says just that."""
    return UpgradeHint(feature, tier, f"{feature} needs the {tier} tier.")


class UpgradeRequiredError(Exception):
    """A feature is not there in the caller's tier. In an envelope it becomes `upgrade_required` and a hint."""

    def __init__(self, tool_id: str, feature: str, required_tier: str) -> None:
        self.tool_id = tool_id
        self.feature = feature
        self.required_tier = required_tier
        self.hint = needs(feature, required_tier)
        """What specs/004 wants to be said of it."""
        # All of it, so that the exception survives a pickle on its way from another process.
        super().__init__(tool_id, feature, required_tier)

    def __str__(self) -> str:
        return f"{self.tool_id}: {self.hint.reason}"


class Tiers:
    """
    What each feature needs; one that is not in the table is in every tier.

    Raises `ValueError` for a tier that is none: a misspelt table would give a feature away, or to nobody.
    """

    __slots__ = ("_needs",)

    def __init__(self, needs: Mapping[str, str] | None = None) -> None:
        self._needs = {feature: _known(tier) for feature, tier in (needs or {}).items()}

    def needed(self, feature: str) -> str:
        """The least tier that has *feature*."""
        return self._needs.get(feature, TIERS[0])

    def allows(self, feature: str, tier: str) -> bool:
        """Whether *tier* has *feature*."""
        return _RANK[_known(tier)] >= _RANK[self.needed(feature)]

    def check(self, tool_id: str, feature: str, tier: str) -> None:
        """Raises `UpgradeRequiredError` if *tier* does not have *feature*."""
        if not self.allows(feature, tier):
            raise UpgradeRequiredError(tool_id, feature, self.needed(feature))


def _known(tier: str) -> str:
    if tier not in TIERS:
        raise ValueError(f"tier must be one of {', '.join(TIERS)}")
    return tier
