/** Findings, grouped by rule, tool and place: since when, how often, and what enforce mode would have blocked. */

import { read } from "./console_api.js";
import { askForException } from "./console_exception.js";
import { filterOf, streamOf } from "./console_filter.js";
import { ago, button, dateAndTime, saveExport, screenHead, sparkline, stateTag } from "./console_parts.js";
import { routeTo } from "./console_router.js";
import { ConsoleScreen } from "./console_screen.js";
import { choice, code, element, fill } from "./dom.js";
import { compareView, ruleView, todoView } from "./finding_view.js";
import { arrange, refill } from "./patch.js";
import { counted, number } from "./text.js";

const BY = {
  rule: ["Rule", (group) => group.rule],
  tool: ["Tool", (group) => subjectOf(group)],
  place: ["Place", (group) => group.at || "the message as a whole"],
  server: ["Server", (group, store) => store.serverName(group.server)],
};

/** What a group is about: the tool that is called or listed, another entry of a list, or the method. */
function subjectOf(group) {
  return group.tool || group.entry.replace(/^tool /, "") || group.method || "a message";
}

const RELOAD = 10_000;
/** Milliseconds between two requests for the totals, which events do not have. */

const LEAST_BARS = 12;
/** Bars of a trend: a short one stands at its end, as what came last. */

function outcome(group) {
  const parts = [
    group.blocked > 0 && stateTag(`${number(group.blocked)} blocked`, "blocked"),
    group.wouldBlock > 0 &&
      stateTag(`${number(group.wouldBlock)} would block`, "would-block", {
        title: "forwarded in audit mode; enforce mode would block it",
      }),
    group.quarantined > 0 && stateTag(`${number(group.quarantined)} quarantined`, "error"),
    group.wouldQuarantine > 0 &&
      stateTag(`${number(group.wouldQuarantine)} would be quarantined`, "would-block", {
        title: "forwarded in audit mode; enforce mode would quarantine it",
      }),
  ].filter(Boolean);
  return parts.length > 0 ? parts : [stateTag("reported", "reported")];
}

function trendOf(group) {
  const { counts } = group.trend;
  const padding = new Array(Math.max(0, LEAST_BARS - counts.length)).fill(0);
  return sparkline([...padding, ...counts], `${counted(group.count, "finding")}, last ${ago(group.last)}`);
}

function sampleLink(seq) {
  return element("a", { href: routeTo("message", seq) }, `#${number(seq)}`);
}

/** One group, which is updated in place. */
class GroupRow {
  constructor(screen, group) {
    this.screen = screen;
    this.summary = element("summary", { "data-row": true });
    this.body = element("div", { class: "row-body" });
    this.node = element("details", { class: "row finding-group", "data-id": group.id }, this.summary, this.body);
    this.node.addEventListener("toggle", () => this.node.open && this.showBody());
    this.update(group);
  }

  update(group) {
    const [age, server] = [ago(group.last), this.screen.store.serverName(group.server)];
    if (group === this.group && age === this.age && server === this.server) return;
    Object.assign(this, { group, age, server });
    refill(
      this.summary,
      element(
        "span",
        { class: "row-main" },
        element(
          "span",
          { class: "row-title" },
          code(group.rule),
          element("span", null, subjectOf(group)),
          group.entry && element("span", { class: "row-about" }, `in ${group.method}`),
          element("span", { class: "row-about" }, server),
        ),
        element(
          "span",
          { class: "row-sentence" },
          group.at ? code(group.at) : "the message as a whole",
          `: expected ${group.expected}, found ${group.found}`,
        ),
      ),
      element("span", { class: "group-outcome" }, ...outcome(group)),
      element(
        "span",
        { class: "group-trend" },
        trendOf(group),
        element("span", { class: "quiet-text" }, age),
      ),
      element("span", { class: "row-count" }, element("span", { class: "times" }, "× "), number(group.count)),
    );
    if (this.node.open) this.showFigures();
  }

  showBody() {
    const { group, screen } = this;
    const about = screen.rules[group.rule] ?? { id: group.rule, asks: "" };
    this.compared = element("div");
    this.figures = element("p", { class: "quiet-text" });
    this.samples = element("p", { class: "samples" });
    const { rule, tool } = group;
    const messages = streamOf({ rule, tool, server: screen.store.serverName(group.server) });
    fill(
      this.body,
      element("h3", { class: "unseen" }, `${group.rule} in ${subjectOf(group)}`),
      this.compared,
      element(
        "div",
        { class: "finding-body" },
        element(
          "div",
          null,
          this.figures,
          this.samples,
          element(
            "div",
            { class: "tools" },
            element("a", { class: "button", href: messages }, "Show in the stream"),
            button("Make an exception…", () => askForException(group.rule, group.tool, group.server)),
          ),
        ),
        ruleView({ ...about, effect: about.action }),
      ),
    );
    this.showFigures();
  }

  showFigures() {
    const { group } = this;
    refill(this.compared, compareView(group, "Found, the last time"), todoView(group.hint));
    refill(
      this.figures,
      `${counted(group.count, "finding")} from the ${group.party}, first ${dateAndTime(group.first)}, last ${dateAndTime(group.last)}.`,
    );
    const links = group.samples
      .slice(0, 10)
      .map((seq) => element("span", { "data-key": seq }, sampleLink(seq), " "));
    refill(this.samples, links.length > 0 && element("span", { "data-key": "title" }, "Messages: "), ...links);
  }
}

export class FindingsScreen extends ConsoleScreen {
  constructor(store) {
    super(store);
    this.groups = new Map();
    this.rows = new Map();
    this.sections = new Map();
    this.rules = {};
    this.by = "rule";
    this.sentence = element("p", { class: "lead-sentence" });
    this.body.className = "findings-body";
    const grouped = element(
      "span",
      { class: "with-label" },
      "Group by",
      choice(
        "Group by",
        Object.entries(BY).map(([value, [label]]) => [value, label]),
        this.by,
        (by) => this.setBy(by),
      ),
    );
    this.sarif = button("Export as SARIF", () => this.export(), {
      title: "Places in it are lines of the journal, which the stream exports",
    });
    this.node = element(
      "section",
      { class: "findings-screen" },
      screenHead("Findings", null, grouped, this.sarif),
      this.sentence,
      this.body,
    );
    this.reload = this.whileShown(RELOAD, () => this.load());
    this.redraw = this.whileShown(250, () => this.render());
    store.on("board:findings", (data) => this.merge(data.groups));
    this.showAges();
  }

  restart() {
    this.groups.clear();
    super.restart();
  }

  async fetch() {
    const answer = await read("findings");
    this.groups = new Map(answer.groups.map((each) => [each.id, each]));
    this.rules = answer.rules;
    this.totals = answer;
  }

  export() {
    const chosen = this.server === null ? {} : { filter: filterOf({ server: this.store.serverName(this.server) }) };
    return saveExport({ format: "sarif", ...chosen });
  }

  /** Take groups that have changed; a screen that is not shown asks for all of them when it is. */
  merge(groups) {
    if (!this.isShown) return;
    for (const each of groups) this.groups.set(each.id, each);
    this.redraw();
    this.reload();
  }

  setBy(by) {
    this.by = by;
    this.order.clear();
    this.render();
  }

  get shown() {
    return [...this.groups.values()].filter((each) => this.server === null || each.server === this.server);
  }

  showSentence() {
    this.sentence.hidden = this.shown.length === 0 && this.server === null;
    const count = this.shown.reduce((sum, each) => sum + each.count, 0);
    const { wouldBlock = 0, blocked = 0 } = this.totals ?? {};
    const sentence = [
      wouldBlock > 0 &&
        element("strong", null, `Enforce mode would have blocked ${counted(wouldBlock, "more message")}. `),
      blocked > 0 && `${counted(blocked, "message was", "messages were")} blocked. `,
      wouldBlock + blocked === 0 && "No message was blocked, and enforce mode would block none. ",
      `${counted(count, "finding")} in ${counted(this.shown.length, "group")}.`,
    ];
    const only = this.server !== null && [
      " Only ",
      element("strong", null, this.store.serverName(this.server)),
      ". ",
      element("a", { href: routeTo("findings") }, "Show all servers"),
    ];
    refill(this.sentence, ...sentence.filter(Boolean), only);
  }

  render() {
    const groups = this.shown;
    this.showSentence();
    this.sarif.hidden =
      !this.store.state.formats.includes("sarif") || groups.length === 0;
    if (groups.length === 0) {
      this.rows.clear();
      this.fillEmpty(
        this.store.rows.newest === 0
          ? "No messages yet. Findings appear here as soon as a guard reports one."
          : "No findings: every message so far is valid.",
      );
      return;
    }
    const [rows, sections] = [this.rows, this.sections];
    this.rows = new Map();
    this.sections = new Map();
    this.keepFocus(() => arrange(this.body, this.ordered(groups).map((each) => this.section(each, rows, sections))));
  }

  /**
   * Return the sections, `{key, all}`, with the most findings first.
   *
   * While groups keep their places, one that is new is in a section of its own at the end.
   */
  ordered(groups) {
    const keyOf = (group) => BY[this.by][1](group, this.store);
    const counts = new Map();
    for (const each of groups) counts.set(keyOf(each), (counts.get(keyOf(each)) ?? 0) + each.count);
    const places = [...counts].sort((one, other) => other[1] - one[1]).map(([key]) => key);
    const place = new Map(places.map((key, at) => [key, at]));
    const compare = (one, other) => place.get(keyOf(one)) - place.get(keyOf(other)) || other.count - one.count;
    const sections = [];
    for (const group of this.steady(groups, (each) => each.id, compare)) {
      if (sections.at(-1)?.key !== keyOf(group)) sections.push({ key: keyOf(group), all: [] });
      sections.at(-1).all.push(group);
    }
    return sections;
  }

  /** Return the node of a section. *rows* and *sections* are those that were shown before, and are used again. */
  section({ key, all }, rows, sections) {
    const name = this.sections.has(`${this.by} ${key}`) ? `${this.by} ${key} ${all[0].id}` : `${this.by} ${key}`;
    const { node, head } = sections.get(name) ?? this.sectionNode();
    this.sections.set(name, { node, head });
    const count = all.reduce((sum, each) => sum + each.count, 0);
    const about = this.by === "rule" ? this.rules[key]?.asks : null;
    refill(
      head,
      element(
        "div",
        { class: "group-head" },
        element("h2", null, this.by === "rule" || this.by === "place" ? code(key) : key),
        element("span", { class: "group-count" }, counted(count, "finding")),
      ),
      about && element("p", { class: "group-about" }, about),
    );
    arrange(node, [head, ...all.map((group) => this.rowOf(group, rows))]);
    return node;
  }

  sectionNode() {
    return { node: element("div", { class: `group by-${this.by}` }), head: element("div") };
  }

  rowOf(group, before) {
    const row = before.get(group.id) ?? new GroupRow(this, group);
    row.update(group);
    this.rows.set(group.id, row);
    return row.node;
  }
}
