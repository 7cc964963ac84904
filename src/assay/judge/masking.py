"""
Hide secrets in command lines, URLs and texts of a configuration. No I/O.

A secret option, variable or header hides its value, and so does an option of one letter that many programs use for a
password. A word that looks random is hidden wherever it stands. In doubt a word is hidden: a lock goes into version
control, which keeps everything.

Masking twice gives the same result, so that masked commands can be compared.
"""

import re
from collections.abc import Iterable
from functools import cache
from itertools import pairwise
from typing import Final

from assay.judge.redaction import Redactor
from assay.model.printable import MASK

# ── names ────────────────────────────────────────────────────────────────────────────────────────────────────────────

# Names of secrets on a command line only: elsewhere a key may be anything.
_SHORT_NAMES: Final = r"(?:keys?|pass|pat|auth|creds?|sig|signature|pw|pin|otp|session|sess|sid)"
_SHORT_NAME: Final = re.compile(rf"(?:^|.*[\W_]){_SHORT_NAMES}", re.IGNORECASE)
_HUMP: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
"""Between the words of ``dbPass``."""

_SWITCHES: Final = frozenset({"true", "false", "none", "null", "yes", "no", "on", "off"})
_SIGN_INS: Final = frozenset(
    {"basic", "bearer", "digest", "oauth", "oauth2", "oidc", "jwt", "mtls", "token", "apikey", "api-key", "api_key",
     "auto"}
)  # fmt: skip
"""Values of ``--auth`` that are a method, not a secret."""

_PATH: Final = re.compile(
    r"\.{0,2}/.*|~\w*/.*|\.[\w-]+/.*|[A-Za-z]:[\\/].*"
    r"|.*\.(?:pem|key|crt|cer|der|p12|p8|pfx|pub|ppk|jks|asc|gpg|json|toml|ya?ml|txt|ini|conf|m?[jt]s|py|sh)",
    re.IGNORECASE | re.DOTALL,
)

# The name of a variable or of a client's prompt is not a secret, and it is useful to see it. A default
# (`${NAME:-value}`) may be one.
_REFERENCE: Final = re.compile(
    r"(?:(?:bearer|basic|token) +)?(?:\$\{[A-Za-z_]\w*(?::[A-Za-z_][\w.-]*)?\})+", re.IGNORECASE
)


@cache
def redactor() -> Redactor:
    """Return the redactor for everything here."""
    return Redactor()


def is_secret_name(name: str) -> bool:
    """Return whether an option, a variable or a path segment called *name* has a secret value."""
    return redactor().is_secret(name) or _SHORT_NAME.fullmatch(_HUMP.sub("-", name)) is not None


def masked_secret(value: str) -> str:
    """Return the secret *value* hidden; a reference to a variable is not a secret."""
    return value if not value or _REFERENCE.fullmatch(value) else MASK


def _masked_named(name: str, value: str) -> str:
    """Return *value*, the value of a secret *name*, hidden as a whole. A switch or the path of a key file is shown."""
    last = re.split(r"[\W_]", _HUMP.sub("-", name).lower())[-1]
    if last == "auth":
        user, colon, password = value.partition(":")
        is_method = value.lower() in _SWITCHES | _SIGN_INS
        return value if is_method else f"{user}:{masked_secret(password)}" if colon else masked_secret(value)
    if redactor().is_secret(name):
        return masked_secret(value)
    is_shown = value.lower() in _SWITCHES or (last in {"key", "keys"} and _is_path(value))
    return value if is_shown else masked_secret(value)


def _is_path(value: str) -> bool:
    """Return whether *value* looks like the path of a file rather than a secret."""
    given = any(each in value for each in "=?") or (":" in value and "@" in value)
    return _PATH.fullmatch(value) is not None and not given and not looks_random(value)


# ── random words ─────────────────────────────────────────────────────────────────────────────────────────────────────

_FEWEST: Final = 16
"""Minimal length of a text that can look random; shorter ones are names."""

_FEWEST_AFTER_LETTER: Final = 8
"""The same after an option of one letter."""

_ENTROPIC: Final = 0.3
"""
Changes between lower case, upper case and digits, per character of a text that looks random.

Random letters and digits have 0.6, hexadecimal digits 0.47; `modelContextProtocolServer2` has 0.27.
"""
_TOKEN: Final = re.compile(r"[A-Za-z0-9_+/-]+={0,2}")
_UUID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


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


# ── texts and URLs ───────────────────────────────────────────────────────────────────────────────────────────────────

_QUERY: Final = re.compile(r"([?&][^=&#\s]*=)[^&#\s]+")
_URL_PATH: Final = re.compile(r"(?<=://)([^\s/?#]*)(/[^\s?#\"']*)")
_NAMED: Final = re.compile(
    rf"""(?P<name>(?<![^\W_]){_SHORT_NAMES})(?P<sign>["']?\s{{0,4}}+[:=]\s{{0,4}}+)(?P<quote>["'])?"""
    r"""(?P<value>(?(quote)(?:(?!(?P=quote)).)++|[^\s"'&,;]++))""",
    re.IGNORECASE | re.DOTALL,
)

# The redactor requires eight characters, because it also reads prose.
_BEARER: Final = re.compile(r"""\b(bearer[ \t]{1,4}+)([^\s"',;]++)""", re.IGNORECASE)

_ACCOUNT: Final = re.compile(r"""(?<![\w./:@%+\]-])([\w.%+][\w.%+-]*+):(?![/\\])[^\s@"']++@(?!sha\d+:)(?=[\w(\[])""")
"""User name and password before a host, without the scheme of a URL: ``me:password@tcp(host)/db``."""
_SCHEMES: Final = frozenset(
    {"npm", "jsr", "file", "link", "workspace", "git", "github", "gitlab", "bitbucket", "docker"}
)
"""Schemes with a version or a branch after the ``@``: ``npm:server@1.2``."""


def masked_text(text: str) -> str:
    """Return *text* without query values and secrets."""
    shown = redactor().text(_QUERY.sub(rf"\1{MASK}", text))
    shown = _BEARER.sub(lambda found: found[1] + masked_secret(found[2]), shown)
    shown = _NAMED.sub(_masked_assignment, shown)
    shown = _ACCOUNT.sub(lambda found: found[0] if found[1].lower() in _SCHEMES else f"{MASK}@", shown)
    return _URL_PATH.sub(lambda found: found[1] + _masked_path(found[2]), shown)


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


def is_masked(texts: Iterable[str]) -> bool:
    """Whether one of *texts* has a masked part."""
    return any(MASK in each for each in texts)


def _masked_assignment(found: re.Match[str]) -> str:
    return found["name"] + found["sign"] + (found["quote"] or "") + _masked_named(found["name"], found["value"])


def _masked_path(path: str) -> str:
    """Return the *path* of a URL without segments that look random or follow a segment called token or key."""
    before, shown = "", []
    for segment in path.split("/"):
        # A short segment after /keys/ is a word of the API.
        is_secret = looks_random(segment) or (len(segment) >= 8 and is_secret_name(before))
        shown.append(masked_secret(segment) if is_secret else segment)
        before = segment
    return "/".join(shown)


def _masked_parameter(parameter: str) -> str:
    name, equals, value = parameter.partition("=")
    return f"{redactor().text(name)}={masked_secret(value)}" if equals else masked_secret(parameter)


# ── command lines ────────────────────────────────────────────────────────────────────────────────────────────────────

_PAIRS: Final = {"-e": "=", "--env": "=", "-b": "=", "--build-arg": "=", "-H": ":", "--header": ":", "--headers": ":"}
"""Options for variables, cookies and headers, as in docker, curl and the guard, with the separator before the value."""

_ACCOUNTS: Final = frozenset({"-u", "--user", "-user", "--login", "-login", "--proxy-user", "-U"})
"""Options for a user name and a password, separated by a colon."""

_PASSWORDS: Final = frozenset({"-p", "-k"})
"""Options of one letter that many programs use for a password or a key."""

_RUNNERS: Final = frozenset({"npx", "bunx", "pnpx"})
"""Commands that run a package: their own ``-p`` names one."""

_PORTS: Final = re.compile(
    r"(?:[\d.]+:|\[[\da-fA-F:.]+\]:)?\d{1,5}(?:-\d{1,5})?(?::\d{1,5}(?:-\d{1,5})?)?(?:/(?:tcp|udp|sctp))?"
    r"|\d(?:\.\d{1,2}){1,2}",
    re.ASCII,
)
"""A port, ports of a container such as ``127.0.0.1:8080:80/tcp``, or the version of an interpreter."""

_LONG_NAME: Final = re.compile(
    r"-(?:ports?|paths?|pid(?:file)?|profile|project|protocol|prefix|plugins?|proxy|packages?|pattern|preset|provider"
    r"|platform|public|poll|pool|params|kube(?:config)?|kind|keep(?:alive)?|bind|base|env|endpoint"
    r"|keys?|pass(?:word|wd|phrase)?|pat|pin|pwd?)(?![a-z])"
    r"|-[A-Za-z]{1,3}\Z"
)
"""A long option with one hyphen, or several options: ``-port`` is not ``-p`` with ``ort``."""

_OPTION: Final = re.compile(r"(--?[A-Za-z][\w.-]*)(?:(=)(.*))?", re.DOTALL)
_VARIABLE: Final = re.compile(r"([A-Za-z_][\w.-]*)=(.*)", re.DOTALL)
_NEGATED: Final = re.compile(r"-+(?:no|disable|skip|without|require|ask)[-_].*", re.IGNORECASE)
"""Switches without a value."""

_WITHIN: Final = re.compile(r"""((?<!\S)--?[A-Za-z][\w-]*+[ \t]{1,4}+)("[^"]*+"|'[^']*+'|[^\s-][^\s]*+)""")
"""An option and its value inside a command line that is one word."""


def masked_command(words: Iterable[str]) -> tuple[str, ...]:
    """Return a command and its arguments without secrets."""
    before, shown = "", list[str]()
    runs_package = False
    for word in words:
        is_package = runs_package and before == "-p"
        # As it is shown: masked again, the next word has the same word before it.
        before = _masked_word(word) if is_package else masked_argument(before, word)
        # What follows the first plain word belongs to the server.
        runs_package = (runs_package and (is_package or word.startswith("-"))) or (not shown and word in _RUNNERS)
        shown.append(before)
    return tuple(shown)


def masked_argument(before: str, word: str) -> str:
    """Return *word*, the argument after *before*, without secrets."""
    # After --option=value, the next word is not a value.
    given = None if _NEGATED.fullmatch(before) else _OPTION.fullmatch(before)
    if given and not given[2] and _is_value(before, word):
        return _masked_value(before, word)
    if word.startswith("-"):
        return _masked_option(word)
    variable = _VARIABLE.fullmatch(word)
    if variable and is_secret_name(variable[1]):
        return f"{variable[1]}={_masked_named(variable[1], variable[2])}"
    return masked_secret(word) if before.lower() == "bearer" else _masked_word(word)


def _is_value(option: str, word: str) -> bool:
    """Whether *word* is the value of *option* rather than an option: a secret may start with a hyphen, too."""
    if not word.startswith("-"):
        return True
    if option in _PAIRS:
        return _PAIRS[option] in word
    return len(word) > 2 and not word.startswith("--") and is_secret_name(option.lstrip("-"))


def _masked_option(word: str) -> str:
    """Return an option masked, with its value if that is in the same word: ``-pVALUE`` or ``--name=VALUE``."""
    letter, joined = word[:2], word[2:]
    is_short = joined and not _LONG_NAME.match(word)
    if is_short and (letter in _PASSWORDS or (letter in _PAIRS and _PAIRS[letter] in joined[1:])):
        return letter + _masked_value(letter, joined)
    option = _OPTION.fullmatch(word)
    if option and option[2]:
        return f"{option[1]}={MASK if looks_random(option[3]) else _masked_value(option[1], option[3])}"
    if (is_short and letter in _ACCOUNTS) or (letter != "--" and looks_random(joined, _FEWEST_AFTER_LETTER)):
        return letter + _masked_value(letter, joined)
    return _masked_word(word)


def _masked_value(option: str, value: str) -> str:
    """Return the *value* of *option* without secrets."""
    name, shown = option.lstrip("-"), _masked_word(value)
    if is_secret_name(name):
        return _masked_named(name, value)
    if _PAIRS.get(option, "\0") in value:
        key, sign, secret = value.partition(_PAIRS[option])
        return f"{key}{sign}{' ' * secret.startswith(' ')}{masked_secret(secret.lstrip())}"
    if "://" in shown:
        return shown
    if option in _ACCOUNTS and ":" in value and not re.match(r"[A-Za-z]:[\\/]|\d+:\d+\Z", value):
        user, _, password = value.partition(":")
        return f"{user}:{masked_secret(password)}"
    if option in _PASSWORDS and not _is_path(value) and not (option == "-p" and _PORTS.fullmatch(value)):
        return masked_secret(value)
    return MASK if len(option) == 2 and looks_random(value, _FEWEST_AFTER_LETTER) else shown


def _masked_word(word: str) -> str:
    """Return a plain argument masked."""
    name, equals, value = word.partition("=")
    if equals and looks_random(value):
        word = f"{name}={MASK}"
    if not word.startswith(("/", "-")) and looks_random(word):
        return MASK
    if any(each in word for each in " \t"):
        word = _WITHIN.sub(lambda found: found[1] + masked_argument(found[1].strip(), found[2]), word)
    return masked_text(word)
