"""
The skills of the fixture server, and the methods of `io.modelcontextprotocol/skills`.

The skills are the folders in `skills`. Their files are resources like any other; the methods list the skills, describe
one of them, and list what is in a folder. The SDK has no skills of its own, so this is on its low-level API.
"""

from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import Any

from fixtures import JSON

mcp_types: Any = import_module("mcp_types")
exceptions: Any = import_module("mcp.shared.exceptions")

EXTENSION = "io.modelcontextprotocol/skills"
FOLDER = Path(__file__).with_name("skills")
SCHEME = "skill://"
DIRECTORY = "inode/directory"
FRESH: JSON = {"ttlMs": 60_000, "cacheScope": "public"}


def uri_of(path: Path) -> str:
    return SCHEME + path.relative_to(FOLDER).as_posix()


def files_in(folder: Path) -> list[Path]:
    return sorted(each for each in folder.rglob("*") if each.is_file())


def frontmatter(skill: Path) -> JSON:
    """The lines between the first two `---` of its SKILL.md. All of ours are `name: value`."""
    _, head, _ = (skill / "SKILL.md").read_text(encoding="utf-8").split("---\n", 2)
    return dict(line.split(": ", 1) for line in head.splitlines())


def entry(skill: Path) -> JSON:
    """What `skills/list` says about a skill: where it is, its frontmatter, and its files with size and digest."""
    files = [(uri_of(each), each.read_bytes()) for each in files_in(skill)]
    listed = [{"uri": uri, "digest": f"sha256:{sha256(data).hexdigest()}", "size": len(data)} for uri, data in files]
    return {"uri": uri_of(skill / "SKILL.md"), "frontmatter": frontmatter(skill), "resources": listed}


SKILLS = [entry(each) for each in sorted(FOLDER.iterdir())]

RESOURCES: dict[str, JSON] = {
    uri_of(each): {"mimeType": "text/markdown", "text": each.read_bytes().decode()} for each in files_in(FOLDER)
}
"""What `resources/read` returns of each file."""

LISTED = [{"uri": each["uri"], "mimeType": "text/markdown", **each["frontmatter"]} for each in SKILLS]
"""What `resources/list` says about the SKILL.md of each skill: the name and the description are the skill's."""


def folder_at(uri: str) -> Path | None:
    """The folder of a skill, or below one, that *uri* names."""
    folders = {uri_of(each): each for each in FOLDER.rglob("*") if each.is_dir()}
    return folders.get(uri)


def child(path: Path) -> JSON:
    return {"uri": uri_of(path), "name": path.name, "mimeType": DIRECTORY if path.is_dir() else "text/markdown"}


def unknown(uri: Any) -> Exception:
    error: Exception = exceptions.MCPError(mcp_types.INVALID_PARAMS, "There is no such skill or folder", {"uri": uri})
    return error


async def list_skills(_: Any, __: Any) -> JSON:
    return {"resultType": "complete", "skills": SKILLS, **FRESH}


async def get_skill(ctx: Any, _: Any) -> JSON:
    uri = ctx.params.get("uri")
    for each in SKILLS:
        if each["uri"] == uri:
            return {"resultType": "complete", "skill": each, **FRESH}
    raise unknown(uri)


async def read_folder(ctx: Any, _: Any) -> JSON:
    uri = ctx.params.get("uri")
    folder = folder_at(uri)
    if folder is None:
        raise unknown(uri)
    return {"resultType": "complete", "resources": [child(each) for each in sorted(folder.iterdir())]}


METHODS = {"skills/list": list_skills, "skills/get": get_skill, "resources/directory/read": read_folder}


def add_to(server: Any) -> None:
    """Serve the methods with *server*, a low-level one of the SDK, and declare the extension."""
    server.extensions[EXTENSION] = {"directoryRead": True}
    for method, handler in METHODS.items():
        server.add_request_handler(method, mcp_types.RequestParams, handler)
