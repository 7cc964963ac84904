/** The findings of the report: in groups by rule, tool, place or server; each opens to its messages. */

import { choice, code, element, fill } from "./dom.js";
import { findingView, levelBadge } from "./finding_view.js";
import { isEmpty, matches, searchable } from "./search.js";
import { counted, number, period } from "./text.js";

const PAGE = 100;
/** Rows that are shown at first. */

const PRINTED = 60;
/** Rows that are expanded for printing. */

function subject(group) {
  return group.tool || group.entry || group.method || "(no method)";
}

const WAYS = {
  rule: { label: "Rule", of: (group) => group.rule },
  tool: { label: "Tool", of: subject },
  place: { label: "Place", of: (group) => group.place || "the message as a whole" },
  server: { label: "Server", of: (group) => group.server || "(no name)" },
};

function placeText(at) {
  return at === null ? "" : `${at[1] ? `line ${number(at[1])}` : "the end"} of ${at[0]}`;
}

/** "lines 9 to 58 of a.jsonl", or the place alone if there is only one. */
function extent(group) {
  const [first, last] = [group.first, group.last];
  if (first === null) return "";
  if (first[0] === last[0] && first[1] === last[1]) return placeText(first);
  if (first[0] === last[0]) return `lines ${number(first[1])} to ${last[1] ? number(last[1]) : "the end"} of ${first[0]}`;
  return `from ${placeText(first)} to ${placeText(last)}`;
}

class FindingRow {
  constructor(group, data, talks) {
    Object.assign(this, { group, data, talks });
    const samples = group.samples.map(([message, finding]) => [data.messages[message], finding]);
    const texts = samples.flatMap(([message, finding]) => [message.title, message.text, message.findings[finding].expected, message.findings[finding].found]);
    const rule = data.rules[group.rule];
    this.samples = samples;
    const fields = { rule: group.rule, tool: `${group.tool} ${group.entry}`, method: group.method, server: group.server, level: group.level };
    this.entry = searchable(fields, group.place, group.party, group.first?.[0] ?? "", rule.asks, rule.fix, ...texts);
    this.node = null;
  }

  /** Make the row when it is first shown: a page may have a thousand. */
  build() {
    if (this.node !== null) return this.node;
    const { group } = this;
    this.body = element("div", { class: "row-body" });
    this.summary = element(
      "summary",
      { "data-row": true },
      levelBadge(group.level),
      element("span", { class: "row-main" }, this.headline(), this.sentence()),
      element("span", { class: "row-count" }, number(group.count), element("span", { class: "times" }, " ×")),
    );
    this.node = element("details", { class: "row", id: group.id, on: { toggle: () => this.toggled() } }, this.summary, this.body);
    return this.node;
  }

  headline() {
    const { group } = this;
    const about = [group.method, group.tool].filter(Boolean).join(" ") || "a message";
    return element("span", { class: "row-title" }, code(group.rule), element("span", { class: "row-about" }, `${about} from the ${group.party}`), group.entry && element("span", { class: "row-about" }, group.entry), group.known && element("span", { class: "badge" }, "known"));
  }

  sentence() {
    const { group } = this;
    const first = this.samples[0]?.[0].findings[this.samples[0][1]];
    const said = first ? ` expected ${first.expected}, found ${first.found}` : ` ${this.data.rules[group.rule].asks}`;
    return element("span", { class: "row-sentence" }, group.place ? code(group.place) : "the message:", said);
  }

  toggled() {
    if (!this.node.open) return;
    this.show();
    if (this.isQuiet) return;
    history.replaceState(null, "", `#${this.group.id}`);
  }

  show() {
    if (this.body.childNodes.length > 0) return;
    const where = [counted(this.group.count, "time"), extent(this.group), this.group.period && period(...this.group.period)].filter(Boolean).join("; ");
    this.sample = element("div", { class: "sample" });
    const labels = this.samples.map((_, at) => [at, `${at + 1}`]);
    this.pager = labels.length > 1 ? choice("Which message", labels, 0, (at) => this.choose(at)) : null;
    const pager = this.pager && element("div", { class: "pager" }, element("span", null, "Sample messages"), this.pager);
    fill(this.body, element("p", { class: "quiet-text row-where" }, where), pager, this.sample);
    this.choose(0);
  }

  choose(at) {
    if (this.samples.length === 0) {
      fill(this.sample, element("p", { class: "remark" }, "No message of this group is on the page."));
      return;
    }
    const [message, finding] = this.samples[at];
    const rule = this.data.rules[this.group.rule];
    const talk = this.talks.find(message);
    const show = talk && element("p", { class: "no-print" }, element("a", { href: `#${talk.id}` }, "Show it in its conversation"));
    fill(this.sample, findingView(message.findings[finding], message, rule, show ? [show] : []));
  }

  /** Open the row, with the sample at *line* if there is one. */
  open(line) {
    this.build();
    this.node.open = true;
    this.show();
    const at = this.samples.findIndex(([message]) => message.line === line);
    if (at > 0) this.pager.children[at].click();
  }
}

/** Return the section. */
export function findingsSection(data) {
  const talks = new Map(data.talks.map((talk) => [`${talk.file}\0${talk.server}\0${talk.number}`, talk]));
  const finder = { find: (message) => talks.get(`${message.file}\0${message.server}\0${message.conversation}`) };
  const rows = data.groups.map((group) => new FindingRow(group, data, finder));
  const list = element("div", { class: "groups" });
  let way = "rule";
  let query = { words: [], fields: [] };
  let most = PAGE;

  const render = () => {
    const shown = rows.filter((row) => matches(query, row.entry));
    const groups = new Map();
    for (const row of shown.slice(0, most)) {
      const name = WAYS[way].of(row.group);
      groups.set(name, [...(groups.get(name) ?? []), row]);
    }
    const parts = [...groups].map(([name, members]) => groupView(name, members, way, data));
    const more = shown.length > most ? element("button", { type: "button", class: "more", on: { click: () => { most += 5 * PAGE; render(); } } }, `Show ${number(Math.min(5 * PAGE, shown.length - most))} more of ${number(shown.length)}`) : null;
    const nothing = shown.length === 0 ? element("p", { class: "empty" }, rows.length === 0 ? "No findings: every message is valid." : "No finding matches the search.") : null;
    list.className = `groups by-${way}`;
    fill(list, ...parts, more, nothing);
    return shown.length;
  };

  const ways = Object.keys(WAYS).filter((each) => each !== "server" || data.servers.length > 1);
  const switched = choice("Group the findings by", ways.map((each) => [each, WAYS[each].label]), way, (chosen) => {
    way = chosen;
    render();
  });
  const left = data.leftOut > 0 ? element("p", { class: "remark" }, `${counted(data.leftOut, "finding")} of further kinds are not listed; assay check --format ndjson lists all.`) : null;
  const head = element("div", { class: "section-head" }, element("h2", { id: "findings-title" }, "Findings"), rows.length > 1 && element("div", { class: "with-label no-print" }, element("span", { "aria-hidden": "true" }, "Group by"), switched));
  const node = element("section", { id: "findings", "aria-labelledby": "findings-title" }, head, list, left);
  render();

  return {
    node,
    title: "Findings",
    count: data.totals.findings,
    filter(wanted) {
      query = wanted;
      most = PAGE;
      const count = render();
      return isEmpty(wanted) ? rows.length : count;
    },
    open(id, line) {
      const row = rows.find((each) => each.group.id === id);
      if (row === undefined) return false;
      if (!matches(query, row.entry)) {
        query = { words: [], fields: [] };
      }
      most = Math.max(most, rows.indexOf(row) + 1);
      render();
      row.open(line);
      row.summary.focus({ preventScroll: true });
      row.node.scrollIntoView({ block: "start" });
      return true;
    },
    expand() {
      for (const row of rows.filter((each) => each.node?.isConnected).slice(0, PRINTED)) {
        row.isQuiet = true;
        row.open();
      }
    },
  };
}

function groupView(name, members, way, data) {
  const total = members.reduce((sum, each) => sum + each.group.count, 0);
  const about = way === "rule" ? element("p", { class: "group-about" }, data.rules[name].asks) : null;
  return element(
    "section",
    { class: "group" },
    element("div", { class: "group-head" }, element("h3", null, code(name)), element("span", { class: "group-count" }, counted(total, "finding"))),
    about,
    ...members.map((each) => each.build()),
  );
}
