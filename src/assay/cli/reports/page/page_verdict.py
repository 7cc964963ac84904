"""The sentence at the top of the page: what enforce mode would have blocked. No I/O."""

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
    blocked, quarantined = digest.outcomes["blocked"], _kinds(digest)
    if not messages and not digest.outcomes["missing"]:
        return "warning", "No message could be judged."
    if blocked or quarantined:
        done = [f"blocked {blocked:,} of {counted(messages, 'message')} ({_blocked(digest)})"] if blocked else []
        done += [f"quarantined {quarantined}"] if quarantined else []
        return "error", f"Enforce mode would have {_listed(done)}."
    if digest.levels["warning"] or digest.outcomes["reported"]:
        reported = digest.outcomes["reported"]
        some = f"{reported:,} of {counted(messages, 'message')} {'has' if reported == 1 else 'have'} findings"
        return "warning", f"Enforce mode would have blocked no message. {some}."
    if digest.outcomes["missing"]:
        return "warning", f"All of {counted(messages, 'message')} are valid, but some requests were never answered."
    return "good", "The message is valid." if messages == 1 else f"All {messages:,} messages are valid."


def _blocked(digest: PageDigest) -> str:
    """Return what was blocked: ``2 calls and 1 result``."""
    found = sorted(digest.blocked.items(), key=lambda each: (-each[1], each[0]))
    return _listed([counted(number, what) for what, number in found])


def _kinds(digest: PageDigest) -> str:
    """Return what was quarantined: ``2 tools and 1 prompt``."""
    return _listed([counted(entries.count, kind) for kind, entries in sorted(digest.quarantined.items())])


def _listed(parts: list[str]) -> str:
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def _notes(digest: PageDigest) -> Iterator[str]:
    missing = digest.outcomes["missing"]
    if missing:
        yield f"{counted(missing, 'request')} {'was' if missing == 1 else 'were'} never answered."
    known = digest.known.total()
    if known:
        yield f"{counted(known, 'finding')} {'is' if known == 1 else 'are'} in the baseline."
    failed = sum(each.error is not None for each in digest.files)
    if failed:
        yield f"{counted(failed, 'file')} could not be judged, or not to the end."
    partial = sum(each.is_partial and each.error is None for each in digest.files)
    if partial:
        have = "has" if partial == 1 else "have"
        yield f"{counted(partial, 'file')} {have} messages that are missing or were not judged."
