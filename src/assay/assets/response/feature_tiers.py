"""The tier of each feature: a table and a comparison. The tier of a client is decided elsewhere."""

from collections.abc import Mapping
from typing import Final

from assay.assets.response.model import UpgradeHint
from assay.base.limits import TIERS

_RANK: Final = {tier: rank for rank, tier in enumerate(TIERS)}


def needs(feature: str, tier: str) -> UpgradeHint:
    """Return the hint about the needed tier."""
    return UpgradeHint(feature, tier, f"{feature} needs the {tier} tier.")


class UpgradeRequiredError(Exception):
    """The client's tier does not have a feature. In an envelope it becomes `upgrade_required` and a hint."""

    def __init__(self, tool_id: str, feature: str, required_tier: str) -> None:
        self.tool_id = tool_id
        self.feature = feature
        self.required_tier = required_tier
        self.hint = needs(feature, required_tier)
        """The hint of specs/004."""
        # All arguments, so that the exception can be pickled between processes.
        super().__init__(tool_id, feature, required_tier)

    def __str__(self) -> str:
        return f"{self.tool_id}: {self.hint.reason}"


class Tiers:
    """
    The tier of each feature; a feature that is not in the table is in every tier.

    Raises `ValueError` for an unknown tier: a mistyped table would open or close a feature for everyone.
    """

    __slots__ = ("_needs",)

    def __init__(self, needs: Mapping[str, str] | None = None) -> None:
        self._needs = {feature: _known(tier) for feature, tier in (needs or {}).items()}

    def needed(self, feature: str) -> str:
        """Return the lowest tier with *feature*."""
        return self._needs.get(feature, TIERS[0])

    def allows(self, feature: str, tier: str) -> bool:
        """Whether *tier* has *feature*."""
        return _RANK[_known(tier)] >= _RANK[self.needed(feature)]

    def check(self, tool_id: str, feature: str, tier: str) -> None:
        """Raise `UpgradeRequiredError` if *tier* does not have *feature*."""
        if not self.allows(feature, tier):
            raise UpgradeRequiredError(tool_id, feature, self.needed(feature))


def _known(tier: str) -> str:
    if tier not in TIERS:
        raise ValueError(f"tier must be one of {', '.join(TIERS)}")
    return tier
