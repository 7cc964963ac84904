"""When keys of an issuer are asked for, how long they are trusted, and what waits for them. Nothing is sent."""

import asyncio
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from assay.edges.auth import Denied, Principal, key_source
from assay.edges.auth.key_source import Fetch, KeysUnavailableError
from assay.settings import Auth, SettingsError
from kit.issuers import Setup, bearer, forged, jwt_section, key_set, run, setup, signer, with_file

URL = "https://issuer.example/keys"
NO_KEYS = Denied(401, b'Bearer realm="assay"', "the keys that verify tokens are unavailable")
UNKNOWN = "the token is signed with an unknown key"
WRONG = "the signature of the token is invalid"
GOOD = bearer(signer().token())
STRANGER = bearer(forged({"alg": "ES256", "kid": "x"}))


@dataclass
class Issuer:
    """Gives out keys, or fails, when a test lets it."""

    body: bytes
    failure: str = ""
    asked: int = 0
    reached: asyncio.Event = field(default_factory=asyncio.Event)
    free: asyncio.Event | None = None

    def hold(self) -> asyncio.Event:
        """From now on requests are answered when the event is set, and not before."""
        self.reached, self.free = asyncio.Event(), asyncio.Event()
        return self.free

    def fetching(self, _: str) -> Fetch:
        """In the place of `from_url`."""

        async def fetch() -> bytes:
            self.asked += 1
            self.reached.set()
            if self.free is not None:
                await self.free.wait()
            if self.failure:
                raise KeysUnavailableError(self.failure)
            return self.body

        return fetch


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Issuer:
    """An issuer with one key."""
    issuer = Issuer(key_set(signer()))
    monkeypatch.setattr(key_source, "from_url", issuer.fetching)
    return issuer


@pytest.fixture
def found(served: Issuer) -> Setup:
    """A gate with the keys that the issuer gives out."""
    return setup(Auth(jwt=jwt_section(URL)))


def later(found: Setup, sub: str = "alice") -> bytes:
    """A token that is good now, whatever the clock says."""
    return bearer(signer().token(sub=sub, exp=found.clock.now + 60))


# ── when keys are asked for ──────────────────────────────────────────────────────────────────────────────────────────


def test_no_key_is_asked_for_before_the_first_token(found: Setup, served: Issuer) -> None:
    for header in (b"", bearer("assay_x"), bearer("a.b.c"), bearer(forged({"alg": "none"}))):
        assert isinstance(found.admit(header), Denied)
    assert served.asked == 0
    assert found.admit(GOOD) == Principal("alice", "community")
    assert served.asked == 1
    assert found.said == [f"auth: 1 keys from {URL}"]


def test_a_key_that_is_not_known_is_asked_for(found: Setup, served: Issuer) -> None:
    """Rotation: a new key is used as soon as it is there, and what is remembered stays."""
    second = signer("ES256", "two")
    assert found.name(GOOD) == "alice"
    served.body = key_set(signer(), second)
    found.clock.now += 30
    assert found.name(bearer(second.token())) == "alice"
    assert found.name(bearer(signer().token(sub="bob"))) == "bob"
    assert found.gate.known(GOOD) is not None
    assert served.asked == 2
    assert found.said[1:] == [f"auth: 2 keys from {URL}"]


def test_made_up_keys_and_wrong_signatures_make_no_flood(found: Setup, served: Issuer) -> None:
    assert found.name(GOOD) == "alice"
    for after, times in ((0, 1), (29.9, 1), (0.1, 2)):
        found.clock.now += after
        for number in range(50):
            assert found.reason(bearer(forged({"alg": "ES256", "kid": f"made up {number}"}))) == UNKNOWN
        assert served.asked == times
    found.clock.now += 100
    assert found.reason(bearer(signer("ES256", "other").token(header={"kid": "one"}))) == WRONG
    assert served.asked == 2


def test_a_clock_that_is_set_back_does_not_keep_keys_for_ever(found: Setup, served: Issuer) -> None:
    found.clock.now += 1_000_000
    assert found.name(later(found)) == "alice"
    found.clock.now -= 1_000_000
    assert found.name(GOOD) == "alice"
    assert served.asked == 2


# ── keys that are withdrawn ──────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "body",
    [key_set(signer("ES256", "two")), b'{"keys": []}', key_set(signer("EdDSA", "one"))],
    ids=["another", "no-keys", "same-kid"],
)
def test_a_withdrawn_key_takes_its_tokens_with_it(found: Setup, served: Issuer, body: bytes) -> None:
    """Also those that are remembered, after an hour."""
    long = bearer(signer().token(exp=found.clock.now + 1_000_000))
    assert found.name(long) == "alice"
    served.body = body
    found.clock.now += 3599
    assert found.gate.known(long) is not None
    found.clock.now += 1
    assert found.gate.known(long) is None
    assert found.reason(long) == UNKNOWN
    assert found.gate.known(long) is None


# ── issuers that fail ────────────────────────────────────────────────────────────────────────────────────────────────


def test_without_keys_an_issuer_is_asked_again_soon(found: Setup, served: Issuer) -> None:
    served.failure = "it is raining"
    for after, times in ((0, 1), (4.9, 1), (0.1, 2), (4.9, 2)):
        found.clock.now += after
        assert found.admit(GOOD) == NO_KEYS
        assert served.asked == times
    assert found.said == [f"auth: no keys from {URL}: it is raining; no token can be verified"]
    served.failure = ""
    found.clock.now += 0.1
    assert found.name(GOOD) == "alice"
    assert found.said[1:] == [f"auth: 1 keys from {URL}"]


def test_the_old_keys_go_on_being_used_until_the_issuer_is_back(found: Setup, served: Issuer) -> None:
    assert found.name(GOOD) == "alice"
    served.failure = "it is raining"
    found.clock.now += 3600
    assert found.name(later(found)) == "alice"
    for _ in range(3):
        found.clock.now += 30
        assert found.name(later(found)) == "alice"
        assert found.reason(STRANGER) == UNKNOWN
    # Said once, not every half minute.
    assert found.said[1:] == [f"auth: no keys from {URL}: it is raining; the previous keys stay in use"]
    served.failure = ""
    found.clock.now += 30
    assert found.reason(STRANGER) == UNKNOWN
    assert found.said[2:] == [f"auth: 1 keys from {URL}"]


def test_an_issuer_that_hangs_costs_one_wait(found: Setup, served: Issuer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: with keys in hand, not one every half minute."""
    assert found.name(GOOD) == "alice"
    monkeypatch.setattr(key_source, "TIMEOUT", 0.001)
    served.hold()
    found.clock.now += 3600
    good = bearer(signer().token(exp=found.clock.now + 10_000))
    assert found.name(good) == "alice"
    assert "no response in time" in found.said[1]
    monkeypatch.setattr(key_source, "TIMEOUT", 600)
    found.clock.now += 30

    async def both() -> None:
        # The first begins a request that is never answered; neither waits for it.
        served.hold()
        assert found.gate.known(good) is None
        assert isinstance(await found.gate.verify(good), Principal)
        assert isinstance(found.gate.known(good), Principal)
        assert isinstance(await found.gate.verify(later(found, "bob")), Principal)

    run(both())


def test_an_address_that_cannot_be_asked_stops_the_server_before_it_starts() -> None:
    for host in ("a" * 70_000, "1.2.3.999", "a\tb"):
        with pytest.raises(SettingsError, match=r"^auth\.jwt\.jwks: https://.*: not a valid URL$"):
            setup(Auth(jwt=jwt_section(f"https://{host}/keys?token=s3cret")))


# ── many at once ─────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("first", [True, False])
def test_many_at_once_make_one_request(found: Setup, served: Issuer, first: bool) -> None:
    """Before there are any keys, and for one that is not known yet."""
    second = signer("ES256", "two")
    if not first:
        assert found.name(GOOD) == "alice"
        found.clock.now += 30
    before = served.asked
    served.body = key_set(signer(), second)
    headers = [bearer(second.token(sub=f"holder {number}")) for number in range(100)]

    async def all_of_them() -> list[Principal | Denied]:
        free = served.hold()
        tasks = [asyncio.create_task(found.gate.verify(header)) for header in headers]
        await served.reached.wait()
        assert not any(task.done() for task in tasks)
        free.set()
        return await asyncio.gather(*tasks)

    assert run(all_of_them()) == [Principal(f"holder {number}", "community") for number in range(100)]
    assert served.asked == before + 1


def test_who_goes_away_takes_nothing_from_the_others_and_a_long_request_is_not_made_twice(
    found: Setup, served: Issuer
) -> None:
    """The client whose token began the request hangs up; those behind it get their answer, from the same request."""

    async def three() -> list[Principal | Denied]:
        free = served.hold()
        first, second = (asyncio.create_task(found.gate.verify(GOOD)) for _ in range(2))
        await served.reached.wait()
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        found.clock.now += 100
        third = asyncio.create_task(found.gate.verify(GOOD))
        await asyncio.sleep(0)
        free.set()
        return list(await asyncio.gather(second, third))

    assert run(three()) == [Principal("alice", "community")] * 2
    assert served.asked == 1


@pytest.mark.parametrize("first", [True, False])
def test_a_loop_that_ended_in_the_middle_leaves_nothing_broken(found: Setup, served: Issuer, first: bool) -> None:
    if not first:
        assert found.name(GOOD) == "alice"
        found.clock.now += 30

    async def cut_short() -> None:
        served.hold()
        asyncio.get_running_loop().create_task(found.gate.verify(GOOD if first else STRANGER))
        await served.reached.wait()

    run(cut_short())
    served.free = None
    assert isinstance(found.admit(GOOD if first else STRANGER), Denied)
    found.clock.now += 5
    assert found.name(GOOD) == "alice"


# ── files ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_file_is_read_again_for_a_key_that_is_not_known_and_its_keys_outlive_it(tmp_path: Path) -> None:
    found, second = with_file(tmp_path, signer()), signer("ES256", "two")
    assert found.said == ["auth: 1 keys from keys.json"]
    (tmp_path / "keys.json").write_bytes(key_set(second))
    assert found.reason(bearer(second.token())) == UNKNOWN
    found.clock.now += 30
    assert found.name(bearer(second.token())) == "alice"
    assert found.reason(GOOD) == UNKNOWN
    (tmp_path / "keys.json").unlink()
    found.clock.now += 3600
    assert found.name(bearer(second.token(exp=found.clock.now + 60))) == "alice"
    said = "auth: no keys from keys.json: No such file or directory; the previous keys stay in use"
    assert found.said[2:] == [said]
