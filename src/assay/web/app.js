/** The page of `assay console` and `assay report`: its head, its screens, and its keys. */

import { REPORT } from "./api.js";
import { ContractsScreen } from "./contracts.js";
import { FindingsScreen } from "./findings.js";
import { attempt, Button, dialog, Notice, Toast } from "./parts.js";
import { PerformanceScreen } from "./performance.js";
import { ServersScreen } from "./servers.js";
import { SessionsScreen } from "./sessions.js";
import { connection, dropped, failure, files, go, groups, load, route, routeTo, servers, signOut, state } from "./store.js";
import { FilterHelp, streamAddress, streamKeys, StreamScreen, takeStream, toFilter } from "./stream.js";
import { counted, number, sentence } from "./text.js";
import { switchTheme, themed } from "./theme.js";
import { effect, html, render, untracked, useLayoutEffect, useRef } from "./view.js";

const SCREENS = [
  ["servers", "Servers", ServersScreen],
  ["stream", "Stream", StreamScreen],
  ["findings", "Findings", FindingsScreen],
  ["contracts", "Contracts", ContractsScreen],
  ["sessions", "Sessions", SessionsScreen],
  ["performance", "Performance", PerformanceScreen],
];

const CONNECTIONS = {
  loading: ["Loading", "note"],
  live: ["Live", "ok"],
  lost: ["Reconnecting", "warning"],
  ended: ["Console ended", "error"],
  login: ["Signed out", "note"],
  report: ["Report", "note"],
};

const KIND = REPORT === null ? "console" : "report";

function nameOf({ name }) {
  return SCREENS.some(([each]) => each === name) ? name : "servers";
}

/** Where each screen was left. */
const left = new Map();

function addressOf(name) {
  return name === "stream" ? streamAddress() : (left.get(name) ?? routeTo(name));
}

effect(() => {
  const name = nameOf(route.value);
  left.set(name, name === route.value.name ? location.hash : routeTo(name));
  document.title = `${SCREENS.find(([each]) => each === name)[1]} – assay ${KIND}`;
  if (name === "stream") untracked(() => takeStream(route.peek().options));
});

// ── the head ─────────────────────────────────────────────────────────────────────────────────────────────────────────

function Connection() {
  const [text, tone] = CONNECTIONS[connection.value];
  return html`<span class="connection tone-${tone}" role="status"><span class="dot" aria-hidden="true"></span>${text}</span>`;
}

function Tabs() {
  const here = nameOf(route.value);
  const counts = { servers: servers.value.length, findings: servers.value.reduce((sum, each) => sum + each.findings, 0) };
  return html`<nav class="tabs" aria-label="Screens">
    ${SCREENS.map(([name, title], at) => html`<a key=${name} href=${name === here ? location.hash || routeTo(name) : addressOf(name)}
      data-screen=${name} aria-current=${name === here ? "page" : null} title="${title} (${at + 1})">${title}${
        counts[name] > 0 && html`${" "}<span class="count">${number(counts[name])}</span>`}</a>`)}
  </nav>`;
}

function Head() {
  const skip = (event) => {
    event.preventDefault();
    document.querySelector("main h1")?.focus();
  };
  const other = themed.value === "dark" ? "light" : "dark";
  return html`<header class="top">
    <a class="skip" href="#main" onClick=${skip}>Skip to the content</a>
    <span class="brand">assay <span>${KIND}</span></span>
    ${state.value !== null && html`<${Tabs} />`}
    <span class="head-tools">
      <${Connection} />
      <${Button} kind="quiet" onClick=${showHelp} aria-label="Keys and filter words">?<//>
      <${Button} kind="quiet" onClick=${switchTheme} aria-label="Use ${other} colours">${other === "dark" ? "Dark" : "Light"}<//>
      ${REPORT === null && state.value !== null && html`<${Button} kind="quiet" onClick=${() => attempt(signOut)}>Sign out<//>`}
    </span>
  </header>`;
}

function Banners() {
  const lost = [
    dropped.value.details > 0 && `the details of ${number(dropped.value.details)} older messages`,
    dropped.value.groups > 0 && `${number(dropped.value.groups)} groups of findings`,
  ].filter(Boolean);
  const { loading, failed } = files.value;
  return html`<div class="banners" role="status">
    ${state.value !== null && failure.value !== "" && html`<${Notice} tone="error">${failure.value}<//>`}
    ${loading.length > 0 && html`<${Notice} tone="note">Reading ${loading.length === 1 ? loading[0] : counted(loading.length, "file")}…<//>`}
    ${failed.map(({ file, why }) => html`<${Notice} key="failed ${file}" tone="error">Cannot read ${file}: ${why}<//>`)}
    ${lost.length > 0 && html`<div aria-live="off"><${Notice} tone="note">Not shown, to keep memory bounded: ${lost.join("; ")}.<//></div>`}
  </div>`;
}

// ── the keys ─────────────────────────────────────────────────────────────────────────────────────────────────────────

const HELP = [
  ["1 – 6", "the screens"],
  ["/", "filter the stream"],
  ["a", "all messages, or calls only"],
  ["f", "follow new messages"],
  ["p", "pause the stream"],
  ["j k ↓ ↑", "next and previous row"],
  ["PgUp PgDn Home End", "move faster in the stream"],
  ["Enter", "open the row"],
  ["Esc", "close the message, or clear the filter"],
  ["y", "copy the message"],
  ["m", "pin the message"],
  ["?", "this help"],
];

/** Show the keys and the filter words. */
function showHelp() {
  dialog("Keys and filter words", html`
    <dl class="words">${HELP.map(([keys, meaning]) => html`<dt>${keys.split(" ").map((each) => (each === "–" ? " – " : html`<kbd>${each}</kbd> `))}</dt><dd>${meaning}</dd>`)}</dl>
    <h3>Filter words</h3>
    <p class="quiet-text">All words must match. A minus before a word excludes it, and quotes keep spaces: <code>-verdict:ok tool:"my tool"</code>.</p>
    <${FilterHelp} />`);
}

function isTyping(target) {
  return target.closest?.("input, textarea, select, [contenteditable]") !== null;
}

/** Move the focus by rows in a screen without a list of its own. */
function moveRow(by) {
  const rows = [...document.querySelectorAll("main [data-row]")];
  const at = rows.findIndex((each) => each === document.activeElement);
  const next = rows[at < 0 ? (by > 0 ? 0 : rows.length - 1) : Math.min(rows.length - 1, Math.max(0, at + by))];
  next?.focus();
}

function pressed(event) {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || state.value === null) return;
  if (document.querySelector("dialog[open]") !== null || isTyping(event.target)) return;
  const isStream = nameOf(route.value) === "stream";
  const isRow = event.target.closest?.("[data-row]") !== null;
  const screens = Object.fromEntries(SCREENS.map(([name], at) => [at + 1, () => go(addressOf(name))]));
  const rows = { j: () => moveRow(1), k: () => moveRow(-1), ...(isRow && { ArrowDown: () => moveRow(1), ArrowUp: () => moveRow(-1) }) };
  const action = { "?": showHelp, "/": toFilter, ...screens, ...(isStream ? streamKeys() : rows) }[event.key];
  // Enter belongs to the button or link that has the focus.
  if (action === undefined || (event.key === "Enter" && event.target.closest("a, button, summary, [role=treeitem]") !== null)) return;
  event.preventDefault();
  action();
}

document.addEventListener("keydown", pressed);

// ── the page ─────────────────────────────────────────────────────────────────────────────────────────────────────────

/** The screen that the address names. Screen readers continue at its title when it is another one. */
function Screen() {
  const { options } = route.value;
  const name = nameOf(route.value);
  const before = useRef(name);
  useLayoutEffect(() => {
    if (before.current === name) return;
    before.current = name;
    const inTabs = document.activeElement?.closest(".tabs");
    if (!inTabs && name !== "stream") document.querySelector("main h1")?.focus({ preventScroll: true });
    scrollTo(0, 0);
  }, [name]);
  const [, , Shown] = SCREENS.find(([each]) => each === name);
  return html`<main id="main" data-screen=${name}><${Shown} key=${name} options=${options} /></main>`;
}

function Before() {
  if (connection.value === "login")
    return html`<main id="main"><h1 tabindex="-1">Sign in</h1><p>${failure.value}</p>
      <p class="quiet-text">Open the address with the token that assay console printed when it started.</p></main>`;
  return html`<main id="main">${failure.value !== "" && html`<${Notice} tone="error">${sentence(failure.value)}<//>`}</main>`;
}

function Page() {
  const isReady = state.value !== null;
  useLayoutEffect(() => {
    document.body.dataset.ready = isReady ? "true" : connection.value === "login" ? "login" : "";
  });
  return html`<${Head} /><${Banners} />${isReady ? html`<${Screen} />` : html`<${Before} />`}<${Toast} />`;
}

const root = document.createElement("div");
root.id = "page";
document.body.append(root);
render(html`<${Page} />`, root);
load();
