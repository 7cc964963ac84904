"""The skills extension: the entries of skills, the digests of their files, and what was declared."""

from base64 import b64encode
from collections.abc import Callable
from hashlib import sha256
from typing import Any

import pytest
from extended import MODES, discover, discovered, stateless

from assay.judge.topics import skills
from assay.model.verdict import Verdict
from assay.rules.policy import Policy
from kit.rows import rows
from kit.talk import ALL_SERVER, Talk, error, good, notification, replacement, request, result, rules

IDENTIFIER = "io.modelcontextprotocol/skills"
SKILLS: dict[str, Any] = {IDENTIFIER: {"directoryRead": True}}
STRICT = Policy(strict=True)

TEXT = "---\nname: pdf\ndescription: Reads PDF files.\n---\n\n# PDF\n"
FORM = "A form: ä, 你.\n"
ROOT = "skill://pdf"
URI = f"{ROOT}/SKILL.md"
FORM_URI = f"{ROOT}/references/FORM.md"


def file(uri: str, content: str | bytes, **more: Any) -> dict[str, Any]:
    """A file in the entry of a skill."""
    data = content.encode() if isinstance(content, str) else content
    return {"uri": uri, "digest": f"sha256:{sha256(data).hexdigest()}", "size": len(data), **more}


FILES = [file(URI, TEXT), file(FORM_URI, FORM)]
FRONTMATTER: dict[str, Any] = {"name": "pdf", "description": "Reads PDF files."}
SKILL: dict[str, Any] = {"uri": URI, "frontmatter": FRONTMATTER, "resources": FILES}


def skill(**more: Any) -> dict[str, Any]:
    """The entry of the skill, with other members."""
    return {**SKILL, **more}


def named(name: str, folder: str = "") -> dict[str, Any]:
    """The entry of another skill, without files."""
    uri = f"skill://{folder}{name}/SKILL.md"
    return {"uri": uri, "frontmatter": {"name": name, "description": "x"}, "resources": "dynamic"}


class Skilled(Talk):
    """A conversation without a handshake, with a server that has the extension."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        discovered(self, SKILLS, resources={"listChanged": True})
        self.asked = 0

    def ask(self, method: str, **params: Any) -> Verdict:
        """The verdict on a request."""
        self.asked += 1
        return self.client(stateless(self.asked, method, **params))

    def answer(self, **members: Any) -> Verdict:
        """The verdict on the result of the last request."""
        value = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private", **members}
        return self.server(result(self.asked, value))

    def page(self, *skills: Any, cursor: str | None = None, **members: Any) -> Verdict:
        """The verdict on a page of `skills/list`."""
        good(self.ask("skills/list", **({} if cursor is None else {"cursor": cursor})))
        return self.answer(skills=list(skills), **members)

    def listed(self, *skills: Any) -> "Skilled":
        """The same, after the server has listed these."""
        good(self.page(*(skills or (SKILL,))))
        return self

    def got(self, entry: Any, uri: str = URI) -> Verdict:
        """The verdict on the result of `skills/get`."""
        good(self.ask("skills/get", uri=uri))
        return self.answer(skill=entry)

    def read(self, uri: str, *contents: Any) -> Verdict:
        """The verdict on the contents of a file."""
        good(self.ask("resources/read", uri=uri))
        return self.answer(contents=list(contents))

    def children(self, uri: str, *resources: Any) -> Verdict:
        """The verdict on what is in a directory."""
        good(self.ask("resources/directory/read", uri=uri))
        return self.server(result(self.asked, {"resultType": "complete", "resources": list(resources)}))

    def resources(self, *resources: Any) -> Verdict:
        """The verdict on `resources/list`."""
        good(self.ask("resources/list"))
        return self.answer(resources=list(resources))


def text(content: str = TEXT, uri: str = URI) -> dict[str, Any]:
    """The content of a file."""
    return {"uri": uri, "text": content, "mimeType": "text/markdown"}


def changed(talk: Talk, method: str = "notifications/resources/list_changed", **params: Any) -> Talk:
    """The same conversation, after the server has reported a change."""
    talk.server(notification(method, params))
    return talk


# ── good conversations ───────────────────────────────────────────────────────────────────────────────────────────────


@rows("mode", MODES)
def test_a_skill_from_its_list_to_its_files(mode: str) -> None:
    talk = Skilled(mode=mode, policy=STRICT).listed(SKILL, named("daily", "reports/"))
    good(talk.got(SKILL))
    listed = {"uri": URI, "name": "pdf", "description": "Reads PDF files.", "mimeType": "text/markdown"}
    good(talk.resources(listed, {"uri": "file:///a", "name": "a"}))
    good(talk.read(URI, text()))
    good(talk.read(FORM_URI, text(FORM, FORM_URI)))
    good(talk.read(FORM_URI, {"uri": FORM_URI, "blob": b64encode(FORM.encode()).decode()}))
    folder = {"uri": f"{ROOT}/references", "name": "references", "mimeType": "inode/directory"}
    good(talk.children(ROOT, {"uri": URI, "name": "SKILL.md", "mimeType": "text/markdown"}, folder))
    good(talk.children(f"{ROOT}/references", {"uri": FORM_URI, "name": "FORM.md"}))
    good(talk.children(f"{ROOT}/empty"))


def test_after_a_handshake_skills_are_judged_as_well() -> None:
    talk = Talk().opened(server={**ALL_SERVER, "extensions": SKILLS})
    good(talk.client(request(1, "skills/list")))
    good(talk.server(result(1, {"skills": [SKILL]})))
    good(talk.client(request(2, "resources/read", {"uri": URI})))
    assert rules(talk.server(result(2, {"contents": [text("other")]}))) == ["skills/verification"]


GOOD_ENTRIES = [
    named("a"),
    named("x" * 64),
    named("v2-0"),
    named("größe"),
    {**named("größe"), "uri": "skill://gr%C3%B6%C3%9Fe/SKILL.md"},
    named("refunds", "acme/billing/"),
    {**named("refunds"), "uri": "github://owner/repo/refunds/SKILL.md"},
    skill(frontmatter={**FRONTMATTER, "license": "MIT", "metadata": {"com.example/a": 1}}),
    skill(resources=[file(URI, b"")]),
    skill(resources=[FILES[0], *(file(f"{ROOT}/{n}", "") for n in range(511))]),
    skill(resources=[FILES[0] | {"size": 16_777_216}]),
    skill(resources=[*FILES, file(f"{ROOT}/inner/SKILL.md", "x")]),
]


@rows("entry", GOOD_ENTRIES)
def test_an_entry_as_the_specification_allows(entry: dict[str, Any]) -> None:
    talk = Skilled(policy=STRICT)
    good(talk.page(entry))
    good(talk.got(entry, entry["uri"]))


# ── entries ──────────────────────────────────────────────────────────────────────────────────────────────────────────

BAD_ENTRIES = [
    ("skills/uri", skill(uri=f"{ROOT}/skill.md", resources="dynamic")),
    ("skills/uri", skill(uri="SKILL.md", resources="dynamic")),
    ("skills/uri", skill(uri="skill://pdfs/SKILL.md", resources="dynamic")),
    ("skills/name", named("PDF")),
    ("skills/name", named("x" * 65)),
    ("skills/name", named("-a")),
    ("skills/name", named("a_b")),
    ("skills/name", named("")),
    ("skills/digest", skill(resources=[FILES[0] | {"digest": "sha256:" + "A" * 64}])),
    ("skills/digest", skill(resources=[FILES[0] | {"digest": "0" * 64}])),
    ("skills/digest", skill(resources=[FILES[0] | {"digest": "sha256:" + "0" * 64 + "\n"}])),
    ("skills/digest", skill(resources=[FILES[0] | {"size": -1}])),
    ("skills/manifest", skill(resources=[])),
    ("skills/manifest", skill(resources=FILES[1:])),
    ("skills/manifest", skill(resources=[*FILES, FILES[1]])),
    ("skills/manifest", skill(resources=[*FILES, file("skill://pdf-2/a", "x")])),
    ("skills/manifest", skill(resources=[*FILES, file(f"{ROOT}/../other/a", "x")])),
    ("skills/manifest", skill(resources=[*FILES, file(ROOT, "x")])),
    ("skills/size", skill(resources=[FILES[0], *(file(f"{ROOT}/{n}", "") for n in range(512))])),
    ("skills/size", skill(resources=[FILES[0] | {"size": 16_777_217}])),
    ("skills/metadata", skill(frontmatter={**FRONTMATTER, "metadata": {"io.modelcontextprotocol/a": 1}})),
]


@rows("mode", MODES)
@rows(("rule", "entry"), BAD_ENTRIES)
def test_a_wrong_entry_is_reported_and_forwarded(rule: str, entry: dict[str, Any], mode: str) -> None:
    talk = Skilled(mode=mode)
    verdict = talk.page(SKILL | {"uri": "skill://a/pdf/SKILL.md", "resources": "dynamic"}, entry)
    assert rule in rules(verdict)
    assert {each.at.split("/")[3] for each in verdict.violations} == {"1"}
    assert verdict.onward is verdict.frame
    verdict = talk.got(entry, entry["uri"])
    assert set(rules(verdict)) == {rule}
    assert verdict.onward is verdict.frame


def test_under_a_strict_policy_a_wrong_skill_does_not_cost_the_list() -> None:
    talk = Skilled(policy=STRICT)
    verdict = talk.page(SKILL, named("Wrong"), named("right"))
    assert rules(verdict) == ["skills/name"]
    assert [each["uri"] for each in replacement(verdict)["result"]["skills"]] == [URI, "skill://right/SKILL.md"]
    verdict = talk.got(named("Wrong"), "skill://Wrong/SKILL.md")
    assert replacement(verdict)["error"]["code"] == -31010


def test_an_entry_of_another_shape_does_not_cost_the_list() -> None:
    """The schema refuses it; the others are judged and forwarded."""
    talk = Skilled()
    verdict = talk.page(SKILL, {"uri": "skill://a/SKILL.md"}, named("Wrong"))
    assert set(rules(verdict)) == {"protocol/result", "skills/name"}
    assert [each["uri"] for each in replacement(verdict)["result"]["skills"]] == [URI, "skill://Wrong/SKILL.md"]
    assert [str(each.name) for each in verdict.quarantined] == ["skill://a/SKILL.md"]


def test_one_skill_does_not_fill_the_report() -> None:
    talk = Skilled()
    wrong = skill(resources=[FILES[0], *(file(f"skill://b/{number}", "x") for number in range(50))])
    assert rules(talk.page(wrong, named("Wrong"))) == ["skills/manifest"] * 8 + ["skills/name"]


def test_a_changed_skill_is_no_violation() -> None:
    talk = Skilled(policy=STRICT).listed()
    other = TEXT.replace("Reads", "Writes")
    newer = skill(
        frontmatter={**FRONTMATTER, "description": "Writes PDF files."}, resources=[file(URI, other), *FILES[1:]]
    )
    good(talk.got(newer))
    good(talk.page(newer))
    good(talk.read(URI, text(other)))


# ── files ────────────────────────────────────────────────────────────────────────────────────────────────────────────

CONTENTS: list[dict[str, Any]] = [
    text(TEXT + " "),
    text(TEXT.replace("PDF\n", "PDG\n")),
    text(""),
    {"uri": URI, "blob": "AAAA", "mimeType": "text/markdown"},
]


@rows("content", CONTENTS)
def test_a_content_that_is_not_that_of_the_entry(content: dict[str, Any]) -> None:
    verdict = Skilled().listed().read(URI, content)
    assert rules(verdict) == ["skills/verification"]
    assert verdict.onward is verdict.frame


@rows(
    "contents",
    [
        pytest.param([text("other"), text("other")], id="two-contents-of-one-uri"),
        pytest.param([text("other", "skill://pdf/other")], id="another-uri"),
        pytest.param([{"uri": FORM_URI, "blob": "_-_-"}], id="another-spelling-of-base64"),
        pytest.param([], id="nothing"),
    ],
)
def test_a_content_that_cannot_be_compared(contents: list[Any]) -> None:
    verdict = Skilled().listed().read(FORM_URI, *contents)
    assert not [each for each in rules(verdict) if each.startswith("skills/")]


@rows(
    "change",
    [
        pytest.param(changed, id="the-list"),
        pytest.param(lambda talk: changed(talk, "notifications/resources/updated", uri=FORM_URI), id="one-file"),
        pytest.param(lambda talk: good(talk.got(skill(resources="dynamic"))), id="a-newer-entry"),
    ],
)
def test_a_change_makes_entries_old(change: Callable[[Skilled], object]) -> None:
    talk = Skilled().listed()
    change(talk)
    good(talk.read(FORM_URI, text("newer", FORM_URI)))
    good(talk.read(f"{ROOT}/new.md", text("new", f"{ROOT}/new.md")))
    talk = Skilled().listed()
    changed(talk, "notifications/resources/updated", uri="skill://other/a")
    assert rules(talk.read(FORM_URI, text("newer", FORM_URI))) == ["skills/verification"]


@rows("size", [16, 16.0])
def test_a_file_is_compared_by_size_and_digest(size: float) -> None:
    """In JSON, 16.0 is the integer 16."""
    talk = Skilled().listed(skill(resources=[FILES[0], file(FORM_URI, "x" * 16, size=size)]))
    good(talk.read(FORM_URI, text("x" * 16, FORM_URI)))
    (longer,) = talk.read(FORM_URI, text("x" * 17, FORM_URI)).violations
    assert (longer.expected, longer.found) == (f"{size:,} bytes", "17 bytes")
    (other,) = talk.read(FORM_URI, text("y" * 16, FORM_URI)).violations
    assert other.found == f"sha256:{sha256(b'y' * 16).hexdigest()}"


@rows("wrong", [{"digest": "sha256:0"}, {"size": -1}])
def test_a_file_with_an_invalid_digest_or_size_is_not_compared(wrong: dict[str, Any]) -> None:
    """The entry was reported."""
    talk = Skilled()
    assert rules(talk.page(skill(resources=[FILES[0], FILES[1] | wrong]))) == ["skills/digest"]
    good(talk.read(FORM_URI, text("other", FORM_URI)))
    assert rules(talk.read(URI, text("other"))) == ["skills/verification"]


def test_an_entry_that_crosses_a_change_is_not_kept() -> None:
    talk = Skilled()
    good(talk.ask("skills/list"))
    changed(talk)
    good(talk.answer(skills=[SKILL]))
    good(talk.read(FORM_URI, text("newer", FORM_URI)))


def test_a_read_that_crosses_a_newer_entry_is_not_compared() -> None:
    talk = Skilled().listed()
    good(talk.ask("resources/read", uri=FORM_URI))
    reading = talk.asked
    good(talk.got(skill(resources=[FILES[0], file(FORM_URI, "newer")])))
    value = {"resultType": "complete", "contents": [text(FORM, FORM_URI)], "ttlMs": 0, "cacheScope": "private"}
    good(talk.server(result(reading, value)))


def test_conversations_about_one_server_share_its_skills() -> None:
    first = Skilled().listed()
    second = Skilled(tools=first.conversation.tools)
    assert rules(second.read(FORM_URI, text("forged", FORM_URI))) == ["skills/verification"]


def test_a_file_of_a_nested_skill_may_match_either_entry() -> None:
    inner = f"{ROOT}/inner"
    nested = {
        "uri": f"{inner}/SKILL.md",
        "frontmatter": {"name": "inner", "description": "x"},
        "resources": [file(f"{inner}/SKILL.md", "new"), file(f"{inner}/a.md", "a")],
    }
    outer = skill(resources=[*FILES, file(f"{inner}/SKILL.md", "old"), file(f"{inner}/a.md", "a")])
    talk = Skilled().listed(outer, nested)
    good(talk.read(f"{inner}/SKILL.md", text("old", f"{inner}/SKILL.md")))
    good(talk.read(f"{inner}/SKILL.md", text("new", f"{inner}/SKILL.md")))
    good(talk.read(f"{inner}/a.md", text("a", f"{inner}/a.md")))
    assert rules(talk.read(f"{inner}/a.md", text("b", f"{inner}/a.md"))) == ["skills/verification"]


# ── what is declared ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_server_with_skills_has_resources() -> None:
    talk = Talk()
    assert rules(discover(talk, SKILLS)) == ["skills/resources"]
    good(discover(Talk(), SKILLS, resources={}))


def test_directories_are_read_only_if_that_is_declared() -> None:
    talk = discovered(Talk(), {IDENTIFIER: {}}, resources={})
    verdict = talk.client(stateless(1, "resources/directory/read", uri=ROOT))
    assert rules(verdict) == ["protocol/capability"]
    assert verdict.onward is verdict.frame
    good(talk.server(error(1, -32601)))
    good(Talk().client(stateless(1, "resources/directory/read", uri=ROOT)))


@rows(
    ("method", "params"),
    [("skills/list", {}), ("skills/get", {"uri": URI}), ("resources/directory/read", {"uri": ROOT})],
)
def test_a_server_answers_what_it_declares(method: str, params: dict[str, Any]) -> None:
    talk = Skilled()
    good(talk.ask(method, **params))
    assert rules(talk.server(error(talk.asked, -32601))) == ["protocol/error-code"]


@rows(("method", "uri"), [("skills/get", URI), ("resources/directory/read", ROOT)])
def test_the_code_for_a_missing_resource_is_another_one_for_skills(method: str, uri: str) -> None:
    talk = Talk().opened(server={**ALL_SERVER, "extensions": SKILLS})
    good(talk.client(request(1, method, {"uri": uri})))
    assert rules(talk.server(error(1, -32002))) == ["protocol/error-code"]
    good(talk.client(request(2, "resources/read", {"uri": URI})))
    good(talk.server(error(2, -32002)))


# ── bounds ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_oldest_skills_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory is bounded; files that were forgotten are not judged."""
    monkeypatch.setattr(skills, "_MOST_KNOWN", 3)
    uri = "skill://other/SKILL.md"
    other = {**named("other"), "resources": [file(uri, "x"), file("skill://other/a", "a")]}
    talk = Skilled().listed(SKILL, other)
    good(talk.read(URI, text("forged")))
    assert rules(talk.read(uri, text("forged", uri))) == ["skills/verification"]
    # A newer entry is counted in place of the older one.
    good(talk.got(other, uri))
    assert rules(talk.read(uri, text("forged", uri))) == ["skills/verification"]
    assert talk.conversation.tools.topics[skills.SkillDigests].size == 2
    # One with too many files is not remembered at all.
    monkeypatch.setattr(skills, "_MOST_KNOWN", 1)
    good(Skilled().listed().read(URI, text("other")))


@rows("value", [None, 5, [], {}, "x", [5], [None], [{}], [{"uri": 5}], [{"uri": URI}]])
def test_nothing_of_another_shape_is_a_failure(value: Any) -> None:
    """Under audit everything is forwarded, and judged as far as that is possible."""
    talk = Skilled(mode="audit").listed()
    for method, member in (
        ("skills/list", "skills"),
        ("skills/get", "skill"),
        ("resources/list", "resources"),
        ("resources/read", "contents"),
        ("resources/directory/read", "resources"),
    ):
        talk.ask(method, uri=URI)
        assert "guard/failure" not in rules(talk.answer(**{member: value}))
    for entry in ({**SKILL, "resources": value}, {**SKILL, "frontmatter": value}, {**SKILL, "uri": value}):
        assert "guard/failure" not in rules(talk.page(entry))
