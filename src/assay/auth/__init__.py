"""Authentication over HTTP: API keys and signed tokens, and the responses to clients without valid ones."""

from assay.auth.gate import Gate
from assay.auth.refusals import Denied, Principal

__all__ = ["Denied", "Gate", "Principal"]
