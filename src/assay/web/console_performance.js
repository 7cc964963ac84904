/** How long answers take, by method and tool, and how much of it is the guard. */

import { read } from "./console_api.js";
import { changingHistogram } from "./charts.js";
import { streamOf } from "./console_filter.js";
import { screenHead, stateTag, took, withCards } from "./console_parts.js";
import { ConsoleScreen } from "./console_screen.js";
import { amount, breakable, element, table } from "./dom.js";
import { arrange } from "./patch.js";
import { bytes, counted, number } from "./text.js";

const RELOAD = 5000;
const SHOWN = 200;
const GROWTH = 1.09;
/** Buckets of durations grow by this factor. */

const MOST_BUCKETS = 60;

const COLUMNS = [
  ["Method and tool", { class: "wraps wide" }],
  ["Answers", { number: true }],
  ["p50", { number: true, about: "Half of the answers came within this time" }],
  ["p95", { number: true, about: "95 of 100 answers came within this time" }],
  ["p99", { number: true, class: "minor", about: "99 of 100 answers came within this time" }],
  ["Longest", { number: true }],
  ["Server and guard, p95", { class: "wraps" }],
  ["In the guard", { number: true }],
  ["Bytes in · out", { number: true, class: "minor" }],
  ["Largest", { number: true, class: "minor" }],
  ["Errors", { class: "wraps" }],
];

function titleOf(line) {
  return [line.method, line.tool].filter(Boolean).join(" ") || "unknown";
}

/** Two bars: the time of the server and the time of the guard, on the scale of the slowest line. */
function sharesCell(line, slowest) {
  const part = (value) => `${Math.min(100, (100 * (value ?? 0)) / slowest).toFixed(2)}%`;
  const meaning = `server ${took(line.p95)}, guard ${took(line.guardP95)}`;
  return element(
    "span",
    { class: "shares", role: "img", "aria-label": meaning, title: meaning },
    element("span", { class: "share server-share", style: { width: part(line.p95) } }),
    element("span", { class: "share guard-share", style: { width: part(line.guardP95) } }),
  );
}

function errorsCell(line) {
  const all = Object.entries(line.errors).sort((one, other) => other[1] - one[1]);
  if (all.length === 0) return amount(0);
  return element(
    "span",
    { class: "tags" },
    ...all
      .slice(0, 5)
      .map(([name, count]) => stateTag([breakable(name), ` ${number(count)}`], "error")),
  );
}

/** Buckets with both limits, and fewer of them if there are many. */
function bucketsOf(line) {
  const counts = new Map(line.buckets.map(([upper, count]) => [Math.round(Math.log(upper) / Math.log(GROWTH)), count]));
  const places = [...counts.keys()].filter(Number.isFinite);
  const [first, last] = [Math.min(...places), Math.max(...places)];
  const step = Math.max(1, Math.ceil((last - first + 1) / MOST_BUCKETS));
  const buckets = [];
  for (let at = first; at <= last; at += step) {
    let count = 0;
    for (let inside = at; inside < at + step; inside += 1) count += counts.get(inside) ?? 0;
    buckets.push([GROWTH ** (at - 1), GROWTH ** (at + step - 1), count]);
  }
  return buckets;
}

export class PerformanceScreen extends ConsoleScreen {
  constructor(store) {
    super(store);
    this.lines = [];
    this.chosen = null;
    this.figure = element("div", { class: "chart-place panel" });
    this.node = element(
      "section",
      null,
      screenHead("Performance", "Time from a request to its answer. Choose a line to see its distribution."),
      this.figure,
      this.body,
    );
    store.on(
      "rows",
      this.whileShown(RELOAD, () => this.load()),
    );
  }

  async fetch() {
    const { lines } = await read(this.server === null ? "performance" : `performance?server=${this.server}`);
    this.lines = lines;
  }

  keyOf(line) {
    return `${line.server}\n${line.method}\n${line.tool}`;
  }

  choose(key) {
    this.chosen = key;
    this.showFigure();
    for (const each of this.body.querySelectorAll("tr[data-key]"))
      each.querySelector("button")?.setAttribute("aria-pressed", String(each.dataset.key === this.chosen));
  }

  showFigure() {
    const line =
      this.lines.find((each) => this.keyOf(each) === this.chosen) ?? this.lines.find((each) => each.buckets.length > 0);
    this.figure.hidden = line === undefined || line.buckets.length === 0;
    if (this.figure.hidden) return;
    this.chosen = this.keyOf(line);
    const key = `${this.chosen}\n${line.count}`;
    if (key === this.drawn) return;
    this.drawn = key;
    const title = `${titleOf(line)} of ${this.store.serverName(line.server)}, ${counted(line.count, "answer")}`;
    this.chart ??= changingHistogram(took, "answers");
    this.chart.show(title, bucketsOf(line));
    arrange(this.figure, [this.chart.node]);
  }

  cells(line, slowest, several) {
    const server = this.store.serverName(line.server);
    const key = this.keyOf(line);
    const messages = streamOf({ method: line.method, tool: line.tool, server });
    const name = element(
      "button",
      {
        type: "button",
        class: "link",
        "data-row": true,
        "aria-pressed": String(key === this.chosen),
        on: { click: () => this.choose(key) },
      },
      breakable(titleOf(line)),
    );
    return [
      element(
        "span",
        { class: "tool" },
        name,
        several && element("span", { class: "quiet-text" }, breakable(server)),
      ),
      element("a", { class: "count-link", href: messages }, number(line.count)),
      ...[line.p50, line.p95, line.p99].map((each) => took(each === null ? null : Math.min(each, line.max ?? each))),
      took(line.max),
      sharesCell(line, slowest),
      took(line.guardP95),
      `${bytes(line.inBytes)} · ${bytes(line.outBytes)}`,
      bytes(line.largest),
      errorsCell(line),
    ];
  }

  render() {
    if (this.lines.length === 0) {
      this.figure.hidden = true;
      this.fillEmpty("No answers yet.");
      return;
    }
    this.lines = this.steady(this.lines, (each) => this.keyOf(each), (one, other) => other.count - one.count);
    this.showFigure();
    const slowest = Math.max(0.001, ...this.lines.map((each) => each.p95 ?? 0));
    const several = new Set(this.lines.map((each) => each.server)).size > 1;
    const rows = this.lines
      .slice(0, SHOWN)
      .map((each) => ({ cells: this.cells(each, slowest, several), "data-key": this.keyOf(each) }));
    this.fillRows("button", withCards(table("Times by method and tool", COLUMNS, rows)));
  }
}
