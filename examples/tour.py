"""
What `make run` does: the guard over HTTP in front of the bundled asset server, and what to try on it.

It makes one good call and one that breaks the tool's contract, shows what comes back, and then serves until Ctrl-C.
"""

import json
import shlex
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

HERE = Path(__file__).parent
CATALOGUE = HERE / "catalogue"
ADDRESS = sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:8800"

HUM = {
    "name": "Low hum",
    "waveform": "triangle",
    "frequency": 110,
    "envelope": {"attack": 0.4, "decay": 0.1, "sustain": 0.8, "release": 1.5},
}
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
HEADERS = {
    "Content-Type": "application/json",
    "Accept": "application/json, text/event-stream",
    "MCP-Protocol-Version": "2026-07-28",
}


def command(address: str) -> list[str]:
    """The guard, in front of the asset server, which knows the bundled catalogue."""
    server = [sys.executable, "-m", "assay", "serve", "--journal", "off"]
    server += ["--schemas", str(CATALOGUE / "jsonschema"), "--examples", str(CATALOGUE / "examples")]
    return [sys.executable, "-m", "assay", "guard", "--mode", "enforce", "--listen", address, "--", *server]


def call(url: str, method: str, **params: Any) -> Any:
    """The answer to one request, as a client of the latest revision makes it."""
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": META}}
    named = {"Mcp-Name": params["name"]} if "name" in params else {}
    request = Request(url, json.dumps(message).encode(), {**HEADERS, "Mcp-Method": method, **named})  # noqa: S310 - as below
    with urlopen(request, timeout=30) as answer:  # noqa: S310 - the address is our own
        return json.load(answer)


def curl(url: str, method: str, **params: Any) -> str:
    """The same for a shell."""
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": META}}
    named = {"Mcp-Name": params["name"]} if "name" in params else {}
    headers = {"Content-Type": "application/json", "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": method, **named}
    given = [f"-H {shlex.quote(f'{name}: {value}')}" for name, value in headers.items()]
    body = f"-d {shlex.quote(json.dumps(message, separators=(',', ':')))}"
    return " \\\n    ".join((f"curl -s {url}", " ".join(given[:2]), " ".join(given[2:]), body))


def tour(url: str) -> None:
    """What to try, some of it tried."""
    tools = call(url, "tools/list")["result"]["tools"]
    good = {"name": "validate_asset", "arguments": {"asset": HUM, "schema": "tone"}}
    bad = {"name": "validate_asset", "arguments": {"asset": HUM, "schema": 5}}
    print(f"\nThe guard is at {url}, in front of the asset server and its {len(tools)} tools.")
    print("Every message is judged in both directions; what breaks a contract stops at the guard.")
    print(f"\nA good call passes:\n\n  {curl(url, 'tools/call', **good)}\n")
    print(indented(call(url, "tools/call", **good)["result"]["structuredContent"]["data"]))
    print(f"\nOne that breaks the tool's contract never reaches the server:\n\n  {curl(url, 'tools/call', **bad)}\n")
    print(indented(call(url, "tools/call", **bad)["result"]["content"][0]["text"]))
    print("\nIn a client's configuration:\n")
    print(indented(json.dumps({"mcpServers": {"assets": {"url": url}}})))
    print("\nIn front of a server of your own, over pipes or over HTTP:\n")
    print("  .venv/bin/assay guard --mode enforce -- npx some-server")
    print("  .venv/bin/assay guard --mode enforce --target https://example.com/mcp --listen 127.0.0.1:8801")
    print("\nWhat was judged, in another window: .venv/bin/assay journal show\nCtrl-C ends the guard.", flush=True)


def indented(value: Any) -> str:
    """*value* as people read it, two spaces in."""
    text = value if isinstance(value, str) else json.dumps(value, indent=2)
    return "\n".join(f"  {line}" for line in text.splitlines())


def main() -> int:
    """Runs the guard, shows it, and waits."""
    # In a session of its own: Ctrl-C is for us, and we tell the guard, once.
    guard = subprocess.Popen(
        command(ADDRESS), stderr=subprocess.PIPE, text=True, encoding="utf-8", start_new_session=True
    )
    for sign in (signal.SIGINT, signal.SIGTERM):
        signal.signal(sign, lambda *_: guard.terminate())
    for line in guard.stderr or ():
        print(line, end="", file=sys.stderr, flush=True)
        if line.startswith("assay: guarding "):
            threading.Thread(target=tour, args=(line.split(" at ")[1].strip(),), daemon=True).start()
    return guard.wait()


if __name__ == "__main__":
    sys.exit(main())
