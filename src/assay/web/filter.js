/**
 * Filter words over the rows of the store: `tool:search -verdict:ok "two words"`. All words must match.
 *
 * A line of the stream is a request with its answer. It matches if one of the two has all words, and none of them has a
 * word with a minus; it is ok only if both are. Rows are looked at in short steps, so that typing and scrolling never
 * wait.
 */

import { filterWord, worstOf } from "./verdict_words.js";

const STEP = 8;
/** Milliseconds of one step: half of a frame. */

const MOST_KNOWN = 5000;
/** Different texts whose answer a word remembers. */

const TEXT_KEYS = ["tool", "method", "session", "kind", "principal", "why"];
const KEYS = ["tool", "method", "session", "kind", "principal", "server", "dir", "id", "at", "rule", "verdict", "status"];

/** The filter words that the stream knows, for the help. */
export const FILTER_KEYS = [
  ["tool:", "the name of the tool"],
  ["method:", "the method, also of answers"],
  ["id:", "the JSON-RPC id"],
  ["dir:", "the sender: client or server"],
  ["status:", "ok, error, or open for a request without an answer"],
  ["rule:", "a rule, or the beginning of its name: rule:contract, rule:input"],
  ["verdict:", "ok, reported, repaired, blocked or failed; blocked also chooses what enforce mode would block"],
  ["server:", "the name of the server"],
  ["session:", "the session"],
  ["principal:", "the authenticated client"],
  ["at:", "the place of a finding"],
  ["kind:", "request, notification, result, error, missing, …"],
];

/** Return the words of a typed text: `{key, value, isNot}`. A word in double quotes may have spaces. */
export function parseFilter(text) {
  const words = [];
  for (const [, minus, key, quoted, bare] of text
    .toLowerCase()
    .matchAll(/(-)?(?:([a-z]+):)?(?:"([^"]*)"?|([^\s"]+))/g)) {
    const value = quoted ?? bare ?? "";
    if (value === "") continue;
    const isKey = KEYS.includes(key);
    words.push({ key: isKey ? key : "", value: key && !isKey ? `${key}:${value}` : value, isNot: minus === "-" });
  }
  return words;
}

/** Return *value* as the value of a filter word. */
function quoted(value) {
  const text = String(value).replaceAll('"', "");
  return /\s/.test(text) || text === "" ? `"${text}"` : text;
}

/** Return the filter for rows that have these values; *values* are by filter word, and empty ones are left out. */
export function filterOf(values) {
  const given = Object.entries(values).filter(([, value]) => value);
  return given.map(([word, value]) => `${word}:${quoted(value)}`).join(" ");
}

/** Return *test* of texts, which remembers its answers: most rows have the same few texts. */
function remembered(test) {
  const known = new Map();
  return (text) => {
    let answer = known.get(text);
    if (answer === undefined) {
      answer = test(text.toLowerCase());
      if (known.size >= MOST_KNOWN) known.clear();
      known.set(text, answer);
    }
    return answer;
  };
}

function names(rule, value) {
  return rule.startsWith(value) || rule.slice(rule.indexOf("/") + 1).startsWith(value);
}

/** Return tests of a row by key: each gets the place of the row in the columns. */
function testsFor(value, rows, nameOf) {
  const has = remembered((text) => text.includes(value));
  const isRule = remembered((text) => names(text, value));
  const tests = Object.fromEntries(TEXT_KEYS.map((key) => [key, (slot) => has(rows[key][slot])]));
  tests.dir = (slot) => has(rows.party[slot]);
  tests.server = (slot) => has(nameOf(rows.server[slot]));
  tests.id = (slot) => rows.id[slot] !== null && String(rows.id[slot]).toLowerCase().includes(value);
  tests.at = (slot) => rows.at[slot].some(has);
  tests.rule = (slot) => rows.rules[slot].some(isRule);
  tests.verdict = (slot) => filterWord(rows.verdict[slot]) === value;
  tests.status = (slot) => statusOf(rows, slot).startsWith(value);
  return tests;
}

/** Whether the request at *slot* still waits for its answer. */
export function isOpen(rows, slot) {
  return rows.status[slot] === "open" && rows.answer[slot] === 0;
}

function statusOf(rows, slot) {
  const status = rows.status[slot];
  return status !== "open" || isOpen(rows, slot) ? status : "";
}

const ANYWHERE = ["tool", "method", "server", "rule", "at", "why", "session", "id", "dir", "kind", "principal"];

function wordTest(word, rows, nameOf) {
  const tests = testsFor(word.value, rows, nameOf);
  if (word.key !== "") return tests[word.key];
  const all = ANYWHERE.map((key) => tests[key]);
  return (slot) => all.some((test) => test(slot));
}

/** Return a test of lines for the words of *text*; null if there are none. */
function lineTest(text, rows, nameOf) {
  const words = parseFilter(text);
  if (words.length === 0) return null;
  const [ok, others] = [words.filter(isOk), words.filter((each) => !isOk(each))];
  const wanted = others.filter((each) => !each.isNot).map((each) => wordTest(each, rows, nameOf));
  const unwanted = others.filter((each) => each.isNot).map((each) => wordTest(each, rows, nameOf));
  const isRight = (seq, answer) => ok.every((each) => (lineVerdict(rows, seq, answer) === "ok") !== each.isNot);
  const fits = (seq) => wanted.every((test) => test(rows.slot(seq)));
  const isOut = (seq) => unwanted.some((test) => test(rows.slot(seq)));
  return (seq, answer) =>
    isRight(seq, answer) &&
    (fits(seq) || (answer !== 0 && fits(answer))) &&
    !isOut(seq) &&
    (answer === 0 || !isOut(answer));
}

function isOk(word) {
  return word.key === "verdict" && word.value === "ok";
}

/** Return the word to show for a line: the worst of its request and its answer. */
export function lineVerdict(rows, seq, answer) {
  const one = rows.verdict[rows.slot(seq)];
  return answer === 0 ? one : worstOf([one, rows.verdict[rows.slot(answer)]]);
}

const HOUSEKEEPING = /^(initialize|ping|server\/discover|logging\/setLevel|notifications\/.*|.*\/list|.*\/(un)?subscribe)$/;

/** Whether a line is a good one that only opens, lists or keeps a session. */
function isHousekeeping(rows, seq, answer) {
  return HOUSEKEEPING.test(rows.method[rows.slot(seq)]) && lineVerdict(rows, seq, answer) === "ok";
}

/** The position of *seq* in the sorted array *lines*, or where it belongs. */
export function position(lines, seq) {
  let [low, high] = [0, lines.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (lines[middle] < seq) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The lines that match a filter, kept up to date as rows come. */
export class FilteredLines {
  /**
   * *folds*: whether a request and its answer are one line; *all*: whether lines of housekeeping are wanted; *nameOf*
   * returns the name of a server. *changed* is called when there may be other lines. Nothing happens before `read`.
   */
  constructor(rows, text, { folds = true, all = true, nameOf }, changed) {
    this.rows = rows;
    this.test = lineTest(text, rows, nameOf);
    this.folds = folds;
    this.all = all;
    this.changed = changed;
    this.lines = [];
    this.next = this.rows.oldest;
    this.isClosed = false;
    this.isReading = false;
  }

  /** Whether all rows have been looked at. */
  get isDone() {
    return this.next > this.rows.newest;
  }

  answer(seq) {
    return this.folds ? this.rows.answerOf(seq) : 0;
  }

  wants(seq) {
    if (this.folds && !this.rows.isLine(seq)) return false;
    if (!this.all && isHousekeeping(this.rows, seq, this.rows.answerOf(seq))) return false;
    return this.test === null || this.test(seq, this.answer(seq));
  }

  /** Look at rows until the step is over; then go on after the browser has drawn. */
  read() {
    if (this.isClosed) return;
    const end = performance.now() + STEP;
    while (!this.isDone) {
      const seq = this.next;
      this.next += 1;
      if (this.rows.has(seq) && this.wants(seq)) this.lines.push(seq);
      if ((seq & 255) === 0 && performance.now() > end) break;
    }
    this.isReading = !this.isDone;
    if (this.isReading) setTimeout(() => this.read(), 0);
    this.dropOld();
    this.changed();
  }

  /** Rows were added: *touched* are new lines, and lines that have a new answer. */
  update(touched) {
    if (this.isClosed) return;
    for (const seq of touched) {
      if (seq >= this.next) continue;
      const at = position(this.lines, seq);
      const isIn = this.lines[at] === seq;
      if (isIn !== this.wants(seq)) this.lines.splice(at, isIn ? 1 : 0, ...(isIn ? [] : [seq]));
    }
    if (!this.isReading) this.read();
  }

  dropOld() {
    const first = position(this.lines, this.rows.oldest);
    if (first > 0) this.lines.splice(0, first);
  }

  close() {
    this.isClosed = true;
  }
}

/** Return how many lines each filter word of a verdict would choose, and how many of them only would be blocked. */
export function verdictCounts(filtered) {
  const counts = new Map();
  const { rows } = filtered;
  const count = (word) => counts.set(word, (counts.get(word) ?? 0) + 1);
  for (const seq of filtered.lines) {
    const answer = filtered.answer(seq);
    const seqs = answer === 0 ? [seq] : [seq, answer];
    const words = new Set(seqs.map((each) => filterWord(rows.verdict[rows.slot(each)])));
    // A line is ok only if both of its messages are.
    if (words.size > 1) words.delete("ok");
    if (words.has("blocked") && seqs.every((each) => rows.verdict[rows.slot(each)] !== "blocked")) count("would block");
    words.forEach(count);
  }
  return counts;
}
