"""Configurations as clients have them, each with what becomes of it behind the guard."""

from collections.abc import Collection
from pathlib import Path
from typing import NamedTuple

import pytest

from assay.cli.clients.dialect import JSON, Dialect
from assay.cli.clients.plan import Plan, Wish, wrap
from assay.cli.clients.wrapping import PAYLOADS

PROGRAM = "/opt/assay/bin/assay"


class Sample(NamedTuple):
    """A configuration, and what changes in it when all its servers go behind the guard."""

    name: str
    text: str
    changes: dict[str, str]
    path: str
    """Where the client has it, below the home."""
    newline: str = "\n"

    @property
    def before(self) -> str:
        return self.text.replace("\n", self.newline)

    @property
    def after(self) -> str:
        text = self.text
        for old, new in self.changes.items():
            assert text.count(old) == 1, old
            text = text.replace(old, new.replace("PROGRAM", f'"{PROGRAM}"'))
        return text.replace("\n", self.newline)


def put(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())
    return path


def behind(
    text: str,
    names: Collection[str] = (),
    mode: str | None = None,
    *,
    payloads: bool = False,
    dialect: Dialect = JSON,
) -> Plan:
    """The plan of `assay wrap` with these options."""
    options = {**({"--mode": mode} if mode else {}), **({PAYLOADS: "true"} if payloads else {})}
    return wrap(text, names, Wish(PROGRAM, options), dialect)


CLAUDE_DESKTOP = Sample(
    "claude-desktop",
    """\
{
  "globalShortcut": "Alt+Space",
  "mcpServers": {
    "filesystem": {
      "command": "npx",
      "args": [
        "-y",
        "@modelcontextprotocol/server-filesystem",
        "/Users/jane/Desktop"
      ]
    },
    "github": {
      "command": "docker",
      "args": ["run", "-i", "--rm", "-e", "GITHUB_PERSONAL_ACCESS_TOKEN", "ghcr.io/github/github-mcp-server"],
      "env": {
        "GITHUB_PERSONAL_ACCESS_TOKEN": "ghp_0123456789abcdefghijABCDEFGHIJ012345"
      }
    },
    "weather": {
      "command": "C:\\\\Users\\\\jane\\\\weather.exe"
    }
  },
  "preferences": {"menuBarEnabled": true}
}
""",
    {
        '"npx",\n      "args": [\n': (
            'PROGRAM,\n      "args": [\n        "guard", "--name", "filesystem", "--", "npx",\n'
        ),
        '"docker",\n      "args": [': 'PROGRAM,\n      "args": ["guard", "--name", "github", "--", "docker", ',
        '"C:\\\\Users\\\\jane\\\\weather.exe"': (
            'PROGRAM,\n      "args": ["guard", "--name", "weather", "--", "C:\\\\Users\\\\jane\\\\weather.exe"]'
        ),
    },
    ".config/Claude/claude_desktop_config.json",
)

CURSOR = Sample(
    "cursor",
    """\
{"mcpServers": {
\t"local": {"type": "stdio", "command": "python", "args": [], "envFile": ".env", "cwd": "${workspaceFolder}"},
\t"remote": {"url": "https://mcp.example.com/mcp", "headers": {"Authorization": "Bearer ${env:TOKEN}", "X-Team": "7"}},
\t"open": {"url": "http://localhost:3000/mcp"},
\t"old": {"url": "http://localhost:8000/sse"}
}}""",
    {
        '"python", "args": [': 'PROGRAM, "args": ["guard", "--name", "local", "--", "python"',
        '"url": "https://mcp.example.com/mcp", "headers": {': (
            '"command": PROGRAM, "args": ["guard", "--name", "remote", "--target", "https://mcp.example.com/mcp", '
        ),
        '"Authorization": "Bearer ${env:TOKEN}", "X-Team": "7"}': (
            '"--header", "Authorization: Bearer ${env:TOKEN}", "--header", "X-Team: 7"]'
        ),
        '"url": "http://localhost:3000/mcp"': (
            '"command": PROGRAM, "args": ["guard", "--name", "open", "--target", "http://localhost:3000/mcp"]'
        ),
    },
    ".cursor/mcp.json",
)

VS_CODE = Sample(
    "vscode",
    """\
\ufeff{
    // What the servers ask for.
    "inputs": [
        {"type": "promptString", "id": "github-token", "description": "GitHub token", "password": true},
    ],
    "servers": {
        /* over HTTP */
        "github": {
            "type": "http", // not sse
            "url": "https://api.githubcopilot.com/mcp/",
            "headers": {
                "Authorization": "Bearer ${input:github-token}", // asked for once
                "X-MCP-Readonly": "true",
            },
            "gallery": "https://api.mcp.github.com",
        },
        "playwright": {
            "type": "stdio",
            "command": "npx",
            "args": [
                // always the newest
                "@playwright/mcp@latest",
                "--output-dir", "${workspaceFolder}/out", /* "--headless", */
            ],
            "env": {"DEBUG": "pw:*"}
        },
        "debugged": {"command": "node", "args": ["server.js"], "dev": {"watch": "src/**", "debug": {"type": "node"}}},
    },
}
""",
    {
        '"http", // not sse\n            "url": "https://api.githubcopilot.com/mcp/",\n            "headers": {': (
            '"stdio", // not sse\n            "command": PROGRAM,\n            "args": [\n'
            '                "guard", "--name", "github",\n'
            '                "--target", "https://api.githubcopilot.com/mcp/",'
        ),
        '"Authorization": "Bearer ${input:github-token}", // asked for once': (
            '"--header", "Authorization: Bearer ${input:github-token}",'
        ),
        '"X-MCP-Readonly": "true",\n            }': '"--header", "X-MCP-Readonly: true"\n            ]',
        '"command": "npx"': '"command": PROGRAM',
        '                "@playwright': (
            '                "guard", "--name", "playwright", "--", "npx",\n                "@playwright'
        ),
    },
    ".config/Code/User/mcp.json",
    "\r\n",
)

CLAUDE_CODE = Sample(
    "claude-code",
    """\
{
  "numStartups": 42,
  "projects": {
    "/home/jane/shop": {
      "allowedTools": [],
      "history": [{"display": "why is \\"mcpServers\\": {} empty?"}],
      "mcpServers": {
        "db": {
          "type": "stdio",
          "command": "uvx",
          "args": [
            "mcp-server-sqlite"
          ],
          "env": {
            "DB_PASSWORD": "s3cr3t-db"
          }
        }
      }
    },
    "/home/jane/blog": {
      "mcpServers": {}
    }
  },
  "mcpServers": {
    "db": {
      "type": "http",
      "url": "https://db.example/mcp",
      "headers": {
        "Authorization": "Bearer s3cr3t-header"
      }
    },
    "notion": {
      "type": "http",
      "url": "https://mcp.notion.com/mcp"
    }
  },
  "oauthAccount": {"accessToken": "s3cr3t-account"}
}""",
    {
        '"uvx",\n          "args": [\n': (
            'PROGRAM,\n          "args": [\n            "guard", "--name", "db", "--", "uvx",\n'
        ),
        '"type": "http",\n      "url": "https://db.example/mcp",\n      "headers": {\n': (
            '"type": "stdio",\n      "command": PROGRAM,\n      "args": [\n'
            '        "guard", "--name", "db",\n        "--target", "https://db.example/mcp",\n'
        ),
        '"Authorization": "Bearer s3cr3t-header"\n      }': (
            '"--header", "Authorization: Bearer s3cr3t-header"\n      ]'
        ),
    },
    ".claude.json",
)

WINDSURF = Sample(
    "windsurf",
    """\
{
  "mcpServers": {
    "git": {"command": "uvx", "args": ["mcp-server-git"], "disabled": false, "disabledTools": ["git_reset"]},
    "tickets": {
      "serverUrl": "https://tickets.example/mcp",
      "headers": {"API_KEY": "s3cr3t-windsurf"}
    },
    "old": {"serverUrl": "https://old.example/v1/sse"},
    "off": {"command": "npx", "disabled": true}
  }
}
""",
    {
        '"uvx", "args": [': 'PROGRAM, "args": ["guard", "--name", "git", "--", "uvx", ',
        '"serverUrl": "https://tickets.example/mcp",\n      "headers": {': (
            '"command": PROGRAM,\n'
            '      "args": ["guard", "--name", "tickets", "--target", "https://tickets.example/mcp", '
        ),
        '"API_KEY": "s3cr3t-windsurf"}': '"--header", "API_KEY: s3cr3t-windsurf"]',
    },
    ".codeium/windsurf/mcp_config.json",
)

GEMINI = Sample(
    "gemini",
    """\
{
  // Gemini CLI strips comments.
  "theme": "Default",
  "mcpServers": {
    "py": {
      "command": "python",
      "args": ["-m", "server"],
      "env": {"KEY": "$MY_KEY", "OTHER": "s3cr3t-env"},
      "timeout": 30000,
      "trust": false
    },
    "stream": {"httpUrl": "https://a.example/mcp", "headers": {"X-Key": "s3cr3t-gemini"}},
    "typed": {
      "url": "http://127.0.0.1:3000/mcp",
      "type": "http"
    },
    "events": {"url": "http://localhost:8080/events"}
  }
}
""",
    {
        '"python",\n      "args": [': 'PROGRAM,\n      "args": ["guard", "--name", "py", "--", "python", ',
        '"httpUrl": "https://a.example/mcp", "headers": {"X-Key": "s3cr3t-gemini"}': (
            '"command": PROGRAM, "args": ["guard", "--name", "stream", "--target", "https://a.example/mcp", '
            '"--header", "X-Key: s3cr3t-gemini"]'
        ),
        '"url": "http://127.0.0.1:3000/mcp",\n      "type": "http"': (
            '"command": PROGRAM,\n      "args": ["guard", "--name", "typed", "--target", "http://127.0.0.1:3000/mcp"]'
        ),
    },
    ".gemini/settings.json",
    "\r\n",
)

ZED = Sample(
    "zed",
    """\
// Zed settings
//
{
\t"theme": {"mode": "system", "light": "One Light",},
\t"context_servers": {
\t\t"local": { // mine
\t\t\t"source": "custom",
\t\t\t"command": "node",
\t\t\t"args": ["server.js"],
\t\t\t"env": {"TOKEN": "s3cr3t-zed"},
\t\t},
\t\t"remote": {"url": "https://r.example/mcp", "headers": {"Authorization": "Bearer s3cr3t-zed-header"}},
\t\t"from-extension": {"source": "extension", "settings": {"api_key": "s3cr3t-extension"}},
\t\t"off": {"enabled": false, "command": "node"},
\t},
}
""",
    {
        '"node",\n\t\t\t"args": [': 'PROGRAM,\n\t\t\t"args": ["guard", "--name", "local", "--", "node", ',
        '"url": "https://r.example/mcp", "headers": {"Authorization": "Bearer s3cr3t-zed-header"}': (
            '"command": PROGRAM, "args": ["guard", "--name", "remote", "--target", "https://r.example/mcp", '
            '"--header", "Authorization: Bearer s3cr3t-zed-header"]'
        ),
    },
    ".config/zed/settings.json",
)

CODEX = Sample(
    "codex",
    """\
# Codex
model = "gpt-5.1-codex"   # the newest
notify = ["python3", "/home/jane/notify.py"]

[mcp_servers.files] # shared
command = "npx"  # node
args = ["-y", '@modelcontextprotocol/server-filesystem', "/home/jane"]

[mcp_servers.files.env]
LICENSE = "s3cr3t-codex" # from Ann
# OLD = 's3cr3t-old'

[mcp_servers."my time"]
  command = 'C:\\tools\\time.exe'
  startup_timeout_sec = 20

[mcp_servers.lines]
args = [
    "run",   # the verb
    "server",
]
command = "uv"

[mcp_servers.figma]
url = "https://mcp.figma.example/mcp"
http_headers = { "X-Region" = "eu", X-Key = 's3cr3t-figma' }
tool_timeout_sec = 60.5

[mcp_servers.wiki]
url = "https://wiki.example/mcp"
enabled = true

# The wiki's key.
[mcp_servers.wiki.http_headers]
Authorization = "Bearer s3cr3t-wiki"

[mcp_servers.token]
url = "https://token.example/mcp"
bearer_token_env_var = "TOKEN"

[mcp_servers.off]
command = "off"
enabled = false

[projects."/home/jane/shop"]
trust_level = "trusted"
since = 2026-01-02 03:04:05
""",
    {
        '"npx"  # node\nargs = [': 'PROGRAM  # node\nargs = ["guard", "--name", "files", "--", "npx", ',
        "'C:\\tools\\time.exe'": 'PROGRAM\n  args = ["guard", "--name", "my time", "--", \'C:\\tools\\time.exe\']',
        '    "run",   # the verb': '    "guard", "--name", "lines", "--", "uv",\n    "run",   # the verb',
        'command = "uv"': "command = PROGRAM",
        'url = "https://mcp.figma.example/mcp"\nhttp_headers = { "X-Region" = "eu", X-Key = \'s3cr3t-figma\' }': (
            'command = PROGRAM\nargs = ["guard", "--name", "figma", "--target", "https://mcp.figma.example/mcp", '
            '"--header", "X-Region: eu", "--header", "X-Key: s3cr3t-figma"]'
        ),
        'url = "https://wiki.example/mcp"': (
            'command = PROGRAM\nargs = ["guard", "--name", "wiki", "--target", "https://wiki.example/mcp", '
            '"--header", "Authorization: Bearer s3cr3t-wiki"]'
        ),
        '# The wiki\'s key.\n[mcp_servers.wiki.http_headers]\nAuthorization = "Bearer s3cr3t-wiki"\n\n': "",
        'url = "https://token.example/mcp"\nbearer_token_env_var = "TOKEN"': (
            'command = PROGRAM\nargs = ["guard", "--name", "token", "--target", "https://token.example/mcp", '
            '"--header", "Authorization: Bearer env:TOKEN"]\nenv_vars = ["TOKEN"]'
        ),
    },
    ".codex/config.toml",
)


JSON_SAMPLES = (CLAUDE_DESKTOP, CURSOR, VS_CODE, CLAUDE_CODE, WINDSURF, GEMINI, ZED)
KNOWN = (*JSON_SAMPLES, CODEX)
"""One sample of each client."""


def home_of_clients(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a home with the files of all clients, and a project to work in."""
    for name in (
        "XDG_CONFIG_HOME",
        "CLAUDE_CONFIG_DIR",
        "GEMINI_CLI_HOME",
        "CODEX_HOME",
        "FLATPAK_XDG_CONFIG_HOME",
        "XDG_STATE_HOME",
        "ASSAY_JOURNAL",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr("sys.platform", "linux")
    for sample in KNOWN:
        put(tmp_path / "home" / sample.path, sample.before)
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    return tmp_path / "home"
