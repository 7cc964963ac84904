/** How long answers take: the tools first, then other methods, then what only opens and lists. */

import { read } from "./api.js";
import { Histogram } from "./chart.js";
import { breakable, NothingYet, ScreenHead, Table, Tag } from "./parts.js";
import { attempted, serverName, servers, stream, streamOf, touched } from "./store.js";
import { bytes, counted, number, took } from "./text.js";
import { html, signal, useEffect, useSteady } from "./view.js";

const RELOAD = 5000;
const SHOWN = 200;

const lines = signal(null);
const chosen = signal(null);

async function load() {
  lines.value = (await read("performance")).lines;
}

function keyOf(line) {
  return `${line.server}\n${line.method}\n${line.tool}`;
}

function titleOf(line) {
  return line.tool || line.method || "others";
}

const START = /^(initialize|ping|server\/discover|logging\/setLevel|.*\/list)$/;

/** The tables of the screen, in order, with a test of the lines that each has. */
const PARTS = [
  ["Tools", (line) => line.tool !== ""],
  ["Other methods", (line) => line.tool === "" && !START.test(line.method)],
  ["Start-up and lists", (line) => line.tool === "" && START.test(line.method)],
];

/** Two bars: the time of the server and the time of the guard, on the scale of the slowest line. */
function Shares({ line, slowest }) {
  const bar = (value, kind) => value !== null && html`<span class="share ${kind}-share"
    style=${{ width: `${Math.min(100, (100 * value) / slowest).toFixed(2)}%` }} />`;
  const meaning = `server ${took(line.p95)}, guard ${took(line.guardP95)}`;
  return html`<span class="shares" role="img" aria-label=${meaning} title=${meaning}>
    ${bar(line.p95, "server")}${bar(line.guardP95, "guard")}
  </span>`;
}

function Errors({ line }) {
  const all = Object.entries(line.errors).sort((one, other) => other[1] - one[1]);
  if (all.length === 0) return html`<span class="zero">0</span>`;
  return html`<span class="tags">${all.slice(0, 5).map(([name, count]) => html`<${Tag} key=${name} tone="failed">${breakable(name)} ${number(count)}<//>`)}</span>`;
}

const isTimed = (line) => line.p95 !== null;

/** Each column: its title, its options, and whether a line has something to say in it. */
const COLUMNS = [
  ["Name", { class: "wide" }],
  ["Server", { class: "breaks" }, () => servers.value.length > 1],
  ["Answers", { number: true }],
  ["p50", { number: true, about: "Half of the answers came within this time" }, isTimed],
  ["p95", { number: true, about: "95 of 100 answers came within this time" }, isTimed],
  ["Longest", { number: true }, isTimed],
  ["Server and guard, p95", { class: "roomy" }, (line) => line.guardP95 !== null],
  ["In the guard", { number: true, about: "95 of 100 requests were in the guard for less than this" }, (line) => line.guardP95 !== null],
  ["Bytes in · out", { number: true }],
  ["Errors", { class: "wraps", about: "Errors, and answers that a rule blocks or would block under enforce, by code" }],
];

function Name({ line }) {
  const key = keyOf(line);
  return html`<button type="button" class="link name" data-row aria-pressed=${String(key === chosen.value)}
    onClick=${() => (chosen.value = key)}>${breakable(titleOf(line))}</button>`;
}

function cellsOf(line, slowest) {
  const messages = streamOf({ method: line.method, tool: line.tool, server: serverName(line.server) });
  const most = (value) => took(value === null ? null : Math.min(value, line.max ?? value));
  return [
    html`<${Name} line=${line} />`,
    breakable(serverName(line.server)),
    html`<a class="count-link" href=${messages}>${number(line.count)}</a>`,
    most(line.p50),
    most(line.p95),
    took(line.max),
    html`<${Shares} line=${line} slowest=${slowest} />`,
    took(line.guardP95),
    `${bytes(line.inBytes)} · ${bytes(line.outBytes)}`,
    html`<${Errors} line=${line} />`,
  ];
}

function Part({ title, all }) {
  const slow = (one, other) => (other.p95 ?? -1) - (one.p95 ?? -1) || other.count - one.count;
  const [sorted, place] = useSteady(all, keyOf, slow);
  const slowest = Math.max(0.001, ...all.map((each) => each.p95 ?? 0));
  const kept = COLUMNS.map((_, at) => at).filter((at) => COLUMNS[at][2] === undefined || all.some(COLUMNS[at][2]));
  const rows = sorted.slice(0, SHOWN).map((each) => {
    const cells = cellsOf(each, slowest);
    return { key: keyOf(each), cells: kept.map((at) => cells[at]) };
  });
  return html`<section class="listing" aria-label=${title}><div class="card-head"><h2>${title}</h2></div>
    <${Table} caption=${title} columns=${kept.map((at) => COLUMNS[at])} rows=${rows} place=${place} /></section>`;
}

/** So many answers have a distribution to look at; fewer are drawn only when their name is chosen. */
const WORTH_DRAWING = 10;

function Distribution({ all }) {
  const answered = all.filter((each) => each.buckets.length > 0);
  const many = answered.filter((each) => each.count >= WORTH_DRAWING);
  const line = answered.find((each) => keyOf(each) === chosen.value)
    ?? PARTS.flatMap(([, test]) => many.filter(test).toSorted((one, other) => other.p95 - one.p95))[0];
  if (line === undefined) return null;
  const title = `${titleOf(line)} of ${serverName(line.server)}, ${counted(line.count, "answer")}`;
  return html`<div class="panel chart-place"><${Histogram} title=${title} buckets=${line.buckets} format=${took} noun="answers" /></div>`;
}

/** The screen. */
export function PerformanceScreen() {
  const { loads } = stream.value;
  useEffect(() => {
    attempted(load);
    let isStale = false;
    const stop = touched.subscribe(() => (isStale = true));
    const timer = setInterval(() => {
      if (isStale) attempted(load);
      isStale = false;
    }, RELOAD);
    return () => {
      stop();
      clearInterval(timer);
    };
  }, [loads]);
  const all = lines.value ?? [];
  const parts = PARTS.map(([title, test]) => [title, all.filter(test)]).filter(([, found]) => found.length > 0);
  return html`<section>
    <${ScreenHead} title="Performance" about="The time from a request to its answer, the slowest first. Choose a name to see its distribution." />
    ${lines.value === null
      ? html`<p class="quiet-text" role="status">Reading the figures…</p>`
      : all.length === 0
        ? html`<${NothingYet}>No answers yet.<//>`
        : html`${!all.some(isTimed) && html`<p class="lead">The recording has no times, so there are no response times.</p>`}
            <${Distribution} all=${all} />${parts.map(([title, found]) => html`<${Part} key=${title} title=${title} all=${found} />`)}`}
  </section>`;
}
