/** The sessions: which client is connected to which server, and what is still open. */

import { breakable, NothingYet, ScreenHead, Table, Tag } from "./parts.js";
import { attempted, clock, readSessions, routeTo, serverName, servers, sessions, streamOf } from "./store.js";
import { ago, dateAndTime, duration, number } from "./text.js";
import { html, useEffect, useSteady } from "./view.js";

const SHOWN = 300;
/** Rows of the table: those that were used last. */

function Client({ session }) {
  const { client } = session;
  const name = [client.title ?? client.name, client.version].filter(Boolean).join(" ") || "unknown client";
  const messages = { server: serverName(session.server), session: session.session, principal: session.session ? null : session.principal };
  return html`<span class="stack">
    <a class="name" data-row href=${streamOf(messages, false)}>${name}</a>
    ${session.session && html`<code class="small">${session.session}</code>`}
    ${session.principal && html`<span class="quiet-text">${session.principal}</span>`}
  </span>`;
}

function capabilitiesOf({ client }) {
  const { capabilities } = client;
  return Array.isArray(capabilities) ? capabilities : Object.keys(capabilities ?? {});
}

function Open({ session }) {
  return html`${number(session.open)}${session.openIds.slice(0, 5).map((seq) =>
    html`${" "}<a key=${seq} href=${routeTo("stream", { all: 1, message: seq })}>#${number(seq)}</a>`)}`;
}

function Lasted({ session }) {
  return html`<span title="${dateAndTime(session.first)} to ${dateAndTime(session.last)}">
    ${duration(Math.max(0, session.last - session.first) * 1e6)}<span class="quiet-text block">${ago(session.last)}</span></span>`;
}

/** Each column: its title, its options, its cell, and whether a session has something to say in it. */
const COLUMNS = [
  ["Client", { class: "wide" }, (each) => html`<${Client} session=${each} />`, () => true],
  ["Server", { class: "breaks" }, (each) => breakable(serverName(each.server)), () => servers.value.length > 1],
  ["State", { class: "breaks" }, (each) => html`<${Tag} tone=${each.state === "open" ? "ok" : "note"}>${each.state}<//>
    ${each.why && html`<span class="quiet-text block">${each.why}</span>`}`, () => true],
  ["Revision", {}, (each) => each.revision || "–", (each) => each.revision !== ""],
  ["Capabilities", { class: "wraps" }, (each) => capabilitiesOf(each).slice(0, 12).join(", ") || "–", (each) => capabilitiesOf(each).length > 0],
  ["Messages", { number: true }, (each) => number(each.messages), () => true],
  ["Findings", { number: true }, (each) => (each.findings === 0 ? "" : number(each.findings)), (each) => each.findings > 0],
  ["Open requests", { number: true }, (each) => (each.open === 0 ? "" : html`<${Open} session=${each} />`), (each) => each.open > 0],
  ["Tasks", { number: true }, (each) => (each.tasks === 0 ? "" : number(each.tasks)), (each) => each.tasks > 0],
  ["Restarts", { number: true }, (each) => (each.restarts === 0 ? "" : number(each.restarts)), (each) => each.restarts > 0],
  ["Lasted", { number: true }, (each) => html`<${Lasted} session=${each} />`, (each) => each.last > 0],
];

function SessionTable({ all }) {
  void clock.value;
  const used = all.toSorted((one, other) => other.last - one.last).slice(0, SHOWN);
  const [sorted, place] = useSteady(used, (each) => each.id, (one, other) => other.first - one.first || other.id - one.id);
  const kept = COLUMNS.filter(([, , , says]) => sorted.some(says));
  const rows = sorted.map((each) => ({ key: each.id, cells: kept.map(([, , cell]) => cell(each)) }));
  return html`<${Table} caption="Sessions" columns=${kept} rows=${rows} place=${place} />
    ${all.length > SHOWN && html`<p class="quiet-text">${number(all.length - SHOWN)} older sessions are not shown.</p>`}`;
}

/** The screen. */
export function SessionsScreen() {
  useEffect(() => attempted(readSessions), []);
  const all = [...(sessions.value?.values() ?? [])];
  return html`<section>
    <${ScreenHead} title="Sessions" about="Every connection of a client to a server, newest first." />
    ${sessions.value === null
      ? html`<p class="quiet-text" role="status">Reading the sessions…</p>`
      : all.length === 0
        ? html`<${NothingYet}>No sessions yet. One begins with the first message of a client.<//>`
        : html`<${SessionTable} all=${all} />`}
  </section>`;
}
