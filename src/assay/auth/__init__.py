"""Who may come in over HTTP: API keys and signed tokens, and what is said to those who may not."""

from assay.auth.gate import Gate
from assay.auth.refusals import Denied, Principal

__all__ = ["Denied", "Gate", "Principal"]
