"""Ids and tokens that are changed on the way, and changed back: byte for byte, and nothing else."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from assay.guard.id_map import IdMap
from assay.model.json_values import SUBSCRIPTION_KEY
from kit.laws import law
from kit.rows import rows

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.sampled_from(["id", "_meta", "params"]), inner),
    max_leaves=10,
)


def written(value: Any, **how: Any) -> bytes:
    """*value* as JSON."""
    return json.dumps(value, ensure_ascii=False, **how).encode(errors="surrogatepass")


@rows(
    ("frame", "sent"),
    [
        (b'{"id":7,"method":"m"}', b'{"id":1,"method":"m"}'),
        (b' {\n"id" : "x" }', b' {\n"id" : 1 }'),
        (b'{"i\\u0064":7}', b'{"i\\u0064":1}'),
        (b'{"params":{"id":7},"id":-0}', b'{"params":{"id":7},"id":1}'),
        (
            b'{"id":7,"params":{"_meta":{"progressToken":"t","x":"progressToken"}}}',
            b'{"id":1,"params":{"_meta":{"progressToken":1,"x":"progressToken"}}}',
        ),
        (
            b'{"id":7,"params":{"arguments":{"_meta":{"progressToken":3}}}}',
            b'{"id":1,"params":{"arguments":{"_meta":{"progressToken":3}}}}',
        ),
        (b'{"id":7,"id":8}', b'{"id":1,"id":1}'),
        ('{"é":"\u2028","id":7}'.encode(), '{"é":"\u2028","id":1}'.encode()),
        (b'{"n":' + b"9" * 5000 + b',"id":7}', b'{"n":' + b"9" * 5000 + b',"id":1}'),
    ],
)
def test_only_what_stands_for_the_request_is_changed(frame: bytes, sent: bytes) -> None:
    assert IdMap[str]().ask("a", frame) == (1, sent)


@law(100)
@given(JSON, JSON, st.text() | st.integers(), st.text() | st.integers(), st.booleans())
def test_whatever_the_id_and_whatever_is_around_it_the_answer_has_it_again(
    params: Any, result: Any, ident: Any, token: Any, tight: bool
) -> None:
    how: dict[str, Any] = {"separators": (",", ":")} if tight else {"indent": 1}
    remap = IdMap[str]()
    remap.ask("another", b'{"id":0}')
    asked = {"params": {"x": params, "_meta": {"progressToken": token}}, "id": ident, "method": "m"}
    number, sent = remap.ask("me", written(asked, **how))
    assert json.loads(sent) == {**asked, "id": number, "params": {"x": params, "_meta": {"progressToken": number}}}
    noted = {"method": "notifications/progress", "params": {"progressToken": number, "x": result}}
    noticed = remap.notified(written(noted, **how))
    assert noticed.owner == "me"
    assert noticed.frame == written({**noted, "params": {"progressToken": token, "x": result}}, **how)
    answer = {"result": {"x": result, "_meta": {SUBSCRIPTION_KEY: number}}, "id": number}
    back = remap.answer(written(answer, **how))
    assert (back.owner, back.number) == ("me", number)
    mine = {"result": {"x": result, "_meta": {SUBSCRIPTION_KEY: ident}}, "id": ident}
    assert back.frame == written(mine, **how)


def test_a_subscription_that_is_written_as_text_stays_text() -> None:
    remap = IdMap[str]()
    remap.ask("me", b'{"id":77,"method":"subscriptions/listen"}')
    frame = b'{"method":"n","params":{"_meta":{"%b":"1"}}}' % SUBSCRIPTION_KEY.encode()
    assert remap.notified(frame).frame == frame.replace(b'"1"', b'"77"')


def test_a_late_answer_is_still_known_as_whose_it_was_for_a_while() -> None:
    remap = IdMap[str]()
    for count in range(1, 1003):
        number, _ = remap.ask("me", b'{"id":7}')
        remap.close(number)
        assert number == count
    assert remap.answer(b'{"id":1002,"result":{}}').owner == "me"
    assert remap.answer(b'{"id":1,"result":{}}').owner is None
