/** The sessions: who is connected, with which capabilities, and what is still open. */

import { read } from "./console_api.js";
import { streamOf } from "./console_filter.js";
import { ago, dateAndTime, screenHead, stateTag, withCards } from "./console_parts.js";
import { routeTo } from "./console_router.js";
import { ConsoleScreen } from "./console_screen.js";
import { amount, breakable, element, table } from "./dom.js";
import { duration, number } from "./text.js";

const SHOWN = 300;
/** Rows of the table: those that were used last. */

const MOST = 1000;
/** Sessions that are kept, as many as the console keeps. */

const COLUMNS = [
  ["Client"],
  ["Server", { class: "wraps" }],
  ["State", { class: "wraps" }],
  ["Revision"],
  ["Capabilities"],
  ["Messages", { number: true }],
  ["Findings", { number: true }],
  ["Open requests", { number: true }],
  ["Tasks", { number: true, class: "minor" }],
  ["Restarts", { number: true, class: "minor" }],
  ["Lasted", { number: true }],
];

function clientCell(session, store) {
  const { client } = session;
  const name = [client.title ?? client.name, client.version].filter(Boolean).join(" ") || "unknown client";
  const messages = streamOf({
    server: store.serverName(session.server),
    session: session.session,
    principal: session.session ? null : session.principal,
  });
  return element(
    "span",
    { class: "tool" },
    element("a", { class: "tool-name", "data-row": true, href: messages }, name),
    session.session && element("code", { class: "label-text" }, session.session),
    session.principal && element("span", { class: "quiet-text" }, session.principal),
  );
}

function capabilitiesCell(session) {
  const { capabilities } = session.client;
  const names = Array.isArray(capabilities) ? capabilities : Object.keys(capabilities ?? {});
  return names.length === 0
    ? "–"
    : element("span", { class: "tags" }, ...names.slice(0, 12).map((each) => element("span", { class: "tag" }, each)));
}

function openCell(session) {
  if (session.open === 0) return amount(0);
  return element(
    "span",
    null,
    number(session.open),
    " ",
    ...session.openIds
      .slice(0, 5)
      .map((seq) => [" ", element("a", { href: routeTo("message", seq) }, `#${number(seq)}`)]),
  );
}

export class SessionsScreen extends ConsoleScreen {
  constructor(store) {
    super(store);
    this.sessions = new Map();
    this.node = element(
      "section",
      null,
      screenHead("Sessions", "Every connection of a client to a server, newest first. Open one to see its messages."),
      this.body,
    );
    this.update = this.whileShown(250, () => this.render());
    store.on("board:sessions", (data) => this.merge(data.sessions));
    this.showAges();
  }

  /** Take sessions that have changed; a screen that is not shown asks for all of them when it is. */
  merge(sessions) {
    if (!this.isShown) return;
    for (const each of sessions) this.sessions.set(each.id, each);
    if (this.sessions.size > MOST) for (const each of this.lastUsed().slice(MOST)) this.sessions.delete(each.id);
    this.update();
  }

  lastUsed() {
    return [...this.sessions.values()].sort((one, other) => other.last - one.last);
  }

  async fetch() {
    const { sessions } = await read("sessions");
    this.sessions = new Map(sessions.map((each) => [each.id, each]));
  }

  cells(session) {
    const { store } = this;
    return [
      clientCell(session, store),
      breakable(store.serverName(session.server)),
      element(
        "span",
        { class: "tool" },
        stateTag(session.state, session.state === "open" ? "good" : "note"),
        session.why && element("span", { class: "quiet-text" }, session.why),
      ),
      session.revision || "–",
      capabilitiesCell(session),
      number(session.messages),
      amount(session.findings),
      openCell(session),
      amount(session.tasks),
      amount(session.restarts),
      element(
        "span",
        { title: `${dateAndTime(session.first)} to ${dateAndTime(session.last)}` },
        duration(Math.max(0, session.last - session.first) * 1e6),
        element("span", { class: "quiet-text block" }, ago(session.last)),
      ),
    ];
  }

  render() {
    const sessions = this.lastUsed();
    if (sessions.length === 0) {
      this.fillEmpty("No session yet: it begins with the first message of a client.");
      return;
    }
    const newest = (one, other) => other.first - one.first || other.id - one.id;
    const shown = this.steady(sessions.slice(0, SHOWN), (each) => each.id, newest);
    const rows = shown.map((each) => ({ cells: this.cells(each), "data-key": each.id }));
    const more =
      sessions.length > SHOWN &&
      element("p", { class: "remark" }, `${number(sessions.length - SHOWN)} older sessions are not shown.`);
    this.fillRows("a", withCards(table("Sessions", COLUMNS, rows)), more);
  }
}
