"""The sentence at the top of the page: what would have happened if invalid messages had been stopped. No I/O."""

from collections.abc import Iterator
from typing import Any

from assay.cli.reports.page.page_digest import PageDigest
from assay.core.quarantined_names import counted


def page_verdict(digest: PageDigest) -> dict[str, Any]:
    """Return the verdict: a tone for its colour, one sentence, and further sentences."""
    tone, sentence = _verdict(digest)
    return {"tone": tone, "sentence": sentence, "notes": list(_notes(digest))}


def messages_of(digest: PageDigest) -> int:
    """Return the number of messages; a request that was never answered is not another one."""
    return digest.outcomes.total() - digest.outcomes["missing"]


def _verdict(digest: PageDigest) -> tuple[str, str]:
    messages = messages_of(digest)
    stopped = digest.outcomes["refused"] + digest.outcomes["aside"]
    if not messages and not digest.outcomes["missing"]:
        return "warning", "No message could be judged."
    if stopped:
        some = f"{stopped:,} of {counted(messages, 'message')}"
        return "error", f"{some} would have been stopped under enforce: {_listed(list(_stopped(digest)))}."
    if digest.levels["warning"] or digest.outcomes["report"]:
        reported = digest.outcomes["report"]
        some = f"{reported:,} of {counted(messages, 'message')} {'has' if reported == 1 else 'have'} findings"
        return "warning", f"No message would have been stopped under enforce. {some}."
    if digest.outcomes["missing"]:
        return "warning", f"All of {counted(messages, 'message')} are valid, but some requests were never answered."
    return "good", "The message is valid." if messages == 1 else f"All {messages:,} messages are valid."


def _stopped(digest: PageDigest) -> Iterator[str]:
    for what, number in sorted(digest.stopped.items(), key=lambda each: (-each[1], each[0])):
        yield counted(number, what)
    aside = digest.outcomes["aside"]
    if aside:
        kinds = [counted(entries.count, kind) for kind, entries in sorted(digest.withheld.items())]
        yield f"{counted(aside, 'list')} with {_listed(kinds) or 'entries'} withheld"


def _listed(parts: list[str]) -> str:
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def _notes(digest: PageDigest) -> Iterator[str]:
    missing = digest.outcomes["missing"]
    if missing:
        yield f"{counted(missing, 'request')} {'was' if missing == 1 else 'were'} never answered."
    if digest.known:
        yield f"{counted(digest.known, 'finding')} {'is' if digest.known == 1 else 'are'} in the baseline."
    failed = sum(each.error is not None for each in digest.files)
    if failed:
        yield f"{counted(failed, 'file')} could not be judged, or not to the end."
    partial = sum(each.is_partial and each.error is None for each in digest.files)
    if partial:
        have = "has" if partial == 1 else "have"
        yield f"{counted(partial, 'file')} {have} messages that are missing or were not judged."
