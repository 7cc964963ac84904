"""
The HTML report: the page of the console with its answers in it, as one file that loads nothing.

There is no build step. Each ES module becomes a function that returns its exports, in the order of their imports; the
modules keep to the forms of `import` and `export` that are recognized here. The policy of the page names the hashes of
its scripts and styles, so that a browser runs nothing else.
"""

import os
import re
from base64 import b64encode
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from html import escape
from importlib.resources import files
from typing import Any, Final

from assay import __version__
from assay.cli.checking.evidence import FileEnd
from assay.cli.reports.result import RunResult, messages_of
from assay.console.report import ReportDigest, report_answers
from assay.model.json_values import dumped
from assay.model.printable import counted, plain

EPOCH: Final = "SOURCE_DATE_EPOCH"
"""The variable with the time to write into the page, in seconds since 1970: for builds that can be repeated."""

_IMPORT: Final = re.compile(r'^import \{([^}]*)\} from "\./([\w/.-]+\.js)";$', re.MULTILINE)
_EXPORT: Final = re.compile(r"^export (?=(?:async )?(?:function|const|class) (\w+))", re.MULTILINE)
_LISTED: Final = re.compile(r"^export \{([^}]*)\};$", re.MULTILINE)
_OTHER: Final = re.compile(r"^\s*(?:import|export)\b.*$", re.MULTILINE)

_LINK: Final = re.compile(r'<(?:link rel="stylesheet" href|script src)="assets/([^"]*)"[^>]*>(?:</script>)?\n')
"""A line of `index.html` that loads a file."""

_POLICY: Final = (
    "default-src 'none'; script-src {}; style-src {}; img-src data:; base-uri 'none'; form-action 'none'; "
    "require-trusted-types-for 'script'"
)


def html_text(result: RunResult) -> str:
    """Return the page of a run with a `ReportDigest`."""
    digest = next((each for each in result.digests if isinstance(each, ReportDigest)), ReportDigest())
    overview = verdict(result) | {"notes": list(_notes(result)), "files": list(_files(result)), "made": _made()}
    answers = report_answers(digest, result.groups, overview, result.options.page_of)
    names = [each.name for each in result.files]
    title = f"Assay: {', '.join(names[:2])}{f' and {len(names) - 2:,} more' if len(names) > 2 else ''}"
    return html_page(plain(title), answers, overview["sentence"])


def _made() -> str | None:
    """Return the time of making; None if it is to be left out."""
    given = os.environ.get(EPOCH, "").strip()
    try:
        moment = datetime.fromtimestamp(int(given), UTC) if given else datetime.now(UTC)
    except (ValueError, OverflowError, OSError):
        return None
    return moment.strftime("%Y-%m-%d %H:%M UTC")


# ── the verdict ──────────────────────────────────────────────────────────────────────────────────────────────────────


def verdict(result: RunResult) -> dict[str, Any]:
    """Return the verdict on a run: a tone for its colour, and one sentence."""
    counts = sum((each.counts for each in result.files), Counter[str]())
    messages = sum(map(messages_of, result.files))
    blocked, kinds = counts["blocked"], dict[str, set[tuple[str, str]]]()
    for each in result.groups:
        entry = each.finding.entry
        if entry is not None and each.finding.done == "quarantine":
            kinds.setdefault(entry.kind, set()).add((each.key.server, entry.name))
    quarantined = " and ".join(counted(len(names), kind) for kind, names in sorted(kinds.items()))
    all_valid = "The message is valid" if messages == 1 else f"All {messages:,} messages are valid"
    if not messages and not counts["missing"]:
        return {"tone": "warning", "sentence": "No message could be judged."}
    if blocked or quarantined:
        done = [f"block {blocked:,} of {counted(messages, 'message')}"] if blocked else []
        done += [f"quarantine {quarantined}"] if quarantined else []
        return {"tone": "error", "sentence": f"Enforce mode would {' and '.join(done)}."}
    if counts["reported"]:
        have = "has" if counts["reported"] == 1 else "have"
        some = f"{counts['reported']:,} of {counted(messages, 'message')} {have} findings"
        return {"tone": "warning", "sentence": f"Enforce mode would block no message. {some}."}
    if counts["missing"]:
        return {"tone": "warning", "sentence": f"{all_valid}, but some requests were never answered."}
    return {"tone": "ok", "sentence": f"{all_valid}."}


def _notes(result: RunResult) -> Iterator[str]:
    """Yield what else is to be said about all files."""
    missing = sum(each.counts["missing"] for each in result.files)
    if missing:
        yield f"{counted(missing, 'request')} {'was' if missing == 1 else 'were'} never answered."
    if result.groups.known:
        known = result.groups.known
        yield f"{counted(known, 'finding')} {'is' if known == 1 else 'are'} in the baseline."
    failed = sum(each.error is not None for each in result.files)
    if failed:
        yield f"{counted(failed, 'file')} could not be judged, or not to the end."
    yield from (f"{each}." for each in result.remarks)
    if len(result.files) == 1:
        yield from (f"{each}." for each in _about(result.files[0]))


def _files(result: RunResult) -> Iterator[dict[str, str]]:
    for each in result.files:
        counts = [
            counted(messages_of(each), "message"),
            *(f"{each.counts[word]:,} {word}" for word in _SHOWN if each.counts[word]),
        ]
        yield {"name": each.name, "about": "; ".join([", ".join(counts), *_about(each)])}


_SHOWN: Final = ("reported", "repaired", "blocked", "failed")


def _about(file: FileEnd) -> Iterator[str]:
    """Yield the problems of a file."""
    if file.error is not None:
        yield file.error
    elif file.is_partial:
        yield "some messages are missing or were not judged"
    yield from file.remarks


# ── the page ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def asset(name: str) -> str:
    """Return the text of a file of `assay.web`."""
    return files("assay.web").joinpath(name).read_text(encoding="utf-8")


def html_page(title: str, answers: dict[str, Any], fallback: str) -> str:
    """Return the page of the console with its *answers* in it; *fallback* is shown where scripts do not run."""
    page = asset("index.html")
    names = _LINK.findall(page)
    styles = "\n".join(asset(each) for each in names if each.endswith(".css"))
    *libraries, entry = (each for each in names if each.endswith(".js"))
    scripts = [*map(asset, libraries), bundled(entry)]
    licences = (asset(f"{os.path.dirname(each)}/LICENSE") for each in libraries if "/" in each)
    policy = escape(_POLICY.format(" ".join(map(_hash, scripts)), _hash(styles)))
    head = [
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
        f'<meta name="generator" content="Assay {escape(__version__)}">',
        f"<title>{escape(title)}</title>",
        f"<style>{styles}</style>",
    ]
    body = [
        f"<noscript><p>{escape(fallback)}</p><p>This page needs JavaScript, which is inside it.</p></noscript>",
        f'<script type="application/json" id="answers">{as_script(answers)}</script>',
        *(f"<!--\n{each.strip()}\n-->" for each in dict.fromkeys(licences)),
        *(f"<script>{each}</script>" for each in scripts[:-1]),
        f'<script type="module">{scripts[-1]}</script>',
    ]
    page = re.sub(r"<title>.*</title>\n", "", _LINK.sub("", page))
    start, rest = page.split("</head>")
    end = [f"</head>{rest.partition('<noscript>')[0]}".rstrip(), *body, "</body>", "</html>", ""]
    return "\n".join([start.rstrip(), *head, *end])


def as_script(data: Any) -> str:
    """Return *data* as JSON that cannot end its script element, or begin a comment in it."""
    return dumped(data).replace("<", "\\u003c")


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


def bundled(entry: str) -> str:
    """Return one script that runs the module *entry* after all modules that it imports."""
    ordered: dict[str, str] = {}
    _collect(entry, ordered, ())
    return "const modules = {};\n" + "\n".join(ordered.values())


def _collect(name: str, ordered: dict[str, str], above: Sequence[str]) -> None:
    if name in ordered:
        return
    if name in above:
        raise ValueError(f"{name} imports itself, by way of {above[-1]}")
    text = asset(name)
    for each in _IMPORT.finditer(text):
        _collect(each[2], ordered, (*above, name))
    ordered[name] = _function(name, text)


def _function(name: str, text: str) -> str:
    """Return a module as a function. Raises `ValueError` for an import or export that is not recognized."""
    exports = [*_EXPORT.findall(text), *(each[1].strip() for each in _LISTED.finditer(text))]
    text = _IMPORT.sub(lambda each: f'const {{{each[1]}}} = modules["{each[2]}"];', text)
    text = _EXPORT.sub("", _LISTED.sub("", text))
    other = _OTHER.search(text)
    if other is not None or "</script" in text or "<!--" in text:
        raise ValueError(f"{name} cannot be put into a page: {other[0] if other else 'the end of a script'}")
    return f'modules["{name}"] = (() => {{\n{text}\nreturn {{ {", ".join(exports)} }};\n}})();'
