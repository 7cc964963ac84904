"""What a guarded server is called by its command."""

from hypothesis import given
from hypothesis import strategies as st

from assay.judge.masking import masked_command
from assay.judge.server_commands import name_of_command
from kit.rows import rows

SECRETS = ("hunter2", "Ab3dEf6hIj9kLm2nOp", "9f86d081884c7d659a2feaa0c55ad015")
WORDS = (
    *("npx", "-y", "node", "docker", "run", "python", "-m", "java", "-jar", "-cp", "uv", "env", "assay", "guard", "--"),
    *("--name", "--token", "--token={}", "--env=T={}", "-e", "T={}", "-p", "-p{}", "-u", "me:{}", "--auth", "--flag"),
    *("{}", "{}", "{}", "https://u:{}@h/mcp", "x", "./{}/server.js", "--name={}", "--header", "X: {}"),
)


@rows(
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
        ("/opt/app/.venv/bin/python3.12 -u server.py", "server"),
        ("python /home/me/weather/server.py", "weather"),
        ("node /home/me/weather/dist/index.js --verbose", "weather"),
        ("node build/index.js", "index"),
        ("docker run -i --rm -e TOKEN mcp/github:latest", "github"),
        ("docker run -i --rm --mount type=bind,src=/a,dst=/b ghcr.io/github/github-mcp-server", "github-mcp-server"),
        ("env TOKEN=abc uvx mcp-server-time", "mcp-server-time"),
        ("python -c print(1)", "python"),
        ("C:\\tools\\weather.exe", "weather"),
        ("./mcp-server-everything stdio", "mcp-server-everything"),
        ("assay guard --target http://127.0.0.1:1/mcp", "assay"),
        ("docker run --memory 512m imgA", "imgA"),
        ("docker run -m 512m --cpus 2 --cap-add ALL --add-host a:b --gpus all -h box imgA arg", "imgA"),
        ("docker run --unheard-of value imgA", "imgA"),
        ("docker run --rm --init --read-only imgA arg", "imgA"),
        ("java -cp a:b com.x.Main", "com.x.Main"),
        ("java -Xmx1g -classpath a:b -jar /opt/weather.jar --port 1", "weather"),
        ("java -p mods -m com.x/com.x.Main", "com.x.Main"),
        ("node --max-old-space-size 512 a.js", "a"),
        ("node --no-warnings --enable-source-maps a.js /tmp", "a"),
        ("node --unheard-of a.js", "a"),
        ("npx --yes server-files /tmp", "server-files"),
        ("node --api-key hunter2 server.js", "server"),
        ("node --api-key=hunter2 a.js", "a"),
        ("npx -y --token hunter2", "npx"),
        ("npx -y --token hunter2 server-files", "server-files"),
        ("npx 9f86d081884c7d659a2feaa0c55ad015 server-files", "server-files"),
        ("9f86d081884c7d659a2feaa0c55ad015", "server"),
        ("uv run -m weather", "weather"),
        ("npx -y server-files notes stdio", "server-files"),
        ("docker run -it -u jane mcp/github stdio", "github"),
        ("node --unheard-of 1 a.js b", "a"),
        ("uvx --unheard-of clock --zone UTC", "UTC"),
        ("go run ./cmd/weather", "weather"),
        ("github-mcp-server stdio", "github-mcp-server"),
        ("node -r dotenv/config -e x.run()", "node"),
        ("npx bearer hunter2", "bearer"),
        ("", "server"),
    ],
)
def test_a_command_gives_the_name_of_its_server(command: str, name: str) -> None:
    assert name_of_command(command.split()) == name


@given(st.lists(st.tuples(st.sampled_from(WORDS), st.sampled_from(SECRETS)), max_size=8))
def test_a_name_has_nothing_that_masking_hides(parts: list[tuple[str, str]]) -> None:
    command = [word.format(secret) for word, secret in parts]
    name, shown = name_of_command(command), " ".join(masked_command(command))
    assert "redacted" not in name
    for secret in SECRETS:
        assert secret in shown or secret not in name
