/** What the servers offer: tools, prompts and resources, against the lock and the list before. */

import { read } from "./console_api.js";
import { dateAndTime, notice, screenHead, stateTag } from "./console_parts.js";
import { go, routeTo } from "./console_router.js";
import { ConsoleScreen } from "./console_screen.js";
import { code, element, prose } from "./dom.js";
import { jsonView } from "./json_tree.js";
import { arrange, refill } from "./patch.js";
import { counted, number, sentence } from "./text.js";

const TITLES = { tools: "Tools", prompts: "Prompts", resources: "Resources", resourceTemplates: "Resource templates" };
const SINCE = { added: ["new in this list", "warning"], changed: ["changed in this list", "warning"] };
const LOCKED = {
  same: ["as locked", "good"],
  added: ["not in the lock", "warning"],
  changed: ["differs from the lock", "error"],
};

function invalidity(entry) {
  if (entry.wouldQuarantine) return "Enforce mode would quarantine it: ";
  return entry.quarantined ? "Quarantined: " : "Not judged: ";
}

function tagsOf(entry) {
  return [
    entry.quarantined && stateTag("quarantined", "error"),
    entry.wouldQuarantine && stateTag("would be quarantined", "would-block"),
    !entry.judged && !entry.quarantined && !entry.wouldQuarantine && stateTag("not judged", "warning"),
    LOCKED[entry.lock] && stateTag(...LOCKED[entry.lock]),
    SINCE[entry.since] && stateTag(...SINCE[entry.since]),
    entry.readOnly && stateTag("read-only", "note"),
    entry.dialect &&
      element(
        "span",
        { class: "tag" },
        entry.dialect.replace(/^https?:\/\/json-schema\.org\//, "").replace(/\/schema#?$/, ""),
      ),
  ].filter(Boolean);
}

/** Say why a server has no lists here. */
function missingLists(contract, server) {
  if (server.payloads === true && contract.count === null)
    return "No list yet: it appears here as soon as a client asks the server for one.";
  const count = contract.count === null ? "" : `${counted(contract.count, "tool")}. `;
  return count + sentence(contract.why);
}

class EntryRow {
  constructor(entry) {
    const head = element(
      "summary",
      { "data-row": true },
      element(
        "span",
        { class: "row-main" },
        element(
          "span",
          { class: "row-title" },
          element("span", null, entry.name),
          entry.title && entry.title !== entry.name && element("span", { class: "row-about" }, entry.title),
        ),
        element(
          "span",
          { class: "row-sentence clamp" },
          String(entry.definition.description ?? entry.definition.uri ?? entry.definition.uriTemplate ?? ""),
        ),
      ),
      element("span", { class: "tags" }, ...tagsOf(entry)),
      element("span", { class: "row-count" }, number(entry.tokens), element("span", { class: "times" }, " tokens")),
    );
    this.node = element("details", { class: "row entry", "data-name": entry.name }, head);
    this.node.addEventListener(
      "toggle",
      () => this.node.open && this.node.childElementCount === 1 && this.node.append(this.body(entry)),
    );
  }

  body(entry) {
    const changes = entry.changes.map((each) =>
      element(
        "li",
        null,
        each.weight && [stateTag(each.weight, each.weight === "breaking" ? "error" : "note"), " "],
        each.at && [code(each.at), " "],
        each.what,
      ),
    );
    return element(
      "div",
      { class: "row-body" },
      entry.why.length > 0 &&
        element(
          "div",
          { class: "banner tone-warning" },
          element("strong", null, invalidity(entry)),
          element("ul", null, ...entry.why.map((each) => element("li", null, each))),
        ),
      changes.length > 0 && [element("h4", null, "Changes"), element("ul", { class: "changes" }, ...changes)],
      jsonView(JSON.stringify(entry.definition)),
    );
  }
}

export class ContractsScreen extends ConsoleScreen {
  constructor(store) {
    super(store);
    this.contracts = [];
    this.rows = new Map();
    this.groups = new Map();
    this.lead = element("p", { class: "lead-sentence" });
    this.why = element("div");
    this.picker = element("select", {
      class: "button",
      "aria-label": "Server",
      on: { change: () => go(routeTo("contracts", null, { server: this.picker.value })) },
    });
    this.node = element(
      "section",
      null,
      screenHead("Contracts", "What a server lists now, against the lock and against the list before.", this.picker),
      this.body,
    );
    store.on(
      "board:contracts",
      this.whileShown(1000, () => this.load()),
    );
    store.on(
      "servers",
      this.whileShown(1000, () => this.render()),
    );
  }

  show(route) {
    const loaded = super.show(route);
    // Until the answer is there, this server's lists as they were last: not those of another server.
    if (this.contracts.length > 0) this.render();
    return loaded;
  }

  async fetch() {
    this.contracts = (await read("contracts")).contracts;
  }

  fail(error) {
    this.shown = null;
    super.fail(error);
  }

  render() {
    const { contracts } = this;
    this.showPicker();
    const contract =
      contracts.find((each) => each.server === this.server) ??
      contracts.find((each) => each.server === this.found && each.lists.length > 0) ??
      contracts.find((each) => each.lists.length > 0) ??
      contracts[0];
    if (contract === undefined) {
      this.shown = null;
      this.fillEmpty("No server has listed anything yet.");
      return;
    }
    // A server that lists later must not take the place of the one that is read.
    this.found = contract.server;
    this.picker.value = String(contract.server);
    const server = this.serverOf(contract);
    const key = JSON.stringify([server.name, contract]);
    if (key === this.shown) return;
    this.shown = key;
    const inEntry = CSS.escape(document.activeElement?.closest("details.entry")?.dataset.name ?? "");
    const open = new Set([...this.body.querySelectorAll("details.entry[open]")].map((each) => each.dataset.name));
    const before = this.rows;
    this.rows = new Map();
    this.keepFocus(
      () => this.showContract(contract, server, before),
      () => this.body.querySelector(`details.entry[data-name="${inEntry}"] summary`),
    );
    for (const each of this.body.querySelectorAll("details.entry")) if (open.has(each.dataset.name)) each.open = true;
  }

  /** Offer the servers; a list of them that is open is left alone where nothing has changed. */
  showPicker() {
    const choice = ({ server }) =>
      element("option", { value: server, "data-key": server }, this.store.serverName(server));
    this.picker.hidden = this.contracts.length < 2;
    refill(this.picker, ...this.contracts.map(choice));
  }

  serverOf(contract) {
    return (
      this.store.server(contract.server) ?? {
        id: contract.server,
        name: this.store.serverName(contract.server),
      }
    );
  }

  showContract(contract, server, before) {
    const lock =
      { locked: "Its lists are held against the lock.", none: "It has no lock: `assay lock -- COMMAND` makes one." }[
        contract.lock
      ] ?? contract.lock;
    const tokens = contract.lists.reduce((sum, each) => sum + each.tokens, 0);
    const cost = tokens > 0 ? ` Its lists take about ${number(tokens)} tokens in every conversation.` : "";
    refill(this.lead, element("strong", null, server.name), ": ", prose(lock), cost);
    refill(this.why, contract.why && notice("note", prose(missingLists(contract, server))));
    arrange(this.body, [this.lead, this.why, ...contract.lists.map((each) => this.listView(server, each, before))]);
  }

  /** Return the parts of a list, which are made once for each kind of list. */
  group(list) {
    if (!this.groups.has(list)) {
      const [node, head, removed] = [element("div", { class: "group" }), element("div"), element("div")];
      this.groups.set(list, { node, head, removed });
    }
    return this.groups.get(list);
  }

  listView(server, listing, before) {
    const about = [
      listing.time !== null && `listed ${dateAndTime(listing.time)}`,
      !listing.complete && "not all pages are known",
      `about ${number(listing.tokens)} tokens`,
    ]
      .filter(Boolean)
      .join(", ");
    const { node, head, removed } = this.group(listing.list);
    refill(
      head,
      element(
        "div",
        { class: "group-head" },
        element(
          "h2",
          null,
          `${TITLES[listing.list] ?? listing.list} `,
          element("span", { class: "group-count" }, number(listing.entries.length)),
        ),
        element(
          "span",
          { class: "group-count" },
          about,
          listing.seq !== null && [" · ", element("a", { href: routeTo("message", listing.seq) }, "show the message")],
        ),
      ),
    );
    refill(
      removed,
      listing.removed.length > 0 &&
        notice("warning", "No longer listed: ", ...listing.removed.map((each) => [code(each), " "])),
    );
    const rows = listing.entries.map((entry) => this.rowOf(server, listing, entry, before));
    arrange(node, [head, removed, ...rows]);
    return node;
  }

  /** Return the row of an entry: the one of *before* where nothing has changed, so that it stays open and focused. */
  rowOf(server, listing, entry, before) {
    const key = JSON.stringify([server.id, listing.list, entry]);
    const row = before.get(key) ?? new EntryRow(entry).node;
    before.delete(key);
    this.rows.set(key, row);
    return row;
  }
}
