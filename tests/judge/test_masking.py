"""Command lines and URLs without their secrets."""

from hypothesis import given
from hypothesis import strategies as st

from assay.judge.masking import is_masked, masked_command, masked_url
from kit.rows import rows

PIECES = st.sampled_from(
    (
        *("--token", "-H", "-e", "--env", "--header=", "A=b", "X: y", "https://u:p@h/?k=v&w#f", "Bearer abcdefgh"),
        *("[redacted]", "=", "?", "&", ":", "token", "cookie: ", "--key", "X_KEY=", "/", " ", "s3cr3tV4lue"),
        *("--auth", "--pass=", "-u", "-p", "-k", "u:p@h", "Bearer ", "docker", "npx", "'", '"', "-b", "me:"),
        *("AbCdEf123456GhIjKl789", "-HA: b", "-eA=b", "https://h/s/AbCdEf123456GhIjKl789/mcp", "a:b"),
    )
)


JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"
PEM = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7"
HEX = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
UUID = "3f2504e0-4f89-11d3-9a0c-0305e82c3301"
X = "s3cr3tV4lue"


@rows(
    ("words", "masked"),
    [
        (["--key", X], ["--key", "[redacted]"]),
        (["--token", "-" + X], ["--token", "[redacted]"]),
        (["-k", X], ["-k", "[redacted]"]),
        (["-p" + X], ["-p[redacted]"]),
        (["-u", "jane:" + X], ["-u", "jane:[redacted]"]),
        (["--auth", "jane:" + X], ["--auth", "jane:[redacted]"]),
        (["-HX-Api: " + X], ["-HX-Api: [redacted]"]),
        (["--headers", "X-Api: " + X], ["--headers", "X-Api: [redacted]"]),
        (["--header=Authorization: Bearer " + X], ["--header=Authorization: [redacted]"]),
        (["-eFOO=" + X], ["-eFOO=[redacted]"]),
        (["TOKEN=" + X], ["TOKEN=[redacted]"]),
        (["postgres://user:pw@host/db"], ["postgres://[redacted]@host/db"]),
        (["redis://:pw@host:1"], ["redis://[redacted]@host:1"]),
        (["Server=h;User Id=u;Password=pw;"], ["Server=h;User Id=u;Password=[redacted];"]),
        ([JWT], ["[redacted]"]),
        ([PEM], ["[redacted]"]),
        (["--opaque=" + HEX], ["--opaque=[redacted]"]),
        (["wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"], ["[redacted]"]),
        (['{"env":{"X_KEY":"' + X + '"}}'], ['{"env":{"X_KEY":"[redacted]"}}']),
        (["-c", "npx s --api-key " + X], ["-c", "npx s --api-key [redacted]"]),
        (["-c", f"TOKEN={X} npx s"], ["-c", "TOKEN=[redacted] npx s"]),
        (["https://h/s/AbCdEf123456GhIjKl789/mcp"], ["https://h/s/[redacted]/mcp"]),
        (["--url=https://h/mcp?api_key=" + X], ["--url=https://h/mcp?api_key=[redacted]"]),
        (["--auth", "hunter2"], ["--auth", "[redacted]"]),
        (["--basic-auth", "hunter2"], ["--basic-auth", "[redacted]"]),
        (["PASSWORD=correct horse battery"], ["PASSWORD=[redacted]"]),
        (
            ["-c", "s --pass 'correct horse' --pw=\"battery staple\" x"],
            ["-c", 's --pass [redacted] --pw="[redacted]" x'],
        ),
        (["--user=me:hunter2"], ["--user=me:[redacted]"]),
        (["-u", "me:123456"], ["-u", "me:[redacted]"]),
        (["-ume:hunter2"], ["-ume:[redacted]"]),
        (["--pw=~tilde"], ["--pw=[redacted]"]),
        (["-phunter2"], ["-p[redacted]"]),
        (["-p", "99887766"], ["-p", "[redacted]"]),
        (["--build-arg", "FOO=hunter2"], ["--build-arg", "FOO=[redacted]"]),
        (["-b", "sid=hunter2"], ["-b", "sid=[redacted]"]),
        (["--dsn", "u:hunter2@tcp(h)/db"], ["--dsn", "[redacted]@tcp(h)/db"]),
        (["Bearer hunter2"], ["Bearer [redacted]"]),
        (["Bearer", "hunter2"], ["Bearer", "[redacted]"]),
        (["--env=TOKEN=abc", "image"], ["--env=TOKEN=[redacted]", "image"]),
        (["--config", '{"pass": "it\'s me"}'], ["--config", '{"pass": "[redacted]"}']),
        (["--no-auth", "image"], ["--no-auth", "image"]),
        (["--header=X-Key: ${env:KEY}"], ["--header=X-Key: ${env:KEY}"]),
        # A word after a masked one is masked as it is the second time.
        (["-pold", "X_KEY=Bearer a"], ["-p[redacted]", "X_KEY=[redacted]"]),
        (["-px1", 'X_KEY="'], ["-p[redacted]", "X_KEY=[redacted]"]),
        (["--auth", "token--header=https://u:p@h/?k=v&w#f"], ["--auth", "token--header=https:[redacted]"]),
    ],
    ids=lambda words: str(words)[:60],
)
def test_secrets_are_hidden_however_they_are_given(words: list[str], masked: list[str]) -> None:
    assert list(masked_command(["s", *words])) == ["s", *masked]
    assert is_masked(masked) is ("[redacted]" in str(masked))
    assert masked_command(masked_command(["s", *words])) == masked_command(["s", *words])


@rows(
    "command",
    [
        "npx -y -p typescript @modelcontextprotocol/server-everything@2026.8.31 stdio",
        "/home/jane/.cache/uv/archive-v0/h3a45_mLIB4JJFjR9x2K/bin/assay serve",
        "python3.12 -m mcp_server_time --local-timezone Europe/Berlin",
        "docker run -i --rm -u 1000:1000 -p 8080:80 mcp/github:latest",
        f"docker run -i ghcr.io/github/github-mcp-server@sha256:{HEX}",
        "server --key /etc/server.key --keyfile=server.pem --auth none --port=8765",
        "modelContextProtocolServer2 --log-level=debug LOG_LEVEL=debug --revision 2026-07-28",
        "node dist/index.js https://mcp.example.com/v1/sse --keyboard qwertz",
        "uvx --from git+https://github.com/org/repo@v1.2.3 mcp-server-git",
        "docker run -i -u node --memory 512m -p127.0.0.1:80:80/tcp -p 53:53/udp i:1",
        f"docker run -i mcp/github:1.2@sha256:{HEX} --auth oauth --auth=bearer",
        "npx -p typescript npm:server@1.2.3 -port 8080 -path=/a -p 8080 -kube",
        "uv run -p 3.12 server.py --key=/etc/key.pem --key ./key.pem -k ~/.ssh/key",
        "python -u C:\\server.py -u jane --login jane --user=jane -url http://h:80/",
        "server -bind=0.0.0.0:80 -e TOKEN -b main --skip-auth x a:b",
    ],
)
def test_what_is_no_secret_is_kept(command: str) -> None:
    """A lock with a hidden word cannot start its server again by itself."""
    assert " ".join(masked_command(command.split())) == command


@rows(
    ("url", "masked"),
    [
        ("https://jane:x1@h/mcp", "https://[redacted]@h/mcp"),
        ("https://h/mcp?key=x1&tenant=x1", "https://h/mcp?key=[redacted]&tenant=[redacted]"),
        ("https://h/mcp?x1", "https://h/mcp?[redacted]"),
        ("https://h/mcp#x1", "https://h/mcp#[redacted]"),
        ("https://h/mcp?key=", "https://h/mcp?key="),
        ("https://h/s/AbCdEf123456GhIjKl789/mcp", "https://h/s/[redacted]/mcp"),
        (f"https://h/v1/{UUID}/mcp", "https://h/v1/[redacted]/mcp"),
        (f"https://h/{HEX}", "https://h/[redacted]"),
        ("https://h/api/mcp/s/NTk2ZTJkMzQtYjQ1Yy00/mcp?x=1", "https://h/api/mcp/s/[redacted]/mcp?x=[redacted]"),
        ("https://h/token/correcthorse/sse", "https://h/token/[redacted]/sse"),
        ("https://server.example/@scope/name/mcp", "https://server.example/@scope/name/mcp"),
        ("http://127.0.0.1:8765/my-server-2026/mcp", "http://127.0.0.1:8765/my-server-2026/mcp"),
    ],
)
def test_the_secrets_of_a_url_are_hidden_and_the_names_of_its_query_are_shown(url: str, masked: str) -> None:
    assert masked_url(url) == masked
    assert masked_url(masked) == masked


@rows(
    ("command", "masked"),
    [
        ("npx -y server -p hunter2", "npx -y server -p [redacted]"),
        ("docker run -i image -u me:hunter2", "docker run -i image -u me:[redacted]"),
        ("npx -p typescript server -p hunter2", "npx -p typescript server -p [redacted]"),
        ("server npx -p hunter2", "server npx -p [redacted]"),
        ("docker run -u node:node image", "docker run -u node:[redacted] image"),
        ("cmd /c TOKEN=hunter2 server", "cmd /c TOKEN=[redacted] server"),
    ],
)
def test_an_option_of_one_letter_means_the_same_in_every_program(command: str, masked: str) -> None:
    """But `-p` of npx itself is a package. `-u` of docker is a user with a group, which is hidden as well."""
    assert " ".join(masked_command(command.split())) == masked


@given(st.lists(st.lists(PIECES | st.text(max_size=8), max_size=3).map("".join), max_size=5))
def test_to_mask_twice_is_to_mask_once(words: list[str]) -> None:
    """Otherwise a server would no longer be known by what a lock has of it."""
    once = masked_command(words)
    assert masked_command(once) == once
    for word in words:
        assert masked_url(masked_url(word)) == masked_url(word)


SWITCHES = ("true", "false", "none", "null", "yes", "no", "on", "off")


@rows("name", ["password", "api-key", "pass", "pin", "session", "dbPass", "token"])
@given(st.text(min_size=1).filter(lambda text: not text.startswith(("-", "$")) and text.lower() not in SWITCHES))
def test_a_secret_is_hidden_as_a_whole(name: str, secret: str) -> None:
    """Whatever is in it: spaces, quotes, digits only, or a slash at its beginning."""
    assert masked_command(["s", f"--{name}", secret]) == ("s", f"--{name}", "[redacted]")
    assert masked_command(["s", f"--{name}={secret}"]) == ("s", f"--{name}=[redacted]")
