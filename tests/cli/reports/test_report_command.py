"""`assay report`: when a page is written."""

from pathlib import Path

from kit.command import assay_text
from kit.places import ROOT

CONVERSATION = str(ROOT / "examples" / "conversation.jsonl")


def test_a_page_is_not_replaced_by_one_without_a_message(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    made = assay_text("report", CONVERSATION, "-o", str(page))
    assert (made.returncode, "page.html (" in made.stderr) == (0, True)
    before = page.read_bytes()
    (tmp_path / "empty.jsonl").touch()
    for name in ("missing.jsonl", "empty.jsonl"):
        done = assay_text("report", str(tmp_path / name), "-o", str(page))
        assert (done.returncode, name in done.stderr, "page.html" in done.stderr) == (2, True, False)
        assert page.read_bytes() == before
    assert sorted(each.name for each in tmp_path.iterdir()) == ["empty.jsonl", "page.html"]
