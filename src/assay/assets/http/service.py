"""`assay serve --http`: compose the application, and report configuration errors."""

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack

from assay.assets.http.app import App
from assay.assets.mcp_methods import Methods
from assay.edges.auth import Gate
from assay.edges.http.http_server import serve
from assay.edges.http.listen_address import ListenAddress
from assay.edges.http.request_headers import ENDPOINT
from assay.edges.recorder import Recorder, Records
from assay.records.journal.events import ServerPlace
from assay.records.metrics import Metrics
from assay.settings import Settings
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
    """Serve at *address* until a signal comes; return the exit status."""
    gate = Gate.read(settings.auth, cwd=".", tier=settings.tiers.tier, log=log)
    place = ListenAddress.open("--http", address, settings.http, gated=gate is not None)
    # Before clients can connect: a request must not wait for a file.
    for revision in REVISIONS:
        protocol_schema(revision)
    metrics = Metrics()
    recorder = Recorder("http", ENDPOINT, records._replace(metrics=metrics), holding=True)
    if records.journal is not None:
        records.journal.introduce("http", ENDPOINT, ServerPlace(address=f"{place.url}{ENDPOINT}"))
    app = App(
        methods,
        recorder,
        limits=settings.limits,
        http=settings.http,
        safety=place.safety,
        gate=gate,
        log=log,
    )
    metrics.gauge("assay_requests_in_flight", "Requests in hand.", lambda: app.in_hand)
    settle()
    with ExitStack() as stack:

        def tell() -> None:
            stack.enter_context(ready())
            log(f"mcp:ready mode=http url={place.url}{ENDPOINT}")
            for line in place.notes(ENDPOINT):
                log(f"assay: {line}")

        serve(app, place.sock, settings.http, tell, owner_of=app.owner_of)
    return 0
