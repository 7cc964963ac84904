"""
Parses the notation of ``facts.txt``, which describes the protocol, into JSON Schema.

Loading only records where each definition begins; a definition is parsed on first use, for one revision. The notation
is explained at the top of ``facts.txt``. Nothing here knows the protocol, or the date of a revision: revisions are
numbers, from 1.
"""

from itertools import takewhile
from typing import Any, Final, NoReturn

Schema = dict[str, Any]

_SIMPLE: Final[dict[str, Schema]] = {
    "str": {"type": "string"},
    "int": {"type": "integer"},
    "num": {"type": "number"},
    "bool": {"type": "boolean"},
    "null": {"type": "null"},
    "obj": {"type": "object"},
    "any": {},
    "uri": {"type": "string", "format": "uri"},
    "uritpl": {"type": "string", "format": "uri-template"},
    "byte": {"type": "string", "format": "byte"},
    "record": {"type": "object", "propertyNames": {"type": "string"}},
    "none": {"not": {}},
}
# Blanks around these make str.split the tokenizer, without a loop over characters: start-up counts. No constant and no
# field name of the protocol contains one of them.
_PUNCTUATION: Final = str.maketrans({mark: f" {mark} " for mark in "{}[]:;,|&?=<"})
_REFERENCE: Final = "#/$defs/"


class NotationError(ValueError):
    """The facts break the notation; the message names the definition and the revision."""


class WireFacts:
    """The definitions in a text, each parsed on first use."""

    def __init__(self, text: str) -> None:
        self._lines = text.split("\n")
        self._found: dict[tuple[str, int], tuple[int, str]] = {}
        self._read: dict[tuple[str, int], Schema] = {}
        self._starts: dict[str, list[int]] = {}
        for number, line in enumerate(self._lines):
            # The lines of a definition are indented, or a closing brace; every other line begins one.
            if line[:1].isalpha():
                self._starts.setdefault(line.split(None, 1)[0], []).append(number)

    def definitions(self, revision: int) -> list[str]:
        """Return the names of the definitions in *revision*, sorted."""
        return sorted(name for name in self._starts if self.defines(name, revision))

    def defines(self, name: str, revision: int) -> bool:
        """Whether *name* is a definition of the protocol in *revision*, not a shape that is written out where used."""
        return self.form(name, revision) == "@"

    def form(self, name: str, revision: int) -> str:
        """Return how *name* is used in *revision*: ``@`` as a definition, ``~`` written out, "" not at all."""
        return self._find(name, revision)[1]

    def read(self, name: str, revision: int) -> Schema:
        """
        Return the JSON Schema of *name* in *revision*, references as ``#/$defs/Name``; an unknown name is a KeyError.

        The schema is shared with later callers: do not change it.
        """
        key = (name, revision)
        found = self._read.get(key)
        if found is None:
            start, form = self._find(name, revision)
            if not form:
                raise KeyError(name)
            # Threads that come here at the same moment parse it twice, with the same result.
            found = self._read[key] = _NotationReader(self, name, revision, self._text(start)).definition()
        return found

    def type(self, text: str, revision: int) -> Schema:
        """Return the JSON Schema in *revision* of a type outside the table: a correction."""
        return _NotationReader(self, "it", revision, f"it = {text}").definition()

    def _find(self, name: str, revision: int) -> tuple[int, str]:
        """Return the line that defines *name* for *revision*, and its form."""
        key = (name, revision)
        if key not in self._found:
            forms = [(start, self._form(start, revision)) for start in self._starts.get(name, ())]
            forms = [form for form in forms if form[1]]
            if len(forms) > 1:
                raise NotationError(f"{name} is defined twice in revision {revision}")
            self._found[key] = forms[0] if forms else (0, "")
        return self._found[key]

    def _form(self, start: int, revision: int) -> str:
        words = self._lines[start].split()
        marks = list(takewhile(lambda word: word[0] in "@~", words[1:]))
        for mark in marks:
            if _includes(mark, revision):
                return mark[0]
        return "" if marks else ("@" if words[0][0].isupper() else "~")

    def _text(self, start: int) -> str:
        """Return the definition that begins at line *start*, up to the next one, without comments."""
        end = start + 1
        while end < len(self._lines) and not self._lines[end][:1].isalpha():
            end += 1
        return "\n".join(line.partition("#")[0] for line in self._lines[start:end])


def _includes(mark: str, revision: int) -> bool:
    """Whether a mark such as ``@3+``, ``~1-2`` or ``@4`` includes *revision*."""
    first, dash, last = mark[1:].partition("-")
    try:
        if first[-1:] == "+" and not dash:
            return int(first[:-1]) <= revision
        return int(first) <= revision <= int(last if dash else first)
    except ValueError:
        raise NotationError(f"{mark} names no revisions") from None


class _NotationReader:
    """Parses one definition for one revision."""

    def __init__(self, facts: WireFacts, name: str, revision: int, text: str) -> None:
        self.facts = facts
        self.name = name
        self.revision = revision
        self.tokens = [*text.translate(_PUNCTUATION).split(), "", ""]  # the end; twice, for the one look ahead
        self.at = 0
        # The names that are used, and where: resolved at the end, when the fields of this revision are known.
        self.references: list[tuple[Schema, str]] = []

    def definition(self) -> Schema:
        """Return the whole definition."""
        self.take()
        while self.tokens[self.at][:1] in ("@", "~"):
            self.at += 1
        if self.skip("="):
            schema = self.union(ranged=True)
        elif self.skip("<"):
            bases = self.bases()
            schema = self.object(bases) if self.skip("{") else _object(*self.inherited(bases))
        else:
            self.expect("{")
            schema = self.object([])
        if self.tokens[self.at]:
            self.fail("the definition should end here")
        for place, name in self.references:
            form = self.facts.form(name, self.revision)
            if form == "@":
                place["$ref"] = _REFERENCE + name
            else:
                place.update(self.known(name))
        return schema

    def known(self, name: str) -> Schema:
        """Return the schema of another definition, which must exist in this revision."""
        try:
            return self.facts.read(name, self.revision)
        except KeyError:
            self.fail(f"{name} is not defined")

    def bases(self) -> list[Schema]:
        """Return the bases in this revision."""
        found = []
        while True:
            name = self.take()
            if self.in_force():
                found.append(self.known(name))
            if not self.skip(","):
                return found

    def inherited(self, bases: list[Schema]) -> tuple[Schema, dict[str, bool]]:
        """Return the properties of the bases, and which are required; the later base wins."""
        properties: Schema = {}
        required: dict[str, bool] = {}
        for base in bases:
            properties |= base.get("properties", {})
            required |= {name: name in base.get("required", ()) for name in base.get("properties", ())}
        return properties, required

    def object(self, bases: list[Schema]) -> Schema:
        """Parse the fields up to the closing brace, those of the bases first."""
        properties, required = self.inherited(bases)
        own: set[str] = set()
        while not self.skip("}"):
            if self.skip(";") or self.skip(","):
                continue
            before = len(self.references)
            name = self.take()
            optional = self.skip("?")
            self.expect(":")
            schema = self.union()
            if not self.in_force():
                del self.references[before:]
                continue
            if name in own:
                self.fail(f"{name} is given twice")
            own.add(name)
            properties[name] = schema
            required[name] = not optional
        return _object(properties, required)

    def union(self, *, ranged: bool = False) -> Schema:
        """Parse one type or several with ``|`` between them; *ranged*: each may be followed by its revisions."""
        members = []
        while True:
            before = len(self.references)
            member = self.intersection()
            if not ranged or self.in_force():
                members.append(member)
            else:
                del self.references[before:]
            if not self.skip("|"):
                break
        if not members:
            self.fail("no alternative is left")
        return _any_of(members)

    def intersection(self) -> Schema:
        """Parse one type, or several with ``&`` between them."""
        members = [self.single()]
        while self.skip("&"):
            members.append(self.single())
        return members[0] if len(members) == 1 else {"allOf": members}

    def single(self) -> Schema:
        """Parse one type, with its bounds."""
        word = self.take()
        if word in _SIMPLE:
            return _SIMPLE[word] | self.bounds("minimum", "maximum")
        if word == "[":
            items = self.union()
            self.expect("]")
            return {"type": "array", "items": items} | self.bounds("minItems", "maxItems")
        if word == "{":
            if self.tokens[self.at + 1] in (":", "?"):
                return self.object([])
            values = self.union()
            self.expect("}")
            return {"type": "object", "additionalProperties": values}
        if word[0] == "'" == word[-1]:
            return {"const": word[1:-1]}
        if word[0] == "-" and word[1:].isdigit():
            return {"const": int(word)}
        if not word.isidentifier():
            self.fail(f'expected a type, found "{word}"')
        place: Schema = {}
        self.references.append((place, word))
        return place

    def bounds(self, low: str, high: str) -> Schema:
        """Parse bounds such as ``0..1``, if they come next."""
        first, dots, last = self.tokens[self.at].partition("..")
        if not dots:
            return {}
        if not (first + last).replace("-", "").isdigit():
            self.fail(f"{self.tokens[self.at]} are no bounds")
        self.at += 1
        return {key: int(bound) for key, bound in ((low, first), (high, last)) if bound}

    def in_force(self) -> bool:
        """Whether the item just parsed applies in this revision; skip its marks."""
        marks = []
        while self.tokens[self.at][:1] == "@":
            marks.append(self.take())
        return not marks or any(_includes(mark, self.revision) for mark in marks)

    def take(self) -> str:
        """Return the next token; its absence is an error."""
        token = self.tokens[self.at]
        if not token:
            self.fail("the definition ends too early")
        self.at += 1
        return token

    def skip(self, token: str) -> bool:
        """Whether *token* comes next; if so, skip it."""
        if self.tokens[self.at] != token:
            return False
        self.at += 1
        return True

    def expect(self, token: str) -> None:
        """Skip *token*, which must come next."""
        if not self.skip(token):
            self.fail(f'expected "{token}", found "{self.tokens[self.at]}"')

    def fail(self, problem: str) -> NoReturn:
        """Raise an error that names the definition."""
        raise NotationError(f"{self.name} in revision {self.revision}: {problem}")


def _object(properties: Schema, required: dict[str, bool]) -> Schema:
    schema: Schema = {"type": "object"}
    if properties:
        schema["properties"] = properties
    needed = [name for name in properties if required[name]]
    if needed:
        schema["required"] = needed
    return schema


def _any_of(members: list[Schema]) -> Schema:
    """Return the union of *members* in the fewest keywords, because faults quote them."""
    if len(members) == 1:
        return members[0]
    if all(list(member) == ["const"] for member in members):
        return {"enum": [member["const"] for member in members]}
    plain = [member["type"] for member in members if list(member) == ["type"]]
    if len(plain) == len(members):
        return {"type": plain}
    others = [member for member in members if list(member) != ["type"]]
    if plain:
        others.append({"type": plain if len(plain) > 1 else plain[0]})
    return {"anyOf": others}
