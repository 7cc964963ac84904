"""The tiers that callers are in. Only their names: what each may use is configured."""

from typing import Final

TIERS: Final = ("community", "pro", "enterprise")
"""From the least to the most: a tier has everything that those before it have."""
