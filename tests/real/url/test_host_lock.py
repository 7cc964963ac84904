"""A host with a lock: each server of a client's file is held to the entry of its name."""

import json
from pathlib import Path
from typing import Any

from assay.lock.lock_file import write
from assay.lock.locked import Locked
from assay.spec.revisions import LATEST
from kit.guard_process import liar
from kit.http_client import modern, request, until
from kit.scripted_http import listening

FIND: dict[str, Any] = {"name": "find_books", "inputSchema": {"type": "object"}}
BURN: dict[str, Any] = {"name": "burn_book", "inputSchema": {"type": "object"}}


def test_servers_of_a_host_are_held_to_the_entries_of_their_names(tmp_path: Path) -> None:
    """A lock that was made elsewhere has other folders in its commands."""
    program, *rest = liar(tools=[FIND, BURN])
    entry = {"command": program, "args": rest}
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": {"books": entry, "other": entry}}))
    locked = Locked(command=("elsewhere",), revision=LATEST, listed={"tools": {"find_books": FIND}})
    write(tmp_path / "assay.lock", {"books": locked, "more": locked})
    asking = request(1, "tools/list", {}, LATEST)
    applied = "lock entry books applies by its name; it was locked for elsewhere"
    unknown = "assay.lock has no entry for other; the lock is not applied"
    with listening(tmp_path, "--config", "mcp.json", "--mode", "enforce") as guard:
        books, other = (guard.ask("POST", f"/{name}/mcp", asking, modern(asking)).json() for name in ("books", "other"))
        until(lambda: all(each in guard.log.so_far() for each in (applied, unknown)))
    assert [tool["name"] for tool in books["result"]["tools"]] == ["find_books"]
    assert [tool["name"] for tool in other["result"]["tools"]] == ["find_books", "burn_book"]
