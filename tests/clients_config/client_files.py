"""Configurations as clients have them, each with what becomes of it behind the guard."""

from typing import NamedTuple

PROGRAM = "/opt/assay/bin/assay"


class Sample(NamedTuple):
    """A configuration, and the same with all its servers behind the guard."""

    name: str
    before: str
    after: str


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
    """\
{
  "globalShortcut": "Alt+Space",
  "mcpServers": {
    "filesystem": {
      "command": "/opt/assay/bin/assay",
      "args": [
        "guard", "--", "npx",
        "-y",
        "@modelcontextprotocol/server-filesystem",
        "/Users/jane/Desktop"
      ]
    },
    "github": {
      "command": "/opt/assay/bin/assay",
      "args": ["guard", "--", "docker", "run", "-i", "--rm", "-e", "GITHUB_PERSONAL_ACCESS_TOKEN", "ghcr.io/github/github-mcp-server"],
      "env": {
        "GITHUB_PERSONAL_ACCESS_TOKEN": "ghp_0123456789abcdefghijABCDEFGHIJ012345"
      }
    },
    "weather": {
      "command": "/opt/assay/bin/assay",
      "args": ["guard", "--", "C:\\\\Users\\\\jane\\\\weather.exe"]
    }
  },
  "preferences": {"menuBarEnabled": true}
}
""",  # noqa: E501 - a file as it is written
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
    """\
{"mcpServers": {
\t"local": {"type": "stdio", "command": "/opt/assay/bin/assay", "args": ["guard", "--", "python"], "envFile": ".env", "cwd": "${workspaceFolder}"},
\t"remote": {"command": "/opt/assay/bin/assay", "args": ["guard", "--target", "https://mcp.example.com/mcp", "--header", "Authorization: Bearer ${env:TOKEN}", "--header", "X-Team: 7"]},
\t"open": {"command": "/opt/assay/bin/assay", "args": ["guard", "--target", "http://localhost:3000/mcp"]},
\t"old": {"url": "http://localhost:8000/sse"}
}}""",  # noqa: E501 - a file as it is written
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
""".replace("\n", "\r\n"),
    """\
\ufeff{
    // What the servers ask for.
    "inputs": [
        {"type": "promptString", "id": "github-token", "description": "GitHub token", "password": true},
    ],
    "servers": {
        /* over HTTP */
        "github": {
            "type": "stdio", // not sse
            "command": "/opt/assay/bin/assay",
            "args": [
                "guard",
                "--target", "https://api.githubcopilot.com/mcp/",
                "--header", "Authorization: Bearer ${input:github-token}",
                "--header", "X-MCP-Readonly: true"
            ],
            "gallery": "https://api.mcp.github.com",
        },
        "playwright": {
            "type": "stdio",
            "command": "/opt/assay/bin/assay",
            "args": [
                // always the newest
                "guard", "--", "npx",
                "@playwright/mcp@latest",
                "--output-dir", "${workspaceFolder}/out", /* "--headless", */
            ],
            "env": {"DEBUG": "pw:*"}
        },
        "debugged": {"command": "node", "args": ["server.js"], "dev": {"watch": "src/**", "debug": {"type": "node"}}},
    },
}
""".replace("\n", "\r\n"),
)

SAMPLES = (CLAUDE_DESKTOP, CURSOR, VS_CODE)
