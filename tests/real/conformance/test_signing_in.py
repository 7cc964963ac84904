"""What the guard loses of the suite's scenarios about authorization: little, and the page says what."""

from signing_in import LIST
from suite import ROOT, expected_in

PAGE = ROOT / "docs" / "guard-http.md"
LOST = {name: fails for every in expected_in(LIST).values() for name, fails in every.items() if fails}


def test_only_the_audience_is_lost_and_the_page_says_where() -> None:
    assert {check for fails in LOST.values() for check in fails} == {"resource-parameter-matches-prm"}
    page = PAGE.read_text(encoding="utf-8")
    assert [name for name in LOST if f"`{name}`" not in page] == []
