"""
The install command for a missing optional dependency.

A hint has only what can be installed: the path, archive or repository that this distribution came from, and its name
only if it came from a package index.
"""

import json
import sys
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from importlib.metadata import Distribution

NAME: Final = "mcp-assay"

_TOOLS: Final = {
    "uv-receipt.toml": "uv tool install --force {}",
    "pipx_metadata.json": "pipx install --force {}",
}
"""Commands of installers with an environment for each program, by the file that they leave in it."""

_THROW_AWAY: Final = "archive-v0"
"""The directory in uv's cache with the environments of `uvx`; nothing can be added to them."""


def missing(error: ImportError, extra: str) -> str:
    """
    Return the missing module and the command that installs it: ``aiohttp: pip install '/src/assay[http]'``.

    Raises *error* again if it is about one of our own modules, which is a bug.
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
    """Return the command that adds *extra* to this installation."""
    # 20 ms, which every command that can do without the extra would take longer to start.
    from importlib.metadata import PackageNotFoundError, distribution  # noqa: PLC0415

    try:
        found = distribution(NAME)
    except PackageNotFoundError:
        return f"pip install {_checkout(extra)}"
    return _command(found, _requirement(found, extra))


def _command(found: "Distribution", requirement: str) -> str:
    for name, command in _TOOLS.items():
        if Path(sys.prefix, name).exists():
            return command.format(requirement)
    if _THROW_AWAY in Path(sys.prefix).parts:
        return f"uvx --from {requirement} assay"
    with_uv = (found.read_text("INSTALLER") or "").strip() == "uv"
    return f"{'uv ' if with_uv else ''}pip install {requirement}"


def _requirement(found: "Distribution", extra: str) -> str:
    """Return the requirement for an installer, quoted for a shell."""
    origin = _origin(found)
    url = str(origin.get("url", ""))
    if not url:
        return quote(f"{NAME}[{extra}]")
    if not url.startswith("file:"):
        return quote(f"{NAME}[{extra}] @ {_remote(url, origin)}")
    from urllib.request import url2pathname  # noqa: PLC0415 - as above

    path = url2pathname(urlsplit(url).path)
    if not Path(path).exists():
        # The source was removed after an image or package was built. The extra's requirements can still be installed.
        return " ".join(quote(each) for each in _consists_of(found, extra))
    editable = "-e " if origin.get("dir_info", {}).get("editable") else ""
    return editable + quote(f"{path}[{extra}]")


def _origin(found: "Distribution") -> dict[str, Any]:
    """Return the source of the distribution (PEP 610); empty if it came from a package index."""
    try:
        origin = json.loads(found.read_text("direct_url.json") or "{}")
    except ValueError:
        return {}
    return origin if isinstance(origin, dict) else {}


def _remote(url: str, origin: dict[str, Any]) -> str:
    """Return the URL of a requirement, for an archive or a repository."""
    vcs = origin.get("vcs_info", {})
    if vcs:
        url = f"{vcs.get('vcs')}+{url}@{vcs.get('requested_revision') or vcs.get('commit_id')}"
    below = origin.get("subdirectory")
    return f"{url}#subdirectory={below}" if below else url


def _consists_of(found: "Distribution", extra: str) -> list[str]:
    """Return the requirements of *extra*, without their markers."""
    markers = (f"extra == '{extra}'", f'extra == "{extra}"')
    parted = (each.partition(";") for each in found.requires or ())
    return [name.strip() for name, _, marker in parted if any(each in marker for each in markers)]


def _checkout(extra: str) -> str:
    """Return the checkout of this module, for programs that only have it on their path."""
    root = Path(__file__).parents[3]
    return quote(f"{root}[{extra}]" if (root / "pyproject.toml").is_file() else f"{NAME}[{extra}]")
