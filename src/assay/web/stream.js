/** The stream: every message in the order of time, a request and its answer in one line, and one message beside it. */

import { REPORT } from "./api.js";
import { FILTER_KEYS, FilteredLines, isOpen, lineVerdict, position, verdictCounts } from "./filter.js";
import { ListPlace, VirtualList } from "./list.js";
import { copyMessage, MessagePanel } from "./message.js";
import { Button, NothingYet, prose, saveExport, toast } from "./parts.js";
import { dropped, go, route, routeTo, serverName, servers, state, stream, touched } from "./store.js";
import { bytes, counted, dateAndTime, dayOf, number, timeOfDay, took } from "./text.js";
import { filterWord, verdictParts, WORST_FIRST } from "./verdict_words.js";
import { batch, effect, html, signal, throttled, untracked, useEffect, useLayoutEffect, useRef } from "./view.js";

const ROW = 28;
const NARROW_ROW = 50;
const NARROW = matchMedia("(max-width: 700px)");
const TYPING_PAUSE = 120;

const COLUMNS = [
  ["when", "Time"],
  ["way", "From"],
  ["what", "Method and tool"],
  ["why", "Reason"],
  ["server", "Server"],
  ["ident", "Id"],
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

// ── what survives a visit of another screen ──────────────────────────────────────────────────────────────────────────

const filter = signal("");
const all = signal(false);
const folds = signal(true);
const follows = signal(REPORT === null);
const paused = signal(null);
/** The lines that a paused list keeps; null while it is not paused. */
const active = signal(null);
const narrow = signal(NARROW.matches);
const drawn = signal(0);
/** Counts the changes of the lines. */
const wantsFilter = signal(false);
/** Whether the filter is to have the focus as soon as it is there. */
const pins = signal(remembered("assay-console-pins", (each) => typeof each?.seq === "number"));
const views = signal(remembered("assay-console-views", (each) => typeof each === "string"));
const place = new ListPlace();
const list = { current: null };
let filtered = null;

NARROW.addEventListener("change", () => (narrow.value = NARROW.matches));

function remembered(key, isRight) {
  try {
    const value = JSON.parse(localStorage.getItem(key) ?? "[]");
    return Array.isArray(value) ? value.filter(isRight).slice(-50) : [];
  } catch {
    return [];
  }
}

function remember(key, value) {
  try {
    localStorage.setItem(key, JSON.stringify(value));
  } catch {
    // Without storage, views and pins last as long as the page.
  }
}

function restart() {
  filtered?.close();
  place.top = null;
  paused.value = null;
  const changed = () => (drawn.value = drawn.peek() + 1);
  filtered = new FilteredLines(stream.value.rows, filter.value, { folds: folds.value, all: all.value, nameOf: serverName }, changed);
  filtered.read();
}

let epoch = null;
let before = "";
effect(() => {
  const now = JSON.stringify([stream.value.loads, filter.value, all.value, folds.value]);
  if (now === before) return;
  before = now;
  untracked(() => {
    const held = state.value?.epoch === epoch ? place.top : null;
    if (held === null) active.value = null;
    epoch = state.value?.epoch;
    restart();
    place.top = held;
  });
});
effect(() => {
  const lines = touched.value;
  untracked(() => filtered.update(lines));
});

function lines() {
  return paused.value ?? filtered.lines;
}

/** Show only what has all words of *text*. */
function setFilter(text) {
  filter.value = text.trim();
  showAddress(route.value.options.message);
}

/** Have the address name the filter and the message. */
function showAddress(message, isNew = false) {
  const options = { filter: filter.value, all: all.value ? 1 : null, message };
  go(routeTo("stream", options), isNew);
}

/** The address of the stream as it was left. */
export function streamAddress() {
  return routeTo("stream", { filter: filter.value, all: all.value ? 1 : null });
}

/** Take the words of an address. */
export function takeStream(options) {
  batch(() => {
    filter.value = (options.filter ?? "").trim();
    all.value = options.all === "1";
    if (!options.message) return;
    active.value = lineOf(Number(options.message));
    follows.value = false;
  });
}

function lineOf(seq) {
  const { rows } = stream.value;
  return rows.has(seq) && folds.value ? rows.lineOf(seq) : seq;
}

function open(seq) {
  batch(() => {
    follows.value = false;
    list.current?.hold();
    active.value = seq;
  });
  showAddress(faultyOf(seq), !route.value.options.message);
}

/** The message of a line to open, and to name the reason of: the one with the finding, else the worse of the two. */
function faultyOf(seq) {
  const { rows } = stream.value;
  const answer = folds.value ? rows.answerOf(seq) : 0;
  if (answer === 0) return seq;
  const [one, other] = [seq, answer].map((each) => rows.slot(each));
  const [has, answerHas] = [one, other].map((each) => rows.rules[each].length > 0);
  if (has !== answerHas) return has ? seq : answer;
  return WORST_FIRST.indexOf(rows.verdict[other]) < WORST_FIRST.indexOf(rows.verdict[one]) ? answer : seq;
}

function closePanel() {
  showAddress(null);
  list.current?.node?.focus();
}

function step(by) {
  const isPanel = Boolean(route.value.options.message);
  list.current?.move(by);
  if (isPanel && active.value !== null) showAddress(faultyOf(active.value));
  else list.current?.node?.focus();
}

function setPause(isPaused) {
  paused.value = isPaused ? [...filtered.lines] : null;
}

function togglePin(seq) {
  const own = { seq, epoch };
  const others = pins.value.filter((each) => each.seq !== seq || each.epoch !== epoch);
  pins.value = others.length < pins.value.length ? others : [...others, own];
  remember("assay-console-pins", pins.value);
}

function saveView() {
  const text = filter.value;
  if (text === "" || views.value.includes(text)) {
    toast(text === "" ? "Type a filter first: a view is a filter." : "This view is already saved.");
    return;
  }
  setViews([...views.value, text].slice(-12));
  toast(`Saved the view ${text}.`);
}

function setViews(texts) {
  views.value = texts;
  remember("assay-console-views", texts);
}

/** The keys of the stream. */
export function streamKeys() {
  const isPanel = Boolean(route.value.options.message);
  return {
    "/": () => (wantsFilter.value = true),
    f: () => (follows.value = !follows.value),
    p: () => setPause(paused.value === null),
    a: () => (all.value = !all.value),
    m: () => active.value !== null && togglePin(active.value),
    y: () => active.value !== null && copyMessage(faultyOf(active.value)),
    j: () => step(1),
    k: () => step(-1),
    Enter: () => active.value !== null && open(active.value),
    Escape: () => (isPanel ? closePanel() : setFilter("")),
  };
}

// ── one line ─────────────────────────────────────────────────────────────────────────────────────────────────────────

function notes(row) {
  const texts = [];
  if (row.kind === "missing") texts.push("(no answer)");
  else if (row.of !== row.seq && row.kind !== "request" && row.kind !== "notification" && row.method !== "")
    texts.push(`(${row.kind})`);
  if (row.others > 0) texts.push(`+${row.others}`);
  if (row.repeated > 1) texts.push(`×${number(row.repeated)}`);
  return texts.join(" ");
}

function Cell({ name, children, ...rest }) {
  return html`<span role="gridcell" class="cell-${name}" ...${rest}>${children}</span>`;
}

/** The time of a line: with the day, if it is another one than today's. */
function When({ time }) {
  if (time === 0) return html`<${Cell} name="when"><//>`;
  const day = dayOf(time);
  const isFine = !narrow.value && day === dayOf(Date.now() / 1000);
  const text = narrow.value || isFine ? timeOfDay(time, isFine) : `${day.slice(5)} ${timeOfDay(time, false)}`;
  return html`<${Cell} name="when" title=${dateAndTime(time, true)}>${text}<//>`;
}

function Line({ index, isActive }) {
  const { rows } = stream.value;
  const seq = lines()[index];
  const attributes = { role: "row", id: `row-${seq}`, "aria-rowindex": index + 2, "aria-selected": String(isActive), "data-seq": seq };
  if (seq === undefined || !rows.has(seq))
    return html`<div class="line tone-note" ...${attributes}><${Cell} name="what">no longer kept<//></div>`;
  const row = rows.row(seq);
  const answer = folds.value ? rows.answerOf(seq) : 0;
  const answered = answer === 0 ? null : rows.row(answer);
  const verdict = lineVerdict(rows, seq, answer);
  const [mark, meaning, tone] = verdictParts(verdict);
  const why = rows.why[rows.slot(faultyOf(seq))];
  const isPinned = pins.value.some((each) => each.seq === seq && each.epoch === epoch);
  const latency = answered?.latency ?? row.latency;
  const isWaiting = latency === null && folds.value && isOpen(rows, rows.slot(seq));
  return html`<div class="line tone-${tone}${isPinned ? " pinned" : ""}" data-tone=${tone} ...${attributes}>
    <${When} time=${row.time} />
    <${Cell} name="way" data-party=${row.party}>${row.party === "client" ? "client →" : "← server"}<//>
    <${Cell} name="what"><span class="method">${row.method || row.kind}</span>${
      row.tool && html` <span class="tool">${row.tool}</span>`}${` ${notes(row)}`}<//>
    <${Cell} name="why" title=${why || null}>${why && prose(why)}<//>
    <${Cell} name="server">${serverName(row.server)}<//>
    <${Cell} name="ident">${row.id === null ? "" : `#${row.id}`}<//>
    <${Cell} name="took">${latency !== null ? took(latency) : isWaiting ? "open" : ""}<//>
    <${Cell} name="size">${answered ? `${bytes(row.in)} · ${bytes(answered.in)}` : bytes(row.in)}<//>
    <${Cell} name="who">${row.principal || answered?.principal}<//>
    <${Cell} name="outcome" title=${meaning}>${mark} ${verdict}<//>
  </div>`;
}

// ── the bar above ────────────────────────────────────────────────────────────────────────────────────────────────────

let typed = null;

function typeFilter(event) {
  clearTimeout(typed);
  const { value } = event.target;
  typed = setTimeout(() => setFilter(value), TYPING_PAUSE);
}

function filterKey(event) {
  if (event.key === "Escape") {
    event.stopPropagation();
    if (event.target.value === "") list.current?.node?.focus();
    event.target.value = "";
    clearTimeout(typed);
    setFilter("");
  } else if (event.key === "Enter" || event.key === "ArrowDown") {
    event.preventDefault();
    clearTimeout(typed);
    setFilter(event.target.value);
    list.current?.node?.focus();
  }
}

function exportLines(format) {
  const { rows } = stream.value;
  const isAll = filter.value === "" && all.value;
  const seqs = lines().flatMap((seq) => (folds.value ? [seq, rows.answerOf(seq)] : [seq]));
  saveExport(isAll ? { format } : { format, seqs: seqs.filter((seq) => seq !== 0 && rows.has(seq)) });
}

function Exports() {
  const { formats } = state.value;
  if (formats.length === 0) return null;
  const chosen = (event) => {
    const format = event.target.value;
    event.target.value = "";
    if (format !== "") exportLines(format);
  };
  return html`<select class="button" aria-label="Export the filtered messages" onChange=${chosen}>
    <option value="">Export…</option>
    ${formats.map((each) => html`<option key=${each} value=${each}>${FORMATS[each] ?? each}</option>`)}
  </select>`;
}

function Toggle({ label, title, on, set }) {
  return html`<${Button} aria-pressed=${String(on)} title=${title} onClick=${() => set(!on)}>${label}<//>`;
}

/** Go to the filter, from any screen. */
export function toFilter() {
  go(streamAddress());
  wantsFilter.value = true;
}

function Bar() {
  const typing = useRef(null);
  useLayoutEffect(() => {
    if (!wantsFilter.value) return;
    wantsFilter.value = false;
    typing.current.select();
  }, [wantsFilter.value]);
  useLayoutEffect(() => {
    // A space at the end, before the next word is typed, is part of what is typed and not of the filter.
    if (typing.current.value.trim() !== filter.value) typing.current.value = filter.value;
  }, [filter.value]);
  return html`<div class="stream-bar">
    <h1 class="unseen" tabindex="-1" id="stream-title">Stream</h1>
    <div class="filter-box" role="search">
      <input type="search" id="filter" class="filter" placeholder="Filter: tool: verdict: rule: server: …"
        aria-label="Filter the messages; all words must match" aria-describedby="filter-count" autocomplete="off"
        spellcheck="false" maxlength="500" ref=${typing} onInput=${typeFilter} onKeyDown=${filterKey} />
      <${Button} title="Keep this filter as a view" onClick=${saveView}>Save view<//>
    </div>
    <div class="tools">
      <${Toggle} label=${narrow.value ? "All" : "All messages"} title="Also handshakes, lists and pings without findings (a)" on=${all.value}
        set=${(on) => { all.value = on; showAddress(route.value.options.message); }} />
      <${Toggle} label="Fold" title="One line for a request and its answer" on=${folds.value} set=${(on) => (folds.value = on)} />
      ${REPORT === null && html`
        <${Toggle} label="Follow" title="Show new messages as they come (f)" on=${follows.value}
          set=${(on) => { if (on) setPause(false); follows.value = on; }} />
        <${Toggle} label="Pause" title="Keep the list as it is (p)" on=${paused.value !== null} set=${setPause} />
        <${Exports} />`}
    </div>
  </div>`;
}

const counts = signal({ text: "", said: "", verdicts: new Map(), views: [], isDone: false });

const recount = throttled(300, () => {
  const { rows } = stream.value;
  const isDone = filtered.isDone;
  const noun = folds.value ? "line" : "message";
  const shown = counted(filtered.lines.length, noun);
  const gone = dropped.value.rows > 0 ? `, ${number(dropped.value.rows)} older dropped` : "";
  const waiting = paused.value === null ? "" : `, paused: ${number(Math.max(0, filtered.lines.length - paused.value.length))} new`;
  const text = `${shown} of ${counted(rows.size, "message")}${gone}${waiting}${isDone ? "" : ", reading…"}`;
  const key = before;
  const last = counts.peek();
  counts.value = {
    text,
    // Screen readers hear what a filter has found, and not every message that comes.
    said: isDone && last.key !== key ? text : last.said,
    key: isDone ? key : last.key,
    verdicts: verdictCounts(filtered),
    isDone,
  };
});
effect(() => {
  void [drawn.value, touched.value, dropped.value, paused.value];
  recount();
});

/** Add the word of a verdict to the filter, or take it away. */
function toggleWord(verdict) {
  const word = `verdict:${verdict}`;
  const isOn = filter.value.includes(word);
  setFilter(isOn ? filter.value.replace(word, "").replace(/\s+/g, " ") : `${filter.value} ${word}`);
}

function Chip({ label, count, tone, ...rest }) {
  return html`<button type="button" class="chip${tone ? ` tone-${tone}` : ""}" ...${rest}>${label} <b>${number(count)}</b></button>`;
}

const PIN = html`<svg class="pin" viewBox="0 0 16 16" aria-hidden="true"><path d="M6 1h4l-.6 5L12 9v1H8.6L8 15l-.6-5H4V9l2.6-3z" /></svg>`;

function Counts() {
  const { text, said, verdicts } = counts.value;
  const onlyWould = verdicts.get("would block") === verdicts.get("blocked");
  const chips = WORST_FIRST.filter((each) => verdicts.has(each) && filterWord(each) === each).map((each) => {
    const label = each === "blocked" && verdicts.has("would block") ? (onlyWould ? "would block" : "blocked or would block") : each;
    const [mark, meaning, tone] = verdictParts(onlyWould && each === "blocked" ? "would block" : each);
    const on = String(filter.value.includes(`verdict:${each}`));
    return html`<${Chip} key=${each} label="${mark} ${label}" count=${verdicts.get(each)} tone=${tone} title=${meaning}
      aria-pressed=${on} onClick=${() => toggleWord(each)} />`;
  });
  const own = pins.value.filter((each) => each.epoch === epoch && stream.value.rows.has(each.seq));
  return html`<div class="counts">
    <span id="filter-count" class="filter-count">${text}</span>
    <output class="unseen said" for="filter" aria-live="polite">${said}</output>
    <span class="chips">${chips}</span>
    <span class="chips views">
      ${views.value.map((each) => html`<span class="view" key=${each}>
        <button type="button" class="chip" title="Use this view" onClick=${() => setFilter(each)}>${each}</button>
        <button type="button" class="chip remove" aria-label="Remove the view ${each}"
          onClick=${() => setViews(views.value.filter((one) => one !== each))}>×</button>
      </span>`)}
      ${own.map(({ seq }) => html`<button type="button" class="chip" key=${seq} title="Open the pinned message"
        onClick=${() => open(seq)}>${PIN} <b>${number(seq)}</b></button>`)}
    </span>
  </div>`;
}

/** The filter words with their meaning. */
export function FilterHelp() {
  return html`<dl class="words">${FILTER_KEYS.map(([word, meaning]) => html`<dt><code>${word}</code></dt><dd>${meaning}</dd>`)}</dl>`;
}

function Nothing() {
  // Read in any case, so that this is drawn again when it changes.
  const { isDone } = counts.value;
  if (lines().length > 0 || !isDone) return null;
  const { rows } = stream.value;
  if (rows.newest === 0)
    return html`<div class="stream-empty"><${NothingYet}>No messages yet. They appear here as soon as a guard judges one.<//></div>`;
  if (filter.value === "")
    return html`<div class="stream-empty empty">No calls yet, only handshakes and lists.${" "}
      <${Button} onClick=${() => (all.value = true)}>Show all messages<//></div>`;
  return html`<div class="stream-empty empty">No message has all of these words.${" "}
    <${Button} onClick=${() => setFilter("")}>Clear the filter<//><${FilterHelp} /></div>`;
}

/** The screen. */
export function StreamScreen({ options }) {
  const { rows } = stream.value;
  void drawn.value;
  const message = options.message ? Number(options.message) : null;
  const head = html`<div class="line line-head" role="row" aria-rowindex="1">
    ${COLUMNS.map(([name, title]) => html`<span role="columnheader" class="cell-${name}">${title}</span>`)}
  </div>`;
  const shown = lines();
  const isNew = useRef(true);
  useEffect(() => {
    const isTyped = document.activeElement?.id === "filter";
    if (isNew.current && message === null && !isTyped) list.current.node?.focus({ preventScroll: true });
    isNew.current = false;
  });
  const kinds = {
    stream: true,
    "one-server": servers.value.length < 2,
    "no-principal": !rows.hasPrincipal,
    "no-time": rows.newest > 0 && !rows.hasTime,
    "with-panel": message !== null,
  };
  return html`<section class=${Object.keys(kinds).filter((each) => kinds[each]).join(" ")} aria-labelledby="stream-title">
    <${Bar} />
    <${Counts} />
    <div class="stream-body">
      <${VirtualList} label="Messages" head=${head} length=${shown.length} rowHeight=${narrow.value ? NARROW_ROW : ROW}
        keyOf=${(index) => shown[index] ?? null} indexOf=${(seq) => position(shown, seq)} Row=${Line}
        active=${active.value} isRead=${filtered.isDone} choose=${(seq) => (active.value = seq)} open=${open}
        follows=${follows.value && paused.value === null} left=${() => (follows.value = false)} place=${place} own=${list} />
      ${message !== null && html`<${MessagePanel} seq=${message} close=${closePanel} show=${(seq) => showAddress(seq)} pin=${() => togglePin(lineOf(message))} />`}
      <${Nothing} />
    </div>
  </section>`;
}
