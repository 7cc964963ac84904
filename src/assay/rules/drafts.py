"""
``draft/``: rules from drafts of a working group, judged only in a preview. Data only.

None of them is part of MCP, so a violation is always reported and never stopped.
"""

from typing import Final

from assay.rules.rule import REPORT, Rule

_TAGS: Final = "draft of the transports working group: definition tags; not part of MCP"
_CAPABILITIES: Final = "draft of the transports working group: required capabilities; not part of MCP"

ROWS: Final[tuple[Rule, ...]] = (
    Rule(
        id="draft/tag-shape",
        asks="In a draft, a tag is a string, knownTags maps methods to tags, and resources/read has no tag.",
        why="Clients compare tags only for equality, and send each one back under the method that gave it.",
        source=_TAGS,
        fix="By the draft, send a tag as a string, and known tags as an object of strings.",
        action=REPORT,
        code="UPSTREAM_INVALID",
        example='{"tools":[],"tag":7}',
    ),
    Rule(
        id="draft/tag-pages",
        asks="In a draft, all pages of one list have the same tag.",
        why="The tag is about the whole list. A client discards pages with different tags, and lists again.",
        source=_TAGS,
        fix="By the draft, compute the tag from the whole list, and send it with each page.",
        action=REPORT,
        code="UPSTREAM_INVALID",
        example='a page with "tag":"b" after the first page had "tag":"a"',
    ),
    Rule(
        id="draft/tag",
        asks="In a draft, two lists with the same tag have the same definitions.",
        why="A client that has the tag keeps the old definitions, and does not notice that they have changed.",
        source=_TAGS,
        fix="By the draft, compute the tag from the definitions, for example as a hash.",
        action=REPORT,
        code="UPSTREAM_INVALID",
        example='a new tool in a list that still has "tag":"a"',
    ),
    Rule(
        id="draft/tag-changed",
        asks="In a draft, the same definitions have the same tag.",
        why="A client lists again for nothing. It does no other harm.",
        source=_TAGS,
        fix="By the draft, leave order, page size and time to live out of the tag.",
        action=REPORT,
        code="UPSTREAM_INVALID",
        example='the same tools with "tag":"b", after "tag":"a"',
    ),
    Rule(
        id="draft/stale-tags",
        asks="In a draft, staleTags is an array of methods, each of which the request has in knownTags.",
        why="A client lists again what is named. It has no use for a tag, or for a method that it did not send.",
        source=_TAGS,
        fix="By the draft, name the methods whose known tags are out of date, never the tags.",
        action=REPORT,
        code="UPSTREAM_INVALID",
        example='"io.modelcontextprotocol/staleTags":["prompts/list"] for a request with a tag of tools/list',
    ),
    Rule(
        id="draft/stale-rejection",
        asks="In a draft, a request is rejected only because of a tag that is relevant to it.",
        why="Outdated prompts do not affect the call of a tool. A rejection stops a call that would have worked.",
        source=_TAGS,
        fix="By the draft, reject a tools/call because of tools/list or server/discover only.",
        action=REPORT,
        code="UPSTREAM_INVALID",
        example='an error for tools/call with "data":{"staleTags":["prompts/list"]}',
    ),
    Rule(
        id="draft/required-capabilities",
        asks="In a draft, requiredCapabilities of a tool has the shape of ClientCapabilities.",
        why="Clients compare it with their own capabilities, and may hide the tool.",
        source=_CAPABILITIES,
        fix='By the draft, send an object such as {"elicitation":{}}.',
        action=REPORT,
        code="UPSTREAM_INVALID",
        example='"_meta":{"io.modelcontextprotocol/requiredCapabilities":["elicitation"]}',
    ),
)
