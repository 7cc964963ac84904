/** The servers: one row for each name, those with trouble first, and the runs of each below it. */

import { REPORT } from "./api.js";
import { Amount, breakable, Command, Empty, Facts, Notice, ScreenHead, Spark, Table, Tag } from "./parts.js";
import { clock, overview, routeTo, servers, state, streamOf } from "./store.js";
import { ago, counted, dateAndTime, number, sentence, took } from "./text.js";
import { html, signal, useSteady } from "./view.js";

const STATES = { running: "ok", idle: "note", failed: "error", ended: "note" };

/** What each rank of trouble is called in the line of health; the worst first. */
const RANKS = [
  ["error", (count) => `${number(count)} failed`],
  ["blocked", (count) => `${number(count)} with blocked messages`],
  ["would-block", (count) => `${number(count)} where enforce mode would block`],
  ["warning", (count) => `${number(count)} with findings`],
  ["ok", (count) => `${number(count)} fine`],
];

/** Return the rank of the trouble that a server is in, 0 for the worst. */
function rankOf(server) {
  if (server.state === "failed") return 0;
  if (server.blocked > 0) return 1;
  if (server.wouldBlock > 0) return 2;
  return server.findings > 0 ? 3 : 4;
}

function byTrouble(one, other) {
  return rankOf(one) - rankOf(other) || (other.last ?? 0) - (one.last ?? 0) || one.id - other.id;
}

/** All servers in one line: how many are in which kind of trouble. */
export function Health() {
  const counts = RANKS.map(() => 0);
  for (const each of servers.value) counts[rankOf(each)] += 1;
  return html`<p class="health">
    ${RANKS.map(([tone, words], at) => counts[at] > 0 && html`<span class="state tone-${tone}" key=${tone}>${words(counts[at])}</span>`)}
  </p>`;
}

// ── the runs of a server ─────────────────────────────────────────────────────────────────────────────────────────────

const opened = signal(new Set());

function toggle(id) {
  const others = new Set(opened.value);
  if (!others.delete(id)) others.add(id);
  opened.value = others;
}

function State({ of }) {
  return html`<span class="stack"><${Tag} tone=${STATES[of.state] ?? "note"}>${of.state}<//>
    ${of.state === "running" && of.why && html`<span class="small">restarted:</span>`}
    ${[of.why, of.stderr].filter(Boolean).map((each) => html`<code class=${of.state === "failed" ? "stderr" : "small"}>${each}</code>`)}</span>`;
}

function Run({ run }) {
  return html`<li class="run">
    <${State} of=${run} />
    <div class="stack">
      <code class="small">${breakable(run.label)}</code>
      ${run.address && html`<code class="small">${breakable(run.address)}</code>`}
    </div>
    <${Facts} facts=${[
      ["Guard", [run.transport, run.mode].filter(Boolean).join(", ")],
      ["Revision", run.revisions.join(", ")],
      ["Messages", number(run.messages)],
      ["Findings", run.findings > 0 && number(run.findings)],
      ["Restarts", run.restarts > 0 && number(run.restarts)],
      ["First message", run.first !== null && dateAndTime(run.first)],
      ["Last message", run.last !== null && dateAndTime(run.last)],
    ]} />
    ${run.notes.map((each) => html`<p class="quiet-text">${each}</p>`)}
  </li>`;
}

function Runs({ server }) {
  const more = server.runCount - server.runs.length;
  return html`<ul class="runs" aria-label="Runs of ${server.name}">
    ${server.runs.map((each) => html`<${Run} key=${each.id} run=${each} />`)}
    ${more > 0 && html`<li class="quiet-text">${counted(more, "older run")} not listed.</li>`}
  </ul>`;
}

// ── the table ────────────────────────────────────────────────────────────────────────────────────────────────────────

const isLive = (each) => each.source === "journal";

/** Each column: its title, its options, and whether a server has something to say in it. */
const COLUMNS = [
  ["Server", { class: "wide" }],
  ["State", {}, isLive],
  ["Findings", { number: true }],
  ["Blocked", { number: true, about: "Messages that were blocked, and those that enforce mode would block" }],
  ["Calls a minute", {}, isLive],
  ["p95", { number: true, about: "95 of 100 answers came within this time" }, (each) => each.p95 !== null],
  ["Tools", { number: true, about: "The tools, and the tokens that their list is estimated to take in every conversation" }],
  ["Last message", {}, (each) => each.last !== null],
];

function Name({ server }) {
  const isOpen = opened.value.has(server.id);
  const noun = server.source === "file" ? "file" : "run";
  return html`<span class="stack">
    <a class="name" data-row href=${streamOf({ server: server.name }, false)}>${breakable(server.name)}</a>
    <span class="small"><button type="button" class="link" aria-expanded=${String(isOpen)} onClick=${() => toggle(server.id)}>
      ${counted(server.runCount, noun)}</button>${server.mode && `, ${server.mode} mode`}</span>
  </span>`;
}

function countLink(count, address) {
  return count === 0 ? html`<${Amount} value=${0} />` : html`<a class="count-link bad" href=${address}>${number(count)}</a>`;
}

/** What was blocked; or, of a server in audit mode, what enforce mode would block. */
function Blocked({ server }) {
  const address = streamOf({ server: server.name, verdict: "blocked" });
  const { blocked, wouldBlock } = server;
  if (wouldBlock === 0) return countLink(blocked, address);
  return html`${blocked > 0 && countLink(blocked, address)}
    <a class="count-link would" href=${address}>${number(wouldBlock)}</a><span class="quiet-text block">would block</span>`;
}

function cellsOf(server) {
  const { id } = server;
  const minute = `${counted(server.callsPerMinute, "call")} in the last minute`;
  return [
    html`<${Name} server=${server} />`,
    html`<${State} of=${server} />`,
    countLink(server.findings, routeTo("findings", { server: id })),
    html`<${Blocked} server=${server} />`,
    html`<span class="calls"><${Spark} counts=${server.calls} meaning=${minute} />${number(server.callsPerMinute)}</span>`,
    took(server.p95),
    server.tools === null
      ? "–"
      : html`<a class="count-link" href=${routeTo("contracts", { server: id })}>${number(server.tools)}</a>${
          server.tokens !== null && html`<span class="quiet-text block">${counted(server.tokens, "token")}</span>`}`,
    server.last === null ? "–" : html`<span title=${dateAndTime(server.last)}>${ago(server.last)}</span>`,
  ];
}

function ServerTable({ all }) {
  void clock.value;
  const [sorted, place] = useSteady(all, (each) => each.id, byTrouble);
  const kept = COLUMNS.map((_, at) => at).filter((at) => sorted.some(COLUMNS[at][2] ?? (() => true)));
  const rows = sorted.map((each) => {
    const cells = cellsOf(each);
    const below = opened.value.has(each.id) ? html`<${Runs} server=${each} />` : null;
    return { key: each.id, class: `rank-${rankOf(each)}`, cells: kept.map((at) => cells[at]), below };
  });
  return html`<${Table} caption="Servers" columns=${kept.map((at) => COLUMNS[at])} rows=${rows} place=${place} />`;
}

function NoServers() {
  return html`<${Empty}>
    <p><strong>No server is behind a guard yet.</strong> Try the one that comes with assay:</p>
    <${Command}>assay demo<//>
    <p>Or put the guard in front of the servers of your client, and record their messages:</p>
    <${Command}>assay wrap --all --payloads<//>
    <p>It shows the changes first, and asks. Restart the client: its servers then appear here.</p>
  <//>`;
}

/** The verdict on the files of a report, with what there is to say about them. */
function Overview() {
  const { tone, sentence: verdict, notes, files, made } = overview.value;
  return html`<${Notice} tone=${tone}><strong>${verdict}</strong>${notes.map((each) => ` ${sentence(each)}`)}<//>
    ${files.length > 1 && html`<details class="branch"><summary>${counted(files.length, "file")}</summary>
      <ul class="files">${files.map(({ name, about }) => html`<li key=${name}><code>${name}</code> ${about}</li>`)}</ul></details>`}
    ${made && html`<p class="lead quiet-text">Judged by assay ${state.value.assay}, ${made}.</p>`}`;
}

/** The screen. */
export function ServersScreen() {
  const all = servers.value;
  const about = REPORT === null
    ? "Every server behind a guard that writes a journal on this machine, and the files that were opened."
    : "The servers of the files that were judged.";
  return html`<section>
    <${ScreenHead} title="Servers" about=${about} />
    ${(overview.value === null || all.length > 1) && html`<${Health} />`}
    ${overview.value !== null && html`<${Overview} />`}
    ${all.length === 0 ? REPORT === null && html`<${NoServers} />` : html`<${ServerTable} all=${all} />`}
  </section>`;
}
