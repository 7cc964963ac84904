/**
 * The rows of the stream, in columns.
 *
 * Rows have numbers without gaps, so each is found by its number. The store has as many rows as the console keeps; the
 * oldest make room for new ones. Equal texts are kept once.
 */

const MOST_TEXTS = 50_000;
/** Different texts that are remembered; beyond this the memory of texts begins anew, and only sharing is lost. */

const ANSWERS = new Set(["result", "error", "missing"]);

class Texts {
  constructor() {
    this.known = new Map();
  }

  keep(key, value) {
    const known = this.known.get(key);
    if (known !== undefined) return known;
    if (this.known.size >= MOST_TEXTS) this.known.clear();
    this.known.set(key, value);
    return value;
  }

  text(value) {
    return value === null || value === undefined ? "" : this.keep(value, value);
  }

  list(value) {
    return value.length === 0 ? EMPTY : this.keep(`\n${value.join("\n")}`, value);
  }
}

const EMPTY = [];

const LISTS = ["rules", "at"];
const TEXTS = ["session", "party", "kind", "method", "tool", "verdict", "status", "why", "principal", "revision"];

export class RowStore {
  constructor(capacity) {
    this.capacity = Math.max(1, capacity);
    this.newest = this.missing = 0;
    this.oldest = 1;
    this.texts = new Texts();
    const { capacity: size } = this;
    this.time = new Float64Array(size);
    this.latency = new Float64Array(size);
    this.guard = new Float64Array(size);
    this.server = new Uint32Array(size);
    this.of = new Uint32Array(size);
    this.in = new Float64Array(size);
    this.out = new Float64Array(size);
    this.repeated = new Uint32Array(size);
    /** Of a request: the number of its answer, and of its other messages. */
    this.answer = new Uint32Array(size);
    this.others = new Uint32Array(size);
    this.id = new Array(size);
    for (const name of [...TEXTS, ...LISTS]) this[name] = new Array(size);
    this.hasPrincipal = this.hasTime = false;
  }

  /** The number of messages: a row about an answer that never came is none. */
  get size() {
    return this.newest - this.oldest + 1 - this.missing;
  }

  has(seq) {
    return seq >= this.oldest && seq <= this.newest && seq > 0;
  }

  slot(seq) {
    return seq % this.capacity;
  }

  /** Add rows in order. *columns* names the cells. Returns the numbers of lines that are new or have changed. */
  add(rows, columns) {
    const places = Object.fromEntries(columns.map((name, at) => [name, at]));
    const touched = new Set();
    for (const row of rows) {
      const seq = row[places.seq];
      if (seq <= this.newest) continue;
      if (this.newest === 0 || seq !== this.newest + 1) this.oldest = seq;
      this.newest = seq;
      this.oldest = Math.max(this.oldest, seq - this.capacity + 1);
      this.put(seq, row, places);
      touched.add(this.lineOf(seq));
    }
    return touched;
  }

  put(seq, row, places) {
    const slot = this.slot(seq);
    const cell = (name) => row[places[name]];
    this.time[slot] = cell("time") ?? 0;
    this.latency[slot] = cell("latency") ?? NaN;
    this.guard[slot] = cell("guard") ?? NaN;
    this.server[slot] = cell("server");
    this.in[slot] = cell("in") ?? 0;
    this.out[slot] = cell("out") ?? 0;
    this.repeated[slot] = cell("repeated") ?? 1;
    this.id[slot] = cell("id") ?? null;
    this.missing += (cell("kind") === "missing") - (this.kind[slot] === "missing");
    for (const name of TEXTS) this[name][slot] = this.texts.text(cell(name));
    if (this.principal[slot] !== "") this.hasPrincipal = true;
    if (this.time[slot] > 0) this.hasTime = true;
    for (const name of LISTS) this[name][slot] = this.texts.list(cell(name) ?? EMPTY);
    this.answer[slot] = 0;
    this.others[slot] = 0;
    const of = cell("of") ?? 0;
    this.of[slot] = of;
    if (of !== 0 && of !== seq && this.has(of)) {
      if (ANSWERS.has(this.kind[slot])) this.answer[this.slot(of)] = seq;
      else this.others[this.slot(of)] += 1;
    }
  }

  /** The number of the line that a message is part of: its request, if that is here, or itself. */
  lineOf(seq) {
    const of = this.of[this.slot(seq)];
    return of !== 0 && this.has(of) ? of : seq;
  }

  /** Whether a message is a line of its own. */
  isLine(seq) {
    return this.lineOf(seq) === seq;
  }

  /** The numbers of the messages of a line that decide about it: the request and its answer. */
  answerOf(seq) {
    const answer = this.answer[this.slot(seq)];
    return answer !== 0 && this.has(answer) ? answer : 0;
  }

  /** Return a row as an object. */
  row(seq) {
    const slot = this.slot(seq);
    const texts = Object.fromEntries([...TEXTS, ...LISTS].map((name) => [name, this[name][slot]]));
    return {
      seq,
      ...texts,
      time: this.time[slot],
      latency: known(this.latency[slot]),
      guard: known(this.guard[slot]),
      server: this.server[slot],
      of: this.of[slot],
      in: this.in[slot],
      out: this.out[slot],
      id: this.id[slot],
      repeated: this.repeated[slot],
      answer: this.answerOf(seq),
      others: this.others[slot],
    };
  }
}

function known(value) {
  return Number.isNaN(value) ? null : value;
}
