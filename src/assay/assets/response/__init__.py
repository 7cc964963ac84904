"""The response envelope of specs/004: the common shape of all tool results, and the code that makes it."""

from assay.assets.response.envelope_schema import ERROR_CODES
from assay.assets.response.enveloper import Enveloper, envelop_tool_function, enveloped
from assay.assets.response.feature_tiers import Tiers, UpgradeRequiredError
from assay.assets.response.model import ResponseEnvelope, ToolError, UpgradeHint
from assay.base.limits import TIERS

__all__ = [
    "ERROR_CODES",
    "TIERS",
    "Enveloper",
    "ResponseEnvelope",
    "Tiers",
    "ToolError",
    "UpgradeHint",
    "UpgradeRequiredError",
    "envelop_tool_function",
    "enveloped",
]
