"""
One HTML page without any other file: modules, styles, the chart library and the data are in it.

There is no build step. Each ES module becomes a function that returns its exports, in the order of their imports; the
modules keep to the forms of `import` and `export` that are recognized here. The policy of the page names the hashes of
its scripts and styles, so that a browser runs nothing else, and nothing is loaded.
"""

import re
from base64 import b64encode
from collections.abc import Iterator, Sequence
from hashlib import sha256
from html import escape
from importlib.resources import files
from typing import Any, Final

from assay.base.printable_json import dumped

_IMPORT: Final = re.compile(r'^import \{([^}]*)\} from "\./([\w/.-]+\.js)";$', re.MULTILINE)
_EXPORT: Final = re.compile(r"^export (?=(?:async )?(?:function|const|class) (\w+))", re.MULTILINE)
_OTHER: Final = re.compile(r"^\s*(?:import|export)\b.*$", re.MULTILINE)

_UPLOT: Final = "vendor/uplot/uPlot.iife.min.js"
_LANGUAGE: Final = "language.js"
"""What runs before the chart library."""

_UPLOT_STYLE: Final = "vendor/uplot/uPlot.min.css"
_UPLOT_LICENCE: Final = "vendor/uplot/LICENSE"

_ICON: Final = (
    "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E"
    "%3Ccircle cx='8' cy='8' r='7' fill='%232457c5'/%3E"
    "%3Cpath d='M4.5 8.2l2.4 2.4 4.6-5' fill='none' stroke='white' stroke-width='2'/%3E%3C/svg%3E"
)

_PAGE: Final = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<meta name="generator" content="{generator}">
<title>{title}</title>
<link rel="icon" href="{icon}">
<style>{style}</style>
</head>
<body>
<noscript><p>{fallback}</p><p>This page needs JavaScript, which is in the page itself.</p></noscript>
<script type="application/json" id="data">{data}</script>
<!--
{licence}
-->
<script>{library}</script>
<script type="module">{script}</script>
</body>
</html>
"""


def asset(name: str) -> str:
    """Return the text of a file of `assay.web`."""
    return files("assay.web").joinpath(name).read_text(encoding="utf-8")


def html_page(entry: str, title: str, data: Any, *, generator: str, fallback: str) -> Iterator[str]:
    """
    Yield the parts of a page that runs the module *entry* with *data*.

    *fallback* is shown where scripts do not run.
    """
    style = f"{asset(_UPLOT_STYLE)}\n{asset('style.css')}"
    library, script = f"{asset(_LANGUAGE)}\n{asset(_UPLOT)}", bundled(entry)
    policy = "; ".join((
        "default-src 'none'",
        f"script-src {_hash(library)} {_hash(script)}",
        f"style-src {_hash(style)}",
        "img-src data:",
        "base-uri 'none'",
        "form-action 'none'",
        "require-trusted-types-for 'script'",
    ))  # fmt: skip
    text = {"title": title, "generator": generator, "fallback": fallback, "policy": policy}
    inserted = {name: escape(each) for name, each in text.items()} | {
        "icon": _ICON,
        "style": style,
        "licence": asset(_UPLOT_LICENCE).strip(),
        "library": library,
        "script": script,
    }
    for part, name in _parts(_PAGE):
        yield part
        yield as_script(data) if name == "data" else inserted.get(name, "")


def _parts(template: str) -> Iterator[tuple[str, str]]:
    """Yield each text of the template, with the name that comes after it."""
    names = re.split(r"\{(\w+)\}", template)
    yield from zip(names[::2], [*names[1::2], ""], strict=True)


def as_script(data: Any) -> str:
    """Return *data* as JSON that cannot end its script element, or begin a comment in it."""
    return dumped(data).replace("<", "\\u003c")


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


# ── modules ──────────────────────────────────────────────────────────────────────────────────────────────────────────


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
    exports = _EXPORT.findall(text)
    text = _IMPORT.sub(lambda each: f'const {{{each[1]}}} = modules["{each[2]}"];', text)
    text = _EXPORT.sub("", text)
    other = _OTHER.search(text)
    if other is not None or "</script" in text or "<!--" in text:
        raise ValueError(f"{name} cannot be put into a page: {other[0] if other else 'the end of a script'}")
    return f'modules["{name}"] = (() => {{\n{text}\nreturn {{ {", ".join(exports)} }};\n}})();'
