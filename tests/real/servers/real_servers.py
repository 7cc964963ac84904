"""
Servers that other people wrote, and what is asked of each: every tool, every list, resources, prompts, and whatever
else it has.
"""

import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from kit.places import ROOT

HERE = Path(__file__).parent
NODE_MODULES = HERE / "node_modules"
PYTHON_SERVERS = ROOT / ".venvs" / "sdk" / "bin"
OLD_PYTHON_SERVERS = ROOT / ".venvs" / "servers_v1" / "bin"

NOON = "1767268800 +0000"

SETTINGS = {"LANG": "C.UTF-8"}
"""What an interpreter finds in the environment of a server, or of a guard, that concerns itself."""

Step = list[Any]


class Server(NamedTuple):
    """One server, what it starts from and what it is asked."""

    command: Callable[[Path], list[str]]
    """Its command, in a directory of its own."""
    steps: Callable[[Path], list[Step]]
    needs: Path
    """What is missing where it is not installed."""
    prepare: Callable[[Path], None] = lambda _: None
    """Puts into that directory what it works on."""
    environment: Mapping[str, str] = {}


def environment(server: Server, directory: Path) -> dict[str, str]:
    """All that the server, and the guard in front of it, find in their environment."""
    given = {name: value.replace("DIRECTORY", str(directory)) for name, value in server.environment.items()}
    # The journal of the guard must not be among the files that a server shows.
    state = {"XDG_STATE_HOME": str(directory.with_name(f"{directory.name}-state"))}
    return {"PATH": os.environ["PATH"], "HOME": str(directory), "TZ": "UTC", **SETTINGS, **state, **given}


def _node(name: str, *arguments: str) -> Callable[[Path], list[str]]:
    script = str(NODE_MODULES / ".bin" / name)
    return lambda directory: ["node", script, *(each.replace("DIRECTORY", str(directory)) for each in arguments)]


def _python(program: Path, *arguments: str) -> Callable[[Path], list[str]]:
    return lambda directory: [
        str(program.with_name("python")),
        str(program),
        *(each.replace("DIRECTORY", str(directory)) for each in arguments),
    ]


# ── everything ───────────────────────────────────────────────────────────────────────────────────────────────────────

_DEPARTMENT = {"type": "ref/prompt", "name": "completable-prompt"}
_DATA = "data:text/plain;base64,SGVsbG8sIHdvcmxkIQ=="


def _everything(_: Path) -> list[Step]:
    return [
        ["ping"],
        ["level", "debug"],
        ["call", "echo", {"message": 'é 漢字 🙂 "quoted" \\ \u2028'}],
        ["misuse", "echo", {}],
        *(["call", "get-annotated-message", {"messageType": kind}] for kind in ("error", "success", "debug")),
        ["call", "get-annotated-message", {"messageType": "debug", "includeImage": True}],
        ["misuse", "get-annotated-message", {"messageType": "loud"}],
        ["call", "get-env", {}],
        ["call", "get-resource-links", {"count": 4}],
        ["call", "get-resource-reference", {"resourceType": "Text", "resourceId": 1}],
        ["call", "get-resource-reference", {"resourceType": "Blob", "resourceId": 2}],
        *(["call", "get-structured-content", {"location": city}] for city in ("New York", "Chicago", "Los Angeles")),
        ["call", "get-sum", {"a": 1.5, "b": -3}],
        ["call", "get-tiny-image", {}],
        ["call", "gzip-file-as-resource", {"name": "a.gz", "data": _DATA, "outputType": "resource"}],
        ["call", "gzip-file-as-resource", {"name": "b.gz", "data": _DATA}],
        ["read", "demo://resource/session/b.gz"],
        ["call", "toggle-simulated-logging", {}],
        ["call", "toggle-simulated-logging", {}],
        ["subscribe", "demo://resource/dynamic/text/1"],
        ["call", "toggle-subscriber-updates", {}],
        ["hear", "notification", 3],
        ["call", "toggle-subscriber-updates", {}],
        ["unsubscribe", "demo://resource/dynamic/text/1"],
        ["call", "trigger-long-running-operation", {"duration": 0.4, "steps": 4}],
        ["call", "trigger-sampling-request", {"prompt": "two and two?", "maxTokens": 9}],
        ["call", "trigger-elicitation-request", {}],
        ["call", "trigger-url-elicitation", {"url": "https://example.com/a", "elicitationId": "one"}],
        ["call", "trigger-url-elicitation", {"url": "https://example.com/b", "errorPath": True}],
        ["call", "get-roots-list", {}],
        ["move"],
        ["call", "get-roots-list", {}],
        ["call", "simulate-research-query", {"topic": "the sea"}],
        ["call", "nope", {}],
        ["read", "demo://resource/static/document/features.md"],
        ["read", "demo://resource/dynamic/text/3"],
        ["read", "demo://resource/dynamic/blob/4"],
        ["read", "demo://resource/dynamic/text/none"],
        ["read", "demo://nowhere"],
        ["get", "simple-prompt", {}],
        ["get", "args-prompt", {"city": "Köln", "state": "NRW"}],
        ["get", "args-prompt", {}],
        ["get", "completable-prompt", {"department": "Sales", "name": "Eve"}],
        ["get", "resource-prompt", {"resourceType": "Text", "resourceId": "5"}],
        ["get", "resource-prompt", {"resourceType": "Stone", "resourceId": "5"}],
        ["get", "nope", {}],
        ["complete", _DEPARTMENT, {"name": "department", "value": "S"}, {}],
        ["complete", _DEPARTMENT, {"name": "name", "value": ""}, {"department": "Sales"}],
        ["complete", {"type": "ref/resource", "uri": "demo://resource/dynamic/text/{resourceId}"},
         {"name": "resourceId", "value": "7"}, {}],
        ["ping"],
    ]  # fmt: skip


# ── filesystem ───────────────────────────────────────────────────────────────────────────────────────────────────────

_PIXEL = bytes.fromhex("89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000049454e44ae426082")


def _fill(directory: Path) -> None:
    (directory / "below").mkdir()
    (directory / "a.txt").write_text("one\ntwo\nthree é\n")
    (directory / "below" / "b.txt").write_text("b\n" * 100)
    (directory / "pixel.png").write_bytes(_PIXEL)


def _filesystem(directory: Path) -> list[Step]:
    text, other, new = str(directory / "a.txt"), str(directory / "below" / "b.txt"), str(directory / "new.txt")
    edit = [{"oldText": "two", "newText": "2 — zwei"}]
    return [
        *(["call", name, {"path": text}] for name in ("read_file", "read_text_file", "get_file_info")),
        ["call", "read_text_file", {"path": other, "head": 3}],
        ["call", "read_text_file", {"path": other, "tail": 2}],
        ["call", "read_text_file", {"path": str(directory / "none.txt")}],
        ["call", "read_text_file", {"path": "/etc/passwd"}],
        ["call", "read_media_file", {"path": str(directory / "pixel.png")}],
        ["call", "read_multiple_files", {"paths": [text, other, "/etc/passwd"]}],
        ["call", "write_file", {"path": new, "content": "new\n\x00\u2028"}],
        ["call", "edit_file", {"path": text, "edits": edit, "dryRun": True}],
        ["call", "edit_file", {"path": text, "edits": edit}],
        ["call", "create_directory", {"path": str(directory / "made" / "here")}],
        ["call", "move_file", {"source": new, "destination": str(directory / "made" / "moved.txt")}],
        ["call", "list_directory", {"path": str(directory)}],
        ["call", "list_directory_with_sizes", {"path": str(directory), "sortBy": "size"}],
        ["call", "directory_tree", {"path": str(directory), "excludePatterns": ["below"]}],
        ["call", "search_files", {"path": str(directory), "pattern": "**/*.txt"}],
        ["call", "list_allowed_directories", {}],
        ["misuse", "read_text_file", {"path": 5}],
        ["call", "nope", {}],
    ]


# ── memory, and thinking ─────────────────────────────────────────────────────────────────────────────────────────────

_ADA = {"name": "Ada", "entityType": "person", "observations": ["writes programs", "é 漢字"]}
_ENGINE = {"name": "Engine", "entityType": "machine", "observations": []}
_WROTE = {"from": "Ada", "to": "Engine", "relationType": "wrote for"}


def _memory(_: Path) -> list[Step]:
    return [
        ["call", "create_entities", {"entities": [_ADA, _ENGINE]}],
        ["call", "create_relations", {"relations": [_WROTE]}],
        ["call", "add_observations", {"observations": [{"entityName": "Engine", "contents": ["never built"]}]}],
        ["call", "add_observations", {"observations": [{"entityName": "Nobody", "contents": ["x"]}]}],
        ["call", "read_graph", {}],
        ["call", "search_nodes", {"query": "programs"}],
        ["call", "open_nodes", {"names": ["Ada"]}],
        ["call", "delete_observations", {"deletions": [{"entityName": "Ada", "observations": ["é 漢字"]}]}],
        ["call", "delete_relations", {"relations": [_WROTE]}],
        ["call", "delete_entities", {"entityNames": ["Engine"]}],
        ["call", "read_graph", {}],
        ["misuse", "create_entities", {"entities": "Ada"}],
    ]


def _thinking(_: Path) -> list[Step]:
    first = {"thought": "é?", "nextThoughtNeeded": True, "thoughtNumber": 1, "totalThoughts": 2}
    second = {**first, "thoughtNumber": 2, "nextThoughtNeeded": False, "isRevision": True, "revisesThought": 1}
    return [
        ["call", "sequentialthinking", first],
        ["call", "sequentialthinking", second],
        ["misuse", "sequentialthinking", {**first, "thoughtNumber": 0}],
        ["misuse", "sequentialthinking", {}],
    ]


# ── time ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _time(_: Path) -> list[Step]:
    converting = {"source_timezone": "Europe/Berlin", "time": "12:30", "target_timezone": "Asia/Tokyo"}
    return [
        ["call", "get_current_time", {"timezone": "Europe/Berlin"}],
        ["call", "get_current_time", {"timezone": "Moon/Crater"}],
        ["call", "convert_time", converting],
        ["call", "convert_time", {**converting, "time": "noon"}],
        ["misuse", "convert_time", {"time": 5}],
        ["call", "nope", {}],
    ]


# ── git ──────────────────────────────────────────────────────────────────────────────────────────────────────────────

_WHO = {
    f"GIT_{role}_{what}": value
    for role in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "Ada"), ("EMAIL", "ada@example.com"), ("DATE", NOON))
}


def _begin_repository(directory: Path) -> None:
    (directory / "a.txt").write_text("one\n")
    environ = {**os.environ, **_WHO, "GIT_CONFIG_NOSYSTEM": "1", "HOME": str(directory)}
    for given in (["init", "-q", "-b", "main"], ["add", "a.txt"], ["commit", "-q", "-m", "Begin — é"]):
        subprocess.run(["git", *given], cwd=directory, env=environ, check=True, timeout=30)
    (directory / "a.txt").write_text("one\ntwo é\n")
    (directory / "b.txt").write_text("new\n")


def _git(directory: Path) -> list[Step]:
    here = {"repo_path": str(directory)}
    return [
        *(["call", f"git_{name}", here] for name in ("status", "diff_unstaged", "diff_staged", "log")),
        ["call", "git_add", {**here, "files": ["a.txt", "b.txt"]}],
        ["call", "git_diff_staged", {**here, "context_lines": 0}],
        ["call", "git_reset", here],
        ["call", "git_add", {**here, "files": ["a.txt"]}],
        ["call", "git_commit", {**here, "message": "Add two — é"}],
        ["call", "git_create_branch", {**here, "branch_name": "side"}],
        ["call", "git_checkout", {**here, "branch_name": "side"}],
        ["call", "git_diff", {**here, "target": "main"}],
        ["call", "git_branch", {**here, "branch_type": "local"}],
        ["call", "git_show", {**here, "revision": "HEAD"}],
        ["call", "git_show", {**here, "revision": "nowhere"}],
        ["call", "git_log", {**here, "max_count": 1}],
        ["misuse", "git_log", {**here, "max_count": "one"}],
        ["call", "git_status", {"repo_path": "/nowhere"}],
    ]


# ── sqlite ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _begin_database(directory: Path) -> None:
    with closing(sqlite3.connect(directory / "books.db")) as database, database:
        database.execute("create table books (title text, year integer)")
        database.execute("insert into books values ('Éloge de l''ombre', 1933)")


def _sqlite(_: Path) -> list[Step]:
    return [
        ["call", "list_tables", {}],
        ["call", "describe_table", {"table_name": "books"}],
        ["call", "read_query", {"query": "select * from books"}],
        ["call", "write_query", {"query": "insert into books values ('漢字', 2000)"}],
        ["call", "read_query", {"query": "select title from books order by year"}],
        ["call", "create_table", {"query": "create table readers (name text)"}],
        ["call", "append_insight", {"insight": "Books have titles. — é"}],
        ["call", "read_query", {"query": "drop table books"}],
        ["call", "read_query", {"query": "select nothing from nowhere"}],
        ["misuse", "read_query", {}],
        ["call", "nope", {}],
        ["read", "memo://insights"],
        ["read", "memo://nothing"],
        ["get", "mcp-demo", {"topic": "books"}],
        ["get", "nope", {}],
    ]


SERVERS: Mapping[str, Server] = {
    "everything": Server(_node("mcp-server-everything"), _everything, NODE_MODULES),
    "filesystem": Server(_node("mcp-server-filesystem", "DIRECTORY"), _filesystem, NODE_MODULES, _fill),
    "memory": Server(
        _node("mcp-server-memory"),
        _memory,
        NODE_MODULES,
        environment={"MEMORY_FILE_PATH": "DIRECTORY/memory.jsonl"},
    ),
    "sequential-thinking": Server(_node("mcp-server-sequential-thinking"), _thinking, NODE_MODULES),
    "time": Server(_python(PYTHON_SERVERS / "mcp-server-time", "--local-timezone", "Etc/UTC"), _time, PYTHON_SERVERS),
    "git": Server(
        _python(PYTHON_SERVERS / "mcp-server-git"), _git, PYTHON_SERVERS, _begin_repository, environment=_WHO
    ),
    "sqlite": Server(
        _python(OLD_PYTHON_SERVERS / "mcp-server-sqlite", "--db-path", "DIRECTORY/books.db"),
        _sqlite,
        OLD_PYTHON_SERVERS,
        _begin_database,
    ),
}

GUARD = [sys.executable, "-m", "assay", "guard"]
