"""How much one principal, and one of several servers, may take of what a guard over HTTP has for all."""

from typing import Any

from assay.edges.http.quotas import Full, Quota
from assay.settings.http_section import Http
from assay.spec.revisions import LATEST
from kit.http_client import modern, request
from kit.rows import rows
from kit.scripted_http import answering
from kit.url_guard import BEARERS, UrlGuard, holding

LISTING = request(1, "tools/list", {}, LATEST)
HANGS = request(2, "prompts/list", {}, LATEST)


def test_a_place_that_is_given_back_can_be_taken_again_and_leaves_no_trace() -> None:
    quota = Quota("requests", 3, each=2, per_server=2)
    for _ in range(1000):
        for server in ("a", "b"):
            assert quota.full("bob", server) is None
            quota.take("bob", server)
        assert quota.full("bob", "c") == Full(429, "you have too many requests at once")
        quota.take("alice", "a")
        assert quota.full("carl", "d") == Full(503, "too many requests at once")
        for name, server in (("bob", "a"), ("alice", "a"), ("bob", "b")):
            quota.give_back(name, server)
    assert (quota.held, quota._by_principal, quota._by_server) == (0, {}, {})


@rows(
    ("keys", "requests", "statuses"),
    [
        (True, 5, [429, 200]),
        (True, 1, [503, 503]),
        (False, 5, [200, 200]),
        (False, 1, [503, 503]),
    ],
)
def test_principals_have_shares_where_they_are_known_apart(keys: bool, requests: int, statuses: list[int]) -> None:
    """One of Bob's requests hangs; he asks again, and so does Alice. Without keys they are the same to the guard."""

    def of(name: str, message: Any) -> dict[str, Any]:
        return {"body": message, "headers": {**modern(message), **(BEARERS[name] if keys else {})}}

    async def scenario() -> list[int]:
        hanging = await guard.begun("POST", **of("bob", HANGS))
        found = [(await guard.asked("POST", **of(name, LISTING))).status for name in ("bob", "alice")]
        await hanging.leave()
        assert (await guard.asked("POST", **of("bob", LISTING))).status == 200, "the place is free again"
        return found

    http = Http(requests=requests, requests_each=1, requests_per_server=1)
    with UrlGuard("audit", answering(holding(), "prompts/list"), keys=keys, http=http) as guard:
        assert guard.run(scenario()) == statuses
