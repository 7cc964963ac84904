"""What a guarded server is called, by its command or its URL."""

import pytest

from assay.guard.server_names import folder_of, name_of_command, name_of_url


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("npx -y @modelcontextprotocol/server-filesystem /tmp", "server-filesystem"),
        ("npx -y @modelcontextprotocol/server-everything@2026.8.31 stdio", "server-everything"),
        ("npx.cmd some-server", "some-server"),
        ("/usr/local/bin/npx -p typescript some-server", "some-server"),
        ("npm exec -- some-server", "some-server"),
        ("pnpm dlx some-server", "some-server"),
        ("bunx some-server", "some-server"),
        ("uvx mcp-server-time --local-timezone UTC", "mcp-server-time"),
        ("uvx --from mcp-server-git==2026.1 mcp-server-git", "mcp-server-git"),
        ("uvx mcp-server-fetch[proxy]", "mcp-server-fetch"),
        ("uv run --directory /home/me/weather weather.py", "weather"),
        ("uv tool run mcp-server-time", "mcp-server-time"),
        ("uv run python -m weather", "weather"),
        ("python -m mcp_server_time", "mcp_server_time"),
        ("/work/.venv/bin/python3.12 -u server.py", "server"),
        ("python /home/me/weather/server.py", "weather"),
        ("node /home/me/weather/dist/index.js --verbose", "weather"),
        ("node build/index.js", "index"),
        ("docker run -i --rm -e TOKEN mcp/github:latest", "github"),
        ("docker run -i --rm --mount type=bind,src=/a,dst=/b ghcr.io/github/github-mcp-server", "github-mcp-server"),
        ("env TOKEN=abc uvx mcp-server-time", "mcp-server-time"),
        ("python -c print(1)", "python"),
        ("C:\\tools\\weather.exe", "weather"),
        ("./mcp-server-everything stdio", "mcp-server-everything"),
        ("assay guard --mode enforce -- uvx mcp-server-time", "mcp-server-time"),
        (".venv/bin/assay guard --name clock -- uvx mcp-server-time", "clock"),
        ("assay guard --target http://127.0.0.1:1/mcp", "assay"),
        ("", "server"),
    ],
)
def test_a_command_gives_the_name_of_its_server(command: str, name: str) -> None:
    assert name_of_command(command.split()) == name


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://mcp.example.com/s/secret-token/mcp", "mcp.example.com"),
        ("http://user:password@127.0.0.1:8765/mcp?key=secret", "127.0.0.1:8765"),
        ("http://[::1]:99999999/mcp", "server"),
        ("nonsense", "server"),
    ],
)
def test_a_url_gives_its_host_and_no_secret(url: str, name: str) -> None:
    assert name_of_url(url) == name


@pytest.mark.parametrize(
    ("name", "folder"),
    [("time", "time"), ("127.0.0.1:8765", "127.0.0.1-8765"), ("../../etc", "etc"), ("..", "server"), (".x", "x")],
)
def test_a_name_becomes_a_folder_that_stays_where_it_belongs(name: str, folder: str) -> None:
    assert folder_of(name) == folder


def test_a_long_name_is_cut() -> None:
    assert len(folder_of("x" * 1000)) == 64
    assert len(name_of_command(["x" * 1000])) == 64
