/** Search words, and keys for moving through rows: `/` focuses the search, Esc clears it, j and k move. */

const FIELDS = ["rule", "tool", "method", "server", "level"];

/**
 * Return what the typed *text* asks for: words that must all occur, and words of fields, such as `rule:contract`.
 *
 * A word in double quotes may have spaces.
 */
export function parseQuery(text) {
  const query = { words: [], fields: [] };
  for (const [, name, quoted, bare] of text.toLowerCase().matchAll(/(?:([a-z]+):)?(?:"([^"]*)"?|(\S+))/g)) {
    const value = quoted ?? bare ?? "";
    if (name === undefined) query.words.push(value);
    else if (FIELDS.includes(name)) query.fields.push([name, value]);
    else query.words.push(`${name}:${value}`);
  }
  return query;
}

/** The query that asks for nothing. */
export const NOTHING = parseQuery("");

/** Whether *query* asks for nothing. */
export function isEmpty(query) {
  return query.words.length === 0 && query.fields.length === 0;
}

/** Return an entry to search: *fields* by name, and all texts in which words are found. */
export function searchable(fields, ...texts) {
  const lower = Object.fromEntries(
    Object.entries(fields).map(([name, value]) => [name, String(value ?? "").toLowerCase()]),
  );
  return { fields: lower, text: [...Object.values(lower), ...texts].join("\n").toLowerCase() };
}

/** Whether an entry has everything that *query* asks for. */
export function matches(query, entry) {
  return (
    query.words.every((word) => entry.text.includes(word)) &&
    query.fields.every(([name, value]) => (entry.fields[name] ?? "").includes(value))
  );
}

/** Hide the *rows* whose entry in *index* does not match, and *section* if none does; return the number of others. */
export function filterRows(section, rows, index, query) {
  let count = 0;
  for (const [at, row] of rows.entries()) {
    row.hidden = !matches(query, index[at]);
    count += row.hidden ? 0 : 1;
  }
  section.hidden = count === 0 && !isEmpty(query);
  return count;
}

const SEARCH = "assay-search";

/** Ask the page to search for *text*. */
export function searchFor(text) {
  document.dispatchEvent(new CustomEvent(SEARCH, { detail: text }));
}

/** Call *search* with every text that a part of the page asks for. */
export function onSearch(search) {
  document.addEventListener(SEARCH, (event) => search(event.detail));
}

const MOVES = { j: 1, k: -1, ArrowDown: 1, ArrowUp: -1 };

/** Whether keys belong to the field *target*. */
export function isTyping(target) {
  return target.closest?.("input, textarea, select, [contenteditable]") !== null;
}

function rows() {
  return [...document.querySelectorAll("[data-row]")].filter((each) => each.offsetParent !== null);
}

/** Focus the next row, or the one before; from elsewhere, the first one that can be seen. */
export function move(step) {
  const all = rows();
  if (all.length === 0) return;
  const now = all.indexOf(document.activeElement?.closest("[data-row]"));
  const seen = all.findIndex((each) => each.getBoundingClientRect().top >= 0);
  const next = now >= 0 ? all[Math.min(all.length - 1, Math.max(0, now + step))] : all[Math.max(0, seen)];
  next.focus({ preventScroll: true });
  next.scrollIntoView({ block: "nearest" });
}

/** Listen to the keys of a page with the search field *input*; *clear* is called for Esc. */
export function listenToKeys(input, clear) {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape" && (event.target === input || input.value !== "")) {
      clear();
      input.blur();
      return;
    }
    if (event.target === input && (event.key === "Enter" || event.key === "ArrowDown")) {
      event.preventDefault();
      input.blur();
      move(1);
      return;
    }
    if (isTyping(event.target)) return;
    if (event.key === "/") {
      event.preventDefault();
      input.focus();
      input.select();
    } else if (event.key in MOVES) {
      const onRow = event.target.closest?.("[data-row]");
      if (event.key.startsWith("Arrow") && !onRow) return;
      event.preventDefault();
      move(MOVES[event.key]);
    }
  });
}
