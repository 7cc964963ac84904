"""
Hide secrets in text and URLs. No I/O.

Masking twice gives the same result, so that masked texts can be compared.
"""

import re
from collections.abc import Iterable
from functools import cache
from itertools import pairwise
from typing import Final

from assay.base.printable import MASK
from assay.core.redaction import Redactor

# The name of a variable or of a client's prompt is not a secret, and it is useful to see it. A default
# (`${NAME:-value}`) may be one.
_REFERENCE: Final = re.compile(
    r"(?:(?:bearer|basic|token) +)?(?:\$\{[A-Za-z_]\w*(?::[A-Za-z_][\w.-]*)?\})+", re.IGNORECASE
)
_QUERY: Final = re.compile(r"([?&][^=&#\s]*=)[^&#\s]+")
_URL_PATH: Final = re.compile(r"(?<=://)([^\s/?#]*)(/[^\s?#\"']*)")

# Names of secrets on a command line only: elsewhere a key may be anything.
_SHORT_NAMES: Final = r"(?:keys?|pass|pat|auth|creds?|sig|signature|pw|pin|otp|session|sess|sid)"
_SHORT_NAME: Final = re.compile(rf"(?:^|.*[\W_]){_SHORT_NAMES}", re.IGNORECASE)
_ASSIGNED: Final = re.compile(
    rf"""(?P<name>(?<![^\W_]){_SHORT_NAMES})(?P<sign>["']?\s{{0,4}}+[:=]\s{{0,4}}+)(?P<quote>["'])?"""
    r"""(?P<value>(?(quote)(?:(?!(?P=quote)).)++|[^\s"'&,;]++))""",
    re.IGNORECASE | re.DOTALL,
)
_HUMP: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
"""Between the words of ``dbPass``."""

# The redactor requires eight characters, because it also reads prose.
_BEARER: Final = re.compile(r"""\b(bearer[ \t]{1,4}+)([^\s"',;]++)""", re.IGNORECASE)

_ACCOUNT: Final = re.compile(r"""(?<![\w./:@%+\]-])([\w.%+][\w.%+-]*+):(?![/\\])[^\s@"']++@(?!sha\d+:)(?=[\w(\[])""")
"""User name and password before a host, without the scheme of a URL: ``me:password@tcp(host)/db``."""
_SCHEMES: Final = frozenset(
    {"npm", "jsr", "file", "link", "workspace", "git", "github", "gitlab", "bitbucket", "docker"}
)
"""Schemes with a version or a branch after the ``@``: ``npm:server@1.2``."""

_SWITCHES: Final = frozenset({"true", "false", "none", "null", "yes", "no", "on", "off"})
_SIGN_INS: Final = frozenset({"basic", "bearer", "digest", "oauth", "oauth2", "oidc", "jwt", "mtls", "token", "apikey",
                              "api-key", "api_key", "auto"})  # fmt: skip
"""Values of ``--auth`` that are a method, not a secret."""

_PATH: Final = re.compile(
    r"\.{0,2}/.*|~\w*/.*|\.[\w-]+/.*|[A-Za-z]:[\\/].*"
    r"|.*\.(?:pem|key|crt|cer|der|p12|p8|pfx|pub|ppk|jks|asc|gpg|json|toml|ya?ml|txt|ini|conf|m?[jt]s|py|sh)",
    re.IGNORECASE | re.DOTALL,
)

_FEWEST: Final = 16
"""Minimal length of a text that can look random; shorter ones are names."""

_ENTROPIC: Final = 0.3
"""
Changes between lower case, upper case and digits, per character of a text that looks random.

Random letters and digits have 0.6, hexadecimal digits 0.47; `modelContextProtocolServer2` has 0.27.
"""
_TOKEN: Final = re.compile(r"[A-Za-z0-9_+/-]+={0,2}")
_UUID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


@cache
def redactor() -> Redactor:
    """Return the redactor for everything here."""
    return Redactor()


def masked_secret(value: str) -> str:
    """Return the secret *value* hidden; a reference to a variable is not a secret."""
    return value if not value or _REFERENCE.fullmatch(value) else MASK


def looks_random(text: str, fewest: int = _FEWEST) -> bool:
    """Return whether *text*, of at least *fewest* characters, looks like a generated key or id."""
    if len(text) < fewest or not _TOKEN.fullmatch(text):
        return False
    if _UUID.fullmatch(text):
        return True
    kinds = ["d" if each.isdigit() else "u" if each.isupper() else "l" if each.islower() else "" for each in text]
    if "d" not in kinds or ("l" not in kinds and "u" not in kinds):
        return False
    changes = sum(one != other for one, other in pairwise(kinds) if one and other)
    return changes / (len(text) - 1) >= _ENTROPIC


def masked_text(text: str) -> str:
    """Return *text* without query values and secrets."""
    shown = redactor().text(_QUERY.sub(rf"\1{MASK}", text))
    shown = _BEARER.sub(lambda found: found[1] + masked_secret(found[2]), shown)
    shown = _ASSIGNED.sub(_masked_assignment, shown)
    shown = _ACCOUNT.sub(lambda found: found[0] if found[1].lower() in _SCHEMES else f"{MASK}@", shown)
    return _URL_PATH.sub(lambda found: found[1] + masked_path(found[2]), shown)


def _masked_assignment(found: re.Match[str]) -> str:
    return found["name"] + found["sign"] + (found["quote"] or "") + masked_named(found["name"], found["value"])


def masked_path(path: str) -> str:
    """Return the *path* of a URL without segments that look random or follow a segment called token or key."""
    before, shown = "", []
    for segment in path.split("/"):
        # A short segment after /keys/ is a word of the API.
        named = len(segment) >= 8 and (is_secret_name(before))
        shown.append(masked_secret(segment) if named or looks_random(segment) else segment)
        before = segment
    return "/".join(shown)


def is_secret_name(name: str) -> bool:
    """Return whether an option, a variable or a path segment called *name* has a secret value."""
    return redactor().is_secret(name) or _SHORT_NAME.fullmatch(_HUMP.sub("-", name)) is not None


def masked_named(name: str, value: str) -> str:
    """Return *value*, the value of a secret *name*, hidden as a whole. The path of a key file is not hidden."""
    last = re.split(r"[\W_]", _HUMP.sub("-", name).lower())[-1]
    if last == "auth":
        return _masked_sign_in(value)
    if redactor().is_secret(name):
        return masked_secret(value)
    if value.lower() in _SWITCHES or (last in {"key", "keys"} and is_path(value)):
        return value
    return masked_secret(value)


def _masked_sign_in(value: str) -> str:
    """Return the masked value of ``--auth``: ``name:password``, a secret, or the name of a method."""
    if value.lower() in _SWITCHES | _SIGN_INS:
        return value
    if "://" in value and "://" in (shown := masked_text(value)):
        return shown
    name, colon, password = value.partition(":")
    return f"{name}:{masked_secret(password)}" if colon else masked_secret(value)


def is_path(value: str) -> bool:
    """Return whether *value* looks like the path of a file rather than a secret."""
    given = any(each in value for each in "=?") or (":" in value and "@" in value)
    return _PATH.fullmatch(value) is not None and not given and not looks_random(value)


def masked_url(url: str) -> str:
    """
    Return *url* without user name and password, and with only the names of its query and fragment.

    A path segment that looks random is hidden, too: some servers give each user a secret address.
    """
    address, sign, rest = url.partition("?")
    if not sign:
        address, sign, rest = url.partition("#")
    if not sign:
        return masked_text(url)
    return masked_text(address) + sign + "&".join(map(_masked_parameter, rest.split("&")))


def _masked_parameter(parameter: str) -> str:
    name, equals, value = parameter.partition("=")
    if equals:
        return f"{redactor().text(name)}={masked_secret(value)}"
    return masked_secret(parameter)


def is_masked(texts: Iterable[str]) -> bool:
    """Whether one of *texts* has a masked part."""
    return any(MASK in each for each in texts)
