"""What stands in the place of a secret. Apart from what finds secrets, which takes some time to load."""

from typing import Final

MASK: Final = "[redacted]"
