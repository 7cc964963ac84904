"""The names of the tiers. The features of each are configured."""

from typing import Final

TIERS: Final = ("community", "pro", "enterprise")
"""From the lowest to the highest: a tier has everything of those before it."""
