"""The mask in place of a secret. Separate from the code that finds secrets, which takes time to import."""

from typing import Final

MASK: Final = "[redacted]"
