"""`assay serve --http`: everything put together, and what an operator can get wrong about it."""

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack

from assay.assets.methods import Methods
from assay.auth import Gate
from assay.edges.http.app import ENDPOINT, App
from assay.edges.http.safety import Safety, is_loopback
from assay.edges.http.server import listening, serve
from assay.edges.recorder import Recorder, Records
from assay.metrics import Metrics
from assay.settings import Settings, SettingsError
from assay.spec.revisions import REVISIONS
from assay.spec.schema import protocol_schema

Log = Callable[[str], None]


def run(
    address: str,
    settings: Settings,
    methods: Methods,
    records: Records,
    *,
    ready: Callable[[], AbstractContextManager[None]],
    settle: Callable[[], None],
    log: Log,
) -> int:
    """Serve at *address* until a signal comes; the exit status."""
    host, port = parsed(address)
    gate = Gate.read(settings.auth, cwd=".", tier=settings.tiers.tier, log=log) if settings.auth is not None else None
    if gate is None and not settings.http.open and not is_loopback(host):
        raise SettingsError(
            f"--http {address}: others can reach this address, and [auth] says nothing of who may come in; "
            "configure it, or set http.open = true"
        )
    # Before anybody is listened to: a request is no time to open a file.
    for revision in REVISIONS:
        protocol_schema(revision)
    _allow_many_connections()
    try:
        sock = listening(host, port)
    except OSError as error:
        raise SettingsError(f"--http {address}: {error.strerror}") from None
    http = settings.http
    name, number = sock.getsockname()[:2]
    metrics = Metrics()
    app = App(
        methods,
        Recorder("http", ENDPOINT, records._replace(metrics=metrics), holding=True),
        limits=settings.limits,
        http=http,
        safety=Safety([*http.hosts, name, host], http.origins),
        gate=gate,
    )
    metrics.gauge("assay_sessions", "Sessions of the handshake revisions.", lambda: len(app.sessions))
    metrics.gauge("assay_streams", "Streams that are open.", lambda: len(app.streams))
    metrics.gauge("assay_requests_in_flight", "Requests in hand.", lambda: app.in_hand)
    shown = f"[{name}]" if ":" in name else name
    settle()
    with ExitStack() as stack:

        def tell() -> None:
            stack.enter_context(ready())
            log(f"mcp:ready mode=http url=http://{shown}:{number}{ENDPOINT}")

        serve(app, sock, http, tell)
    return 0


def _allow_many_connections() -> None:
    """As many open files as we may have: every connection is one, and the usual soft limit is 1,024."""
    try:
        import resource  # noqa: PLC0415 - there is none on Windows
    except ImportError:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = 65_536 if hard == resource.RLIM_INFINITY else min(hard, 65_536)
    if soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def parsed(address: str) -> tuple[str, int]:
    """Host and port; without a host it is loopback. Raises `SettingsError`."""
    host, colon, port = address.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65535:
        raise SettingsError(f"--http {address}: an address is HOST:PORT, such as 127.0.0.1:8765")
    return host.strip("[]") or "127.0.0.1", int(port)
