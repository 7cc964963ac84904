"""The response envelope of specs/004: the shape that every tool answers in, and what puts an answer into it."""

from assay.response.codes import ERROR_CODES
from assay.response.enveloper import Enveloper, envelop_tool_function, enveloped
from assay.response.model import ResponseEnvelope, ToolError, UpgradeHint
from assay.response.tiers import Tiers, UpgradeRequiredError
from assay.tiers import TIERS

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
