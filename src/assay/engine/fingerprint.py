"""What a JSON value is known by: the digest of its canonical form. No I/O."""

from typing import Any

import orjson


def fingerprint(value: Any) -> str:
    """SHA-256 of *value* as canonical JSON, in hexadecimal: the same for any order of keys."""
    from hashlib import sha256  # noqa: PLC0415 - nine milliseconds that no verdict needs

    return sha256(orjson.dumps(value, option=orjson.OPT_SORT_KEYS)).hexdigest()
