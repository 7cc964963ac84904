/** The servers: one row for each guarded server, with its state, its traffic and what was found. */

import { ago, screenHead, sparkline, stateTag, took, withCards } from "./console_parts.js";
import { streamOf } from "./console_filter.js";
import { routeTo } from "./console_router.js";
import { ConsoleScreen } from "./console_screen.js";
import { amount, breakable, element, fill, table } from "./dom.js";
import { counted, number } from "./text.js";

const STATES = { running: "good", idle: "note", failed: "error", ended: "note" };
const LOCKS = { locked: ["locked", "good"], none: ["no lock", "note"] };

function placeText(text) {
  return element("code", { class: "label-text place-text", title: text }, breakable(text));
}

function nameCell(server) {
  const notes = server.notes.map((each) => element("span", { class: "quiet-text" }, each));
  return element(
    "span",
    { class: "tool" },
    element(
      "a",
      {
        class: "tool-name",
        "data-row": true,
        href: streamOf({ server: server.name }),
      },
      breakable(server.name),
    ),
    placeText(server.label),
    server.address && placeText(server.address),
    ...notes,
  );
}

const SOURCES = { journal: "from its journal", file: "from a file" };

function stateCell(server) {
  // The end of a server whose client has gone is no failure.
  const kind = server.state === "ended" ? "label-text" : "stderr";
  const detail = [server.why, server.stderr].filter(Boolean);
  const restarts = server.restarts > 0 && element("span", { class: "quiet-text" }, counted(server.restarts, "restart"));
  const last =
    server.last !== null && server.state !== "failed" && element("span", { class: "quiet-text" }, ago(server.last));
  return element(
    "span",
    { class: "tool" },
    stateTag(server.state, STATES[server.state] ?? "note"),
    ...detail.map((each) => element("code", { class: kind }, each)),
    restarts,
    last,
  );
}

function callsCell(server) {
  const text = `${number(server.callsPerMinute)} calls in the last minute`;
  return element(
    "span",
    { class: "calls" },
    sparkline(server.calls.length > 0 ? server.calls : [0], text),
    number(server.callsPerMinute),
  );
}

function blockedCell(server) {
  if (server.blocked === 0) return amount(0);
  const messages = streamOf({ server: server.name, verdict: "blocked" });
  return element("a", { class: "count-link", href: messages }, number(server.blocked));
}

function lockCell(server) {
  if (!(server.lock in LOCKS)) return "–";
  const [text, tone] = LOCKS[server.lock];
  return element("a", { class: "plain", href: routeTo("contracts", null, { server: server.id }) }, stateTag(text, tone));
}

const COLUMNS = [
  ["Server"],
  ["State"],
  ["Guard"],
  ["Revision"],
  ["Calls a minute"],
  ["Findings", { number: true }],
  ["Blocked", { number: true }],
  ["p95", { number: true, about: "95 of 100 answers came within this time" }],
  ["Tools", { number: true }],
  ["Tokens", { number: true, about: "Estimated tokens that the list of tools takes in every conversation" }],
  ["Lock"],
];

function revision(name) {
  return element("span", {}, name);
}

function cells(server) {
  const mode = [server.transport, server.mode].filter(Boolean).join(", ");
  return [
    nameCell(server),
    stateCell(server),
    element(
      "span",
      { class: "tool" },
      mode || "–",
      element("span", { class: "quiet-text" }, SOURCES[server.source] ?? server.source),
    ),
    element("span", { class: "tool" }, ...(server.revisions.length ? server.revisions : ["–"]).map(revision)),
    callsCell(server),
    element(
      "a",
      { class: "count-link", href: routeTo("findings", null, { server: server.id }) },
      amount(server.findings),
    ),
    blockedCell(server),
    took(server.p95),
    server.tools === null
      ? "–"
      : element(
          "a",
          { class: "count-link", href: routeTo("contracts", null, { server: server.id }) },
          number(server.tools),
        ),
    server.tokens === null ? "–" : number(server.tokens),
    lockCell(server),
  ];
}

export class ServersScreen extends ConsoleScreen {
  constructor(store) {
    super(store);
    this.node = element(
      "section",
      null,
      screenHead("Servers", "Every server behind a guard of this machine that writes a journal, and the files that were opened."),
      this.body,
    );
    store.on(
      "servers",
      this.whileShown(250, () => this.render()),
    );
    this.showAges();
  }

  render() {
    const { servers } = this.store;
    if (servers.length === 0) {
      if (!this.isEmpty) fill(this.body, this.emptyState());
      this.isEmpty = true;
      return;
    }
    this.isEmpty = false;
    const rows = servers.map((each) => ({ cells: cells(each), "data-key": each.id }));
    const unrecorded = servers.some((each) => each.payloads === false);
    const isQuiet = servers.every((each) => each.messages === 0);
    this.fillRows(
      "a",
      withCards(table("Servers", COLUMNS, rows)),
      isQuiet &&
        element(
          "p",
          { class: "remark" },
          "No client has sent a message yet. The first one appears here and in the stream.",
        ),
      unrecorded &&
        element(
          "p",
          { class: "remark" },
          "Some guards do not record messages: their verdicts are here, but not the text. Run them with ",
          element("code", null, "--set journal.payloads=true"),
          " to see it.",
        ),
    );
  }

  emptyState() {
    const command = (text) => element("pre", { class: "command", tabindex: "0" }, text);
    return element(
      "div",
      { class: "panel start" },
      element("h2", null, "No guard is running on this machine"),
      element("p", null, "Put the guard in front of a server, and it appears here at once:"),
      element(
        "ol",
        null,
        element("li", null, "All servers of a client, such as Claude Desktop: ", command("assay wrap --client claude-desktop")),
        element("li", null, "One server, by its command: ", command("assay guard -- python my_server.py")),
        element(
          "li",
          null,
          "One server, by its URL: ",
          command("assay guard --listen 127.0.0.1:8080 --target https://example.com/mcp"),
        ),
      ),
      element(
        "p",
        { class: "remark" },
        "A guard is shown by its journal. One whose journal is off is not shown.",
      ),
    );
  }
}
