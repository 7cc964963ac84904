"""Which feature needs which tier."""

import pickle
from contextlib import nullcontext

import pytest

from assay.assets.enveloper import enveloped
from assay.assets.response_envelope import Tiers, ToolError, UpgradeHint, UpgradeRequiredError
from assay.model.limits import TIERS
from kit.rows import rows


@rows(
    ("needed", "allowed"),
    [("community", ["community", "pro", "enterprise"]), ("pro", ["pro", "enterprise"]), ("enterprise", ["enterprise"])],
)
def test_a_tier_has_what_the_lower_ones_have(needed: str, allowed: list[str]) -> None:
    tiers = Tiers({"populate_backend": needed})
    Tiers().check("populate_backend", "anything", needed)
    assert tiers.needed("populate_backend") == needed
    assert [tier for tier in TIERS if tiers.allows("populate_backend", tier)] == allowed
    for tier in TIERS:
        with (
            nullcontext() if tier in allowed else pytest.raises(UpgradeRequiredError, match=f"needs the {needed} tier")
        ):
            tiers.check("populate_backend", "populate_backend", tier)


def test_a_tier_that_is_none_is_refused_in_the_table_and_in_the_question() -> None:
    with pytest.raises(ValueError, match="tier must be one of"):
        Tiers({"a": "gold"})
    with pytest.raises(ValueError, match="tier must be one of"):
        Tiers().check("a", "a", "Gold")
    with pytest.raises(ValueError, match="tier must be one of"):
        UpgradeRequiredError("a", "a", "gold")


def test_a_missing_feature_becomes_an_error_and_a_hint() -> None:
    """Source: specs/004, Upgrade Hints."""
    tiers = Tiers({"deep_scan": "pro"})
    envelope = enveloped(
        lambda: tiers.check("security_scan", "deep_scan", "community"),
        tool_id="security_scan",
        tool_version="1.0.0",
        tier="community",
        arguments={},
    )
    assert envelope.error == ToolError("This needs the pro tier.", "upgrade_required")
    assert envelope.upgrade_hints == (UpgradeHint("deep_scan", "pro", "deep_scan needs the pro tier."),)
    assert envelope.data is None


def test_the_exception_survives_a_pickle() -> None:
    error = UpgradeRequiredError("security_scan", "deep_scan", "pro")
    again = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own
    assert (again.tool_id, again.feature, again.required_tier) == ("security_scan", "deep_scan", "pro")
    assert str(again) == "security_scan: deep_scan needs the pro tier."
