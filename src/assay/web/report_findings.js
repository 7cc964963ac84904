/** The findings of the report: in groups by rule, tool, place or server; each opens to its messages. */

import { choice, code, element, fill, moreButton, prose } from "./dom.js";
import { findingView, levelBadge } from "./finding_view.js";
import { isEmpty, matches, NOTHING, searchable, searchFor } from "./search.js";
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
  if (first[0] === last[0])
    return `lines ${number(first[1])} to ${last[1] ? number(last[1]) : "the end"} of ${first[0]}`;
  return `from ${placeText(first)} to ${placeText(last)}`;
}

class FindingRow {
  constructor(group, data, talkOf) {
    Object.assign(this, { group, data, talkOf });
    const samples = group.samples.map(([message, finding]) => [data.messages[message], finding]);
    const texts = samples.flatMap(([message, finding]) => [
      message.title,
      message.text,
      message.findings[finding].expected,
      message.findings[finding].found,
    ]);
    const rule = data.rules[group.rule];
    this.samples = samples;
    const fields = {
      rule: group.rule,
      tool: `${group.tool} ${group.entry}`,
      method: group.method,
      server: group.server,
      level: group.level,
    };
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
    this.node = element(
      "details",
      { class: "row", id: group.id, on: { toggle: () => this.toggled() } },
      this.summary,
      this.body,
    );
    return this.node;
  }

  headline() {
    const { group } = this;
    const about = [group.method, group.tool].filter(Boolean).join(" ") || "a message";
    return element(
      "span",
      { class: "row-title" },
      code(group.rule),
      element("span", { class: "row-about" }, `${about} from the ${group.party}`),
      group.entry && element("span", { class: "row-about" }, group.entry),
      group.known && element("span", { class: "badge" }, "known"),
    );
  }

  sentence() {
    const { group } = this;
    const first = this.samples[0]?.[0].findings[this.samples[0][1]];
    const said = first
      ? [" expected ", prose(first.expected), ", found ", first.found]
      : ` ${this.data.rules[group.rule].asks}`;
    return element(
      "span",
      { class: "row-sentence" },
      group.place ? element("code", { class: "row-place" }, group.place) : "the message:",
      said,
    );
  }

  toggled() {
    if (!this.node.open) return;
    this.show();
    if (this.isQuiet) return;
    history.replaceState(null, "", `#${this.group.id}`);
  }

  show() {
    if (this.body.childNodes.length > 0) return;
    const where = [
      counted(this.group.count, "time"),
      extent(this.group),
      this.group.period && period(...this.group.period),
    ]
      .filter(Boolean)
      .join("; ");
    this.sample = element("div", { class: "sample" });
    const labels = this.samples.map((_, at) => [at, `${at + 1}`]);
    this.pager = labels.length > 1 ? choice("Which message", labels, 0, (at) => this.choose(at)) : null;
    const pager =
      this.pager && element("div", { class: "pager" }, element("span", null, "Sample messages"), this.pager);
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
    const talk = this.talkOf(message);
    const show =
      talk && element("p", { class: "no-print" }, element("a", { href: `#${talk.id}` }, "Show it in its conversation"));
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

function keyOf(file, server, number) {
  return `${file}\0${server}\0${number}`;
}

/** As `Map.groupBy`, which browsers have only since 2024. */
function groupedBy(items, nameOf) {
  const groups = new Map();
  for (const each of items) groups.set(nameOf(each), [...(groups.get(nameOf(each)) ?? []), each]);
  return groups;
}

/** All findings, in groups by what is chosen. */
class Findings {
  constructor(data) {
    this.data = data;
    this.title = "Findings";
    this.count = data.totals.findings;
    this.way = "rule";
    this.query = NOTHING;
    this.most = PAGE;
    const talks = new Map(data.talks.map((talk) => [keyOf(talk.file, talk.server, talk.number), talk]));
    const talkOf = (message) => talks.get(keyOf(message.file, message.server, message.conversation));
    this.rows = data.groups.map((group) => new FindingRow(group, data, talkOf));
    this.list = element("div", { class: "groups" });
    this.node = element(
      "section",
      { id: "findings", "aria-labelledby": "findings-title" },
      this.head(),
      this.list,
      this.rest(),
    );
    this.open = this.open.bind(this);
    this.render();
  }

  head() {
    const ways = Object.keys(WAYS).filter((each) => each !== "server" || this.data.servers.length > 1);
    const labels = ways.map((each) => [each, WAYS[each].label]);
    const switched = choice("Group the findings by", labels, this.way, (chosen) => {
      this.way = chosen;
      this.render();
    });
    const grouping = element(
      "div",
      { class: "with-label no-print" },
      element("span", { "aria-hidden": "true" }, "Group by"),
      switched,
    );
    const title = element("h2", { id: "findings-title" }, "Findings");
    return element("div", { class: "section-head" }, title, this.rows.length > 1 && grouping);
  }

  rest() {
    const { leftOut } = this.data;
    if (leftOut === 0) return null;
    const text = `${counted(leftOut, "finding")} of other kinds are not listed; assay check --format ndjson lists all.`;
    return element("p", { class: "remark" }, text);
  }

  render() {
    const shown = this.rows.filter((row) => matches(this.query, row.entry));
    const groups = groupedBy(shown.slice(0, this.most), (row) => this.nameOf(row));
    this.list.className = `groups by-${this.way}`;
    const parts = [...groups].map(([name, members]) => this.groupView(name, members, this.total(name, shown)));
    fill(this.list, ...parts, this.more(shown.length), shown.length === 0 && this.empty());
    return shown.length;
  }

  nameOf(row) {
    return WAYS[this.way].of(row.group);
  }

  /** The number of findings with this name; of a rule, also those that are not listed. */
  total(name, shown) {
    if (this.way === "rule" && this.query === NOTHING) return this.data.rules[name].count;
    return shown.filter((row) => this.nameOf(row) === name).reduce((sum, row) => sum + row.group.count, 0);
  }

  groupView(name, members, total) {
    const title = element("h3", null, code(name));
    const count = element("span", { class: "group-count" }, counted(total, "finding"));
    return element(
      "section",
      { class: "group" },
      element("div", { class: "group-head" }, title, count),
      this.way === "rule" && element("p", { class: "group-about" }, this.data.rules[name].asks),
      ...members.map((each) => each.build()),
    );
  }

  more(total) {
    if (total <= this.most) return null;
    const text = `Show ${number(Math.min(5 * PAGE, total - this.most))} more of ${number(total)}`;
    return moreButton(text, () => {
      this.most += 5 * PAGE;
      this.render();
    });
  }

  empty() {
    const text = this.rows.length === 0 ? "No findings: every message is valid." : "No finding matches the search.";
    return element("p", { class: "empty" }, text);
  }

  filter(query) {
    this.query = isEmpty(query) ? NOTHING : query;
    this.most = PAGE;
    return this.render();
  }

  /** Open the group with this name, with the sample at *line* if there is one; false if there is no such group. */
  open(id, line) {
    const row = this.rows.find((each) => each.group.id === id);
    if (row === undefined) return false;
    if (!matches(this.query, row.entry)) searchFor("");
    this.most = Math.max(this.most, this.rows.indexOf(row) + 1);
    this.render();
    row.open(line);
    row.summary.focus({ preventScroll: true });
    row.node.scrollIntoView({ block: "start" });
    return true;
  }

  /** Open what is printed. */
  expand() {
    for (const row of this.rows.filter((each) => each.node?.isConnected).slice(0, PRINTED)) {
      row.isQuiet = true;
      row.open();
    }
  }
}

/** Return the section. */
export function findingsSection(data) {
  return new Findings(data);
}
