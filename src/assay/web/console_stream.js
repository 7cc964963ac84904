/** The stream: every message, a request and its answer in one line, with filters, views, pins and a waterfall. */

import { button, dateAndTime, saveExport, throttled, timeOfDay, took } from "./console_parts.js";
import { FILTER_KEYS, FilteredLines, isOpen, lineVerdict, position, verdictCounts } from "./console_filter.js";
import { go, routeTo } from "./console_router.js";
import { SavedViews } from "./console_views.js";
import { element, fill } from "./dom.js";
import { refill } from "./patch.js";
import { bytes, counted, number, visibleText } from "./text.js";
import { verdictParts, WORST_FIRST } from "./verdict_words.js";
import { VirtualList } from "./virtual_list.js";

const ROW = 28;
const NARROW_ROW = 50;
const NARROW = matchMedia("(max-width: 700px)");

const TYPING_PAUSE = 120;
const FINEST = 2000;
/** Parts of a second that the waterfall still shows in proportion. */

const COLUMNS = [
  ["when", "Time"],
  ["way", "From"],
  ["what", "Method and tool"],
  ["server", "Server"],
  ["ident", "Id"],
  ["track", "Waterfall"],
  ["took", "Took"],
  ["size", "Size"],
  ["who", "Principal"],
  ["outcome", "Verdict"],
];

/** What an exported file is for; a format without a row is shown by its name. */
const FORMATS = {
  recording: "recording, for assay check",
  journal: "journal of assay",
  json: "findings as JSON",
  ndjson: "findings as lines of JSON",
  sarif: "findings as SARIF",
  junit: "findings as JUnit XML",
  gitlab: "findings for GitLab",
  markdown: "findings as Markdown",
  html: "report as HTML",
};

function head() {
  const cells = COLUMNS.map(([name, title]) => element("span", { role: "columnheader", class: `cell-${name}` }, title));
  return element("div", { class: "line line-head", role: "row", "aria-rowindex": "1" }, ...cells);
}

/** Set the text of a cell, if it is another. */
function write(cell, text) {
  const shown = visibleText(text);
  if (cell.textContent !== shown) cell.textContent = shown;
}

/** One row of the list, which is used for many lines as the list is scrolled. */
class Line {
  constructor(screen) {
    this.screen = screen;
    this.cells = Object.fromEntries(
      COLUMNS.map(([name]) => [name, element("span", { role: "gridcell", class: `cell-${name}` })]),
    );
    this.bar = element("span", { class: "fall" });
    this.cells.track.append(this.bar);
    this.node = element("div", { class: "line", role: "row" }, ...Object.values(this.cells));
  }

  show(index) {
    const { screen, cells } = this;
    const { rows } = screen.filtered;
    const seq = screen.lines[index];
    if (seq === undefined) return;
    this.node.dataset.seq = seq;
    if (!rows.has(seq)) {
      this.showGone();
      return;
    }
    const row = rows.row(seq);
    const answer = screen.filtered.answer(seq);
    const answered = answer === 0 ? null : rows.row(answer);
    const verdict = lineVerdict(rows, seq, answer);
    const [mark, meaning, tone] = verdictParts(verdict);
    write(cells.when, timeOfDay(row.time));
    cells.when.title = dateAndTime(row.time);
    write(cells.way, row.party === "client" ? "client →" : "← server");
    cells.way.dataset.party = row.party;
    write(cells.what, [row.method || row.kind, row.tool, notes(row)].filter(Boolean).join(" "));
    cells.what.title = visibleText(titleOf(row, answered));
    write(cells.server, screen.store.serverName(row.server));
    write(cells.ident, row.id === null ? "" : `#${row.id}`);
    write(
      cells.took,
      answered
        ? took(answered.latency)
        : row.latency !== null
          ? took(row.latency)
          : screen.folds && isOpen(rows, rows.slot(seq))
            ? "open"
            : "",
    );
    write(cells.size, answered ? `${bytes(row.in)} · ${bytes(answered.in)}` : bytes(row.in));
    write(cells.who, row.principal || answered?.principal || "");
    write(cells.outcome, `${mark} ${verdict}`);
    cells.outcome.title = meaning;
    this.node.dataset.tone = tone;
    this.node.classList.toggle("pinned", screen.views.isPinned(seq));
    this.drawBar(row, answered);
  }

  /** Show that the message was dropped, while the list is paused. */
  showGone() {
    for (const [name, cell] of Object.entries(this.cells)) {
      cell.removeAttribute("title");
      if (name !== "track") write(cell, name === "what" ? "no longer kept" : "");
    }
    this.node.dataset.tone = "note";
    this.bar.style.setProperty("--length", "0%");
  }

  drawBar(row, answered) {
    const { places } = this.screen;
    const start = places.get(row.time) ?? 0;
    const end = answered ? (places.get(answered.time) ?? start) : start;
    this.bar.style.setProperty("--from", `${start.toFixed(2)}%`);
    this.bar.style.setProperty("--length", `${Math.max(0, end - start).toFixed(2)}%`);
  }
}

function wordOf(verdict) {
  return `verdict:${verdict}`;
}

function notes(row) {
  const texts = [];
  if (row.kind === "missing") texts.push("(no answer)");
  else if (row.of !== row.seq && row.kind !== "request" && row.kind !== "notification" && row.method !== "")
    texts.push(`(${row.kind})`);
  if (row.others > 0) texts.push(`+${row.others}`);
  if (row.repeated > 1) texts.push(`×${number(row.repeated)}`);
  return texts.join(" ");
}

function titleOf(row, answered) {
  const rules = [...new Set([...row.rules, ...(answered?.rules ?? [])])];
  return [row.method || row.kind, row.tool, row.session && `session ${row.session}`, rules.join(", ")]
    .filter(Boolean)
    .join("\n");
}

/** The screen of the stream. It is made once, so that its place and its filter survive a visit of another screen. */
export class StreamScreen {
  constructor(store, page) {
    this.store = store;
    this.page = page;
    this.filter = "";
    this.folds = true;
    this.follows = true;
    this.isPaused = false;
    this.lines = [];
    this.places = new Map();
    this.views = new SavedViews(
      store,
      (text) => this.setFilter(text),
      () => this.list.ask(),
    );
    this.build();
    this.list = new VirtualList({
      label: "Messages",
      head: head(),
      make: () => new Line(this),
      rowHeight: NARROW.matches ? NARROW_ROW : ROW,
      prepare: () => this.measure(),
      left: () => this.left(),
      resized: () => this.follows && !this.isPaused && this.list.toEnd(),
      keyOf: (index) => this.lines[index] ?? null,
      indexOf: (seq) => position(this.lines, seq),
      open: (seq) => go(routeTo("message", seq)),
    });
    NARROW.addEventListener("change", () => this.list.setRowHeight(NARROW.matches ? NARROW_ROW : ROW));
    this.node = element(
      "section",
      { class: "stream", "aria-labelledby": "stream-title" },
      this.bar,
      this.countsLine,
      this.list.node,
      this.emptyNote,
    );
    this.recount = throttled(500, () => this.showCounts());
    this.restart();
    store.on("loaded", () => this.reload());
    store.on("rows", (touched) => this.update(touched));
    store.on("servers", () => this.showServers());
  }

  build() {
    this.input = element("input", {
      type: "search",
      id: "filter",
      class: "filter",
      placeholder: "Filter: tool: method: verdict: rule: server: …",
      "aria-label": "Filter the messages; all words must match",
      "aria-describedby": "filter-count",
      autocomplete: "off",
      spellcheck: "false",
      maxlength: "500",
    });
    let timer = null;
    this.input.addEventListener("input", () => {
      clearTimeout(timer);
      timer = setTimeout(() => this.setFilter(this.input.value), TYPING_PAUSE);
    });
    this.input.addEventListener("keydown", (event) => this.filterKey(event));
    this.followButton = button("Follow", () => this.setFollow(!this.follows), {
      "aria-pressed": "true",
      title: "Show new messages as they come (f)",
    });
    this.pauseButton = button("Pause", () => this.setPause(!this.isPaused), {
      "aria-pressed": "false",
      title: "Keep the list as it is (p)",
    });
    this.foldButton = button("Fold", () => this.setFold(!this.folds), {
      "aria-pressed": "true",
      title: "One line for a request and its answer",
    });
    this.exportButton = element("select", {
      "aria-label": "Export the filtered messages",
      class: "button",
      on: { change: () => this.export() },
    });
    this.bar = element(
      "div",
      { class: "stream-bar" },
      element("h1", { class: "unseen", id: "stream-title", tabindex: "-1" }, "Stream"),
      element(
        "div",
        { class: "filter-box", role: "search" },
        this.input,
        button("Save view", () => this.views.save(this.input.value.trim()), { title: "Keep this filter as a view" }),
      ),
      element("div", { class: "tools" }, this.followButton, this.pauseButton, this.foldButton, this.exportButton),
    );
    this.count = element("span", { id: "filter-count", class: "filter-count" });
    // Screen readers hear what a filter has found, and not every message that comes.
    this.said = element("output", { class: "unseen said", for: "filter", "aria-live": "polite" });
    this.chips = element("span", { class: "chips" });
    this.countsLine = element("div", { class: "counts" }, this.count, this.said, this.chips, this.views.node);
    this.emptyNote = element("div", { class: "stream-empty empty", hidden: true });
  }

  filterKey(event) {
    if (event.key === "Escape") {
      event.stopPropagation();
      if (this.input.value === "") this.list.node.focus();
      this.input.value = "";
      this.setFilter("");
    } else if (event.key === "Enter" || event.key === "ArrowDown") {
      event.preventDefault();
      this.setFilter(this.input.value);
      this.list.node.focus();
    }
  }

  /** The screen is shown. */
  show({ options }) {
    const filter = options.filter ?? "";
    if (filter !== this.filter) this.setFilter(filter);
    this.input.value = this.filter;
    this.list.resize(this.lines.length, false);
    if (this.follows) this.list.toEnd();
    else this.list.restore();
  }

  hide() {
    this.list.hold();
  }

  setFilter(text) {
    const trimmed = text.trim();
    if (this.input.value.trim() !== trimmed) this.input.value = trimmed;
    if (trimmed === this.filter) return;
    this.filter = trimmed;
    const fragment = routeTo("stream", null, { filter: trimmed });
    this.page.last.set("stream", fragment);
    if (location.hash.startsWith("#/stream")) go(fragment, false);
    this.restart();
  }

  setFold(folds) {
    this.folds = folds;
    this.foldButton.setAttribute("aria-pressed", String(folds));
    this.restart();
  }

  /** The page has loaded everything anew. The messages are the same ones, if the console was not restarted. */
  reload() {
    const isSame = this.epoch === this.store.state.epoch;
    if (this.list.node.isConnected) this.list.hold();
    this.restart(isSame ? this.list : {});
  }

  /** Look at all rows anew; the place and the active row are none, or those of *kept*. */
  restart({ held = null, activeKey = null } = {}) {
    this.filtered?.close();
    if (this.isPaused) this.setPause(false);
    this.epoch = this.store.state?.epoch;
    this.list.activeKey = activeKey;
    this.list.held = held;
    this.list.node.scrollTop = 0;
    this.isNew = true;
    this.filtered = new FilteredLines(this.store, this.filter, this.folds, () => this.changed());
    this.filtered.read();
    this.showServers();
    this.showFormats();
    this.views.recount();
  }

  update(touched) {
    this.filtered.update(touched);
    this.views.update(touched);
  }

  changed() {
    if (this.isPaused) {
      this.recount();
      return;
    }
    this.lines = this.filtered.lines;
    this.list.resize(this.lines.length, !this.follows && !this.isNew);
    if (this.follows) this.list.toEnd();
    else if (this.filtered.isDone && this.list.node.isConnected) this.list.restore();
    this.recount();
  }

  /**
   * Find the places of the waterfall, in percent, for the times of the lines that are drawn.
   *
   * Long times are shortened, by their logarithm: otherwise one pause makes all bars beside it a dot.
   */
  measure() {
    const { rows } = this.filtered;
    const [from, to] = this.list.drawn();
    const times = new Set();
    for (const seq of this.lines.slice(from, to)) {
      const answer = this.filtered.answer(seq);
      times.add(rows.time[rows.slot(seq)]);
      if (answer !== 0) times.add(rows.time[rows.slot(answer)]);
    }
    let [before, sum] = [null, 0];
    const steps = [...times]
      .sort((one, other) => one - other)
      .map((time) => {
        sum += before === null ? 0 : Math.log1p((time - before) * FINEST);
        before = time;
        return [time, sum];
      });
    this.places = new Map(steps.map(([time, place]) => [time, (100 * place) / Math.max(sum, 1)]));
  }

  left() {
    if (this.follows && this.list.node.offsetParent !== null) this.setFollow(false, false);
  }

  setFollow(follows, scrolls = true) {
    this.follows = follows;
    this.followButton.setAttribute("aria-pressed", String(follows));
    if (follows && this.isPaused) this.setPause(false);
    if (follows && scrolls) this.list.toEnd();
  }

  setPause(isPaused) {
    this.isPaused = isPaused;
    this.pauseButton.setAttribute("aria-pressed", String(isPaused));
    // The list keeps a copy while it is paused; the filter goes on below it.
    this.lines = isPaused ? [...this.filtered.lines] : this.filtered.lines;
    if (isPaused) this.pausedAt = this.filtered.lines.length;
    else this.changed();
    this.recount();
  }

  showServers() {
    this.node?.classList.toggle("one-server", this.store.servers.length < 2);
    this.list?.ask();
  }

  showFormats() {
    const formats = this.store.state?.formats ?? [];
    this.exportButton.hidden = formats.length === 0;
    fill(
      this.exportButton,
      element("option", { value: "" }, "Export…"),
      ...formats.map((each) => element("option", { value: each }, FORMATS[each] ?? each)),
    );
  }

  export() {
    const format = this.exportButton.value;
    this.exportButton.value = "";
    if (format === "") return;
    const { rows } = this.filtered;
    const chosen =
      this.filter === ""
        ? {}
        : {
            seqs: this.lines
              .flatMap((seq) => [seq, this.filtered.answer(seq)])
              .filter((seq) => seq !== 0 && rows.has(seq)),
          };
    saveExport({ format, ...chosen });
  }

  showCounts() {
    this.showCount();
    if (this.isNew && this.filtered.isDone) {
      this.isNew = false;
      write(this.said, this.count.textContent);
    }
    this.showChips();
    this.showEmpty();
  }

  showCount() {
    const { rows, lines } = this.filtered;
    const noun = this.folds ? "line" : "message";
    const reading = this.filtered.isDone ? "" : ", reading…";
    const waiting = this.isPaused ? `, paused: ${number(Math.max(0, lines.length - this.pausedAt))} new` : "";
    const dropped = this.store.state?.dropped?.rows ?? 0;
    const gone = dropped > 0 ? `, ${number(dropped)} older dropped` : "";
    const total = `${counted(rows.newest === 0 ? 0 : rows.size, "message")}${gone}`;
    write(
      this.count,
      this.filter === ""
        ? `${total}, ${counted(lines.length, noun)}${waiting}${reading}`
        : `${counted(lines.length, noun)} of ${total}${waiting}${reading}`,
    );
    this.node.classList.toggle("no-principal", !rows.hasPrincipal);
  }

  /** Show how many lines each verdict has. The worst come first, so that growing counts do not move them. */
  showChips() {
    const counts = verdictCounts(this.filtered);
    const chip = (verdict) => {
      const [mark, meaning, tone] = verdictParts(verdict);
      return button([`${mark} ${verdict} `, element("b", null, number(counts.get(verdict)))], () => this.toggle(verdict), {
        class: `chip tone-${tone}`,
        "aria-pressed": String(this.filter.includes(wordOf(verdict))),
        title: meaning,
        "data-key": verdict,
      });
    };
    refill(this.chips, ...WORST_FIRST.filter((each) => counts.has(each)).map(chip));
  }

  /** Add the word of a verdict to the filter, or take it away. */
  toggle(verdict) {
    const word = wordOf(verdict);
    const isOn = this.filter.includes(word);
    this.setFilter(isOn ? this.filter.replace(word, "").replace(/\s+/g, " ") : `${this.filter} ${word}`);
  }

  showEmpty() {
    const isEmpty = this.lines.length === 0 && this.filtered.isDone;
    if (this.emptyNote.hidden === !isEmpty) return;
    this.emptyNote.hidden = !isEmpty;
    this.emptyNote.replaceChildren();
    if (!isEmpty) return;
    if (this.filter === "") fill(this.emptyNote, "No messages yet. They appear here as soon as a guard judges one.");
    else
      fill(
        this.emptyNote,
        "No message has all of these words. ",
        button("Clear the filter", () => this.setFilter("")),
        filterHelp(),
      );
  }

  /** The number of the active line, or 0. */
  get activeSeq() {
    return this.lines[this.list.active] ?? 0;
  }

  /** Keys of this screen. */
  get keys() {
    return {
      "/": () => {
        this.input.focus();
        this.input.select();
      },
      f: () => this.setFollow(!this.follows),
      p: () => this.setPause(!this.isPaused),
      m: () => this.activeSeq > 0 && this.views.togglePin(this.activeSeq),
      y: () => this.activeSeq > 0 && this.store.tell("copy", this.activeSeq),
      j: () => this.step(1),
      k: () => this.step(-1),
      Enter: () => this.activeSeq > 0 && go(routeTo("message", this.activeSeq)),
      Escape: () => this.setFilter(""),
    };
  }

  step(by) {
    this.list.node.focus();
    this.list.move(by);
  }

  /** The number of the line before or after that of *seq*; 0 if there is none. */
  neighbour(seq, step) {
    const line = this.store.rows.has(seq) && this.folds ? this.store.rows.lineOf(seq) : seq;
    const at = this.lines.indexOf(line);
    if (at < 0 || this.lines[at + step] === undefined) return 0;
    this.list.active = at + step;
    return this.lines[at + step];
  }
}

/** Return the filter words with their meaning. */
export function filterHelp() {
  return element(
    "dl",
    { class: "words" },
    ...FILTER_KEYS.map(([word, meaning]) => [
      element("dt", null, element("code", null, word)),
      element("dd", null, meaning),
    ]),
  );
}
