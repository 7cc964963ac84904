/** What the page knows, as signals: a component that reads one is drawn again when it changes. */

import { ApiError, errorText, LiveEvents, read, REPORT, send } from "./api.js";
import { filterOf } from "./filter.js";
import { RowStore } from "./rows.js";
import { batch, signal } from "./view.js";

/** The answer of `api/state`; null until it is there. Its changing members are signals of their own. */
export const state = signal(null);
export const servers = signal([]);
export const dropped = signal({ rows: 0, details: 0, groups: 0 });
export const files = signal({ loading: [], failed: [] });
/** `loading`, `live`, `lost`, `ended`, `login`, or `report` for a page that does not change. */
export const connection = signal("loading");
export const failure = signal("");

/** All rows, the names of their cells, and a count of the changes. */
export const stream = signal({ rows: new RowStore(1), columns: [], loads: 0 });
/** The numbers of lines that are new or have changed, of the last event with rows. */
export const touched = signal(new Set());

/** Findings and sessions by id; null until a screen asks for them. Contracts: the servers whose lists have changed. */
export const groups = signal(null);
export const rules = signal({});
export const sessions = signal(null);
export const listed = signal({ servers: [], count: 0 });

/** The verdict on the files of a report; null in a console. */
export const overview = signal(null);

/** Counts up as time passes: screens say how long ago something was. */
export const clock = signal(0);
const TIME_PASSES = 5000;

/** Return the server with this number; null for an unknown one. */
export function serverOf(id) {
  return servers.value.find((each) => each.id === id) ?? null;
}

/** Return the name of a server. */
export function serverName(id) {
  return serverOf(id)?.name ?? `server ${id}`;
}

/** Do *work*, which reads something; an error is shown above the screen. */
export function attempted(work) {
  work().catch((error) => (failure.value = errorText(error)));
}

function byId(all) {
  return new Map(all.map((each) => [each.id, each]));
}

function merged(known, changed) {
  return new Map([...known, ...byId(changed)]);
}

const events = new LiveEvents({
  state: (value) => (connection.value = value),
  reset: () => load(),
  rows: (data) => (touched.value = stream.value.rows.add(data.rows, stream.value.columns)),
  servers: (data) => (servers.value = [...merged(byId(servers.value), data.servers).values()]),
  dropped: (data) => (dropped.value = data),
  files: (data) => (files.value = data),
  findings: (data) => {
    if (groups.value === null) return;
    const isNew = data.groups.some((each) => !(each.rule in rules.value));
    groups.value = merged(groups.value, data.groups);
    if (isNew) readFindings();
  },
  sessions: (data) => sessions.value !== null && (sessions.value = merged(sessions.value, data.sessions)),
  contracts: (data) => (listed.value = { servers: data.servers, count: listed.value.count + 1 }),
});

/** Load the findings, which events then keep up to date. */
export async function readFindings() {
  const answer = await read("findings");
  batch(() => {
    rules.value = answer.rules;
    groups.value = byId(answer.groups);
  });
}

/** Load the sessions, which events then keep up to date. */
export async function readSessions() {
  const answer = await read("sessions");
  sessions.value = byId(answer.sessions);
}

/** Load everything, and listen to what comes after it. */
export async function load() {
  events.close();
  try {
    const rows = await read("rows");
    // After the rows, so that it has the servers of all of them.
    const answer = await read("state");
    const store = new RowStore(answer.limits.rows);
    store.add(rows.rows, rows.columns);
    const wants = { groups: groups.value !== null, sessions: sessions.value !== null };
    batch(() => {
      state.value = answer;
      servers.value = answer.servers;
      dropped.value = answer.dropped;
      overview.value = answer.overview ?? null;
      files.value = { loading: answer.loading, failed: answer.failed };
      stream.value = { rows: store, columns: rows.columns, loads: stream.value.loads + 1 };
      failure.value = "";
    });
    if (REPORT !== null) connection.value = "report";
    else events.connect(rows.newest, answer.tick);
    if (wants.groups) await readFindings();
    if (wants.sessions) await readSessions();
  } catch (error) {
    failed(error);
  }
}

function failed(error) {
  const isLogin = error instanceof ApiError && error.status === 401;
  batch(() => {
    failure.value = errorText(error);
    connection.value = isLogin ? "login" : "lost";
    if (isLogin) state.value = null;
  });
  if (!isLogin) events.resetLater();
}

/** Sign out this browser. The page is loaded again, so that nothing of the messages is left in it. */
export async function signOut() {
  events.close();
  try {
    await send("logout", {});
  } catch (error) {
    load();
    throw error;
  }
  location.replace(location.pathname);
}

if (REPORT === null) setInterval(() => (clock.value += 1), TIME_PASSES);

// ── the address ──────────────────────────────────────────────────────────────────────────────────────────────────────

function safelyDecoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Return the screen that a fragment such as `#/stream?filter=tool:search&message=12` names, and its options. */
function parseRoute(fragment) {
  const [path, query] = fragment.replace(/^#\/?/, "").split(/\?(.*)/s);
  return { name: safelyDecoded(path.split("/")[0]), options: Object.fromEntries(new URLSearchParams(query ?? "")) };
}

/** The address of the page. */
export const route = signal(parseRoute(location.hash));
addEventListener("hashchange", () => (route.value = parseRoute(location.hash)));

/** Return the fragment of a screen. Options without a value are left out. */
export function routeTo(name, options = {}) {
  const kept = Object.entries(options).filter(([, value]) => value !== null && value !== undefined && value !== "");
  return `#/${name}${kept.length === 0 ? "" : `?${new URLSearchParams(kept)}`}`;
}

/** Return the address of the stream with only the rows that have these values; with *all*, also what it folds away. */
export function streamOf(values, all = true) {
  return routeTo("stream", { filter: filterOf(values), all: all ? 1 : null });
}

/** Go to a screen; without *remember* the browser's history does not get a new entry. */
export function go(fragment, remember = true) {
  if (remember) location.hash = fragment;
  else {
    history.replaceState(null, "", fragment);
    route.value = parseRoute(fragment);
  }
}
