"""
What to install where a module of an optional dependency is missing.

A hint names only what can be installed: the path, archive or repository that this distribution came from, and its name
only where a package index had it. Imported after an import has failed, never before.
"""

import json
import sys
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from shlex import quote
from typing import Any, Final
from urllib.parse import urlsplit
from urllib.request import url2pathname

NAME: Final = "mcp-assay"

_TOOLS: Final = {
    "uv-receipt.toml": "uv tool install --force {}",
    "pipx_metadata.json": "pipx install --force {}",
}
"""The command of those who keep an environment for each program, by the file that they leave in it."""

_THROW_AWAY: Final = "archive-v0"
"""The directory of uv's cache that `uvx` makes its environments in; nothing can be added to them."""


def missing(error: ImportError, extra: str) -> str:
    """
    What a feature needs and how to install it, as in ``httpx: pip install '/src/assay[http]'``.

    Raises *error* again if it is about a module of our own, which is our mistake.
    """
    root = (error.name or "").partition(".")[0]
    if root in {"", "assay"}:
        raise error
    if root in sys.stdlib_module_names:
        return f"{error.name}, which this Python does not have"
    if not isinstance(error, ModuleNotFoundError):
        return f"{error.name}, which cannot be imported: {error}"
    return f"{error.name}: {how_to_install(extra)}"


def how_to_install(extra: str) -> str:
    """The command that adds *extra* to what is installed here."""
    try:
        found = distribution(NAME)
    except PackageNotFoundError:
        return f"pip install {_checkout(extra)}"
    return _command(found, _requirement(found, extra))


def _command(found: Distribution, requirement: str) -> str:
    for name, command in _TOOLS.items():
        if Path(sys.prefix, name).exists():
            return command.format(requirement)
    if _THROW_AWAY in Path(sys.prefix).parts:
        return f"uvx --from {requirement} assay"
    with_uv = (found.read_text("INSTALLER") or "").strip() == "uv"
    return f"{'uv ' if with_uv else ''}pip install {requirement}"


def _requirement(found: Distribution, extra: str) -> str:
    """What to name to an installer, quoted for a shell."""
    origin = _origin(found)
    url = str(origin.get("url", ""))
    if not url:
        return quote(f"{NAME}[{extra}]")
    if not url.startswith("file:"):
        return quote(f"{NAME}[{extra}] @ {_remote(url, origin)}")
    path = url2pathname(urlsplit(url).path)
    if not Path(path).exists():
        # Whoever built an image or a package has removed it. What the extra consists of can be had all the same.
        return " ".join(quote(each) for each in _consists_of(found, extra))
    editable = "-e " if origin.get("dir_info", {}).get("editable") else ""
    return editable + quote(f"{path}[{extra}]")


def _origin(found: Distribution) -> dict[str, Any]:
    """Where the distribution came from (PEP 610); empty if a package index had it."""
    try:
        origin = json.loads(found.read_text("direct_url.json") or "{}")
    except ValueError:
        return {}
    return origin if isinstance(origin, dict) else {}


def _remote(url: str, origin: dict[str, Any]) -> str:
    """The URL of a requirement, for an archive or for a repository."""
    vcs = origin.get("vcs_info", {})
    if vcs:
        url = f"{vcs.get('vcs')}+{url}@{vcs.get('requested_revision') or vcs.get('commit_id')}"
    below = origin.get("subdirectory")
    return f"{url}#subdirectory={below}" if below else url


def _consists_of(found: Distribution, extra: str) -> list[str]:
    """The requirements of *extra*, without their markers."""
    markers = (f"extra == '{extra}'", f'extra == "{extra}"')
    parted = (each.partition(";") for each in found.requires or ())
    return [name.strip() for name, _, marker in parted if any(each in marker for each in markers)]


def _checkout(extra: str) -> str:
    """The checkout that this module is in, for programs that only have it on their path."""
    root = Path(__file__).parents[2]
    return quote(f"{root}[{extra}]" if (root / "pyproject.toml").is_file() else f"{NAME}[{extra}]")
