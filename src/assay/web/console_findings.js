/** Findings, grouped by rule, tool and place: since when, how often, and what enforce would have stopped. */

import { read } from "./console_api.js";
import { askForException } from "./console_exception.js";
import { filterOf, streamOf } from "./console_filter.js";
import { ago, button, dateAndTime, saveExport, screenHead, sparkline, stateTag } from "./console_parts.js";
import { routeTo } from "./console_router.js";
import { ConsoleScreen } from "./console_screen.js";
import { choice, code, element, fill } from "./dom.js";
import { compareView, ruleView, todoView } from "./finding_view.js";
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
    group.stopped > 0 && stateTag(`${number(group.stopped)} stopped`, "error"),
    group.wouldStop > 0 &&
      stateTag(`${number(group.wouldStop)} would be stopped`, "warning", {
        title: "forwarded under audit; enforce would stop it",
      }),
    group.quarantined > 0 && stateTag(`${number(group.quarantined)} quarantined`, "error"),
    group.wouldRemove > 0 &&
      stateTag(`${number(group.wouldRemove)} would be removed`, "warning", {
        title: "broken, passed: forwarded under audit; enforce would remove it",
      }),
  ].filter(Boolean);
  return parts.length > 0 ? parts : [stateTag("reported", "note")];
}

function trendOf(group) {
  const { counts } = group.trend;
  const padding = new Array(Math.max(0, LEAST_BARS - counts.length)).fill(0);
  return sparkline([...padding, ...counts], `${counted(group.count, "finding")}, last ${ago(group.last)}`);
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
    this.group = group;
    fill(
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
          element("span", { class: "row-about" }, this.screen.store.serverName(group.server)),
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
        element("span", { class: "quiet-text" }, ago(group.last)),
      ),
      element("span", { class: "row-count" }, element("span", { class: "times" }, "× "), number(group.count)),
    );
    if (this.node.open) this.showFigures();
  }

  showBody() {
    const { group, screen } = this;
    const about = screen.rules[group.rule] ?? { id: group.rule, asks: "" };
    this.figures = element("p", { class: "quiet-text" });
    this.samples = element("p", { class: "samples" });
    const { rule, tool } = group;
    const messages = streamOf({ rule, tool, server: screen.store.serverName(group.server) });
    fill(
      this.body,
      element("h3", { class: "unseen" }, `${group.rule} in ${subjectOf(group)}`),
      compareView(group, "Found, the last time"),
      todoView(group.hint),
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
            screen.store.can("exception") &&
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
    fill(
      this.figures,
      `${counted(group.count, "finding")} from the ${group.party}, first ${dateAndTime(group.first)}, last ${dateAndTime(group.last)}.`,
    );
    const links = group.samples
      .slice(0, 10)
      .map((seq) => [element("a", { href: routeTo("message", seq) }, `#${number(seq)}`), " "]);
    fill(this.samples, links.length > 0 && "Messages: ", ...links);
  }
}

export class FindingsScreen extends ConsoleScreen {
  constructor(store) {
    super(store);
    this.groups = new Map();
    this.rows = new Map();
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
    this.redraw = this.whileShown(1000, () => this.render());
    store.on("board:findings", (data) => this.merge(data.groups));
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

  merge(groups) {
    for (const each of groups) {
      this.groups.set(each.id, each);
      this.rows.get(each.id)?.update(each);
    }
    if (groups.some((each) => !this.rows.has(each.id))) this.redraw();
    this.reload();
  }

  setBy(by) {
    this.by = by;
    this.render();
  }

  get shown() {
    return [...this.groups.values()].filter((each) => this.server === null || each.server === this.server);
  }

  showSentence() {
    this.sentence.hidden = this.shown.length === 0 && this.server === null;
    const count = this.shown.reduce((sum, each) => sum + each.count, 0);
    const { wouldStop = 0, stopped = 0 } = this.totals ?? {};
    const sentence = [
      wouldStop > 0 &&
        element("strong", null, `Enforce would have stopped ${counted(wouldStop, "message")} that audit forwarded. `),
      stopped > 0 && `${counted(stopped, "message was", "messages were")} stopped. `,
      wouldStop + stopped === 0 && "No message was stopped, and enforce would stop none. ",
      `${counted(count, "finding")} in ${counted(this.shown.length, "group")}.`,
    ];
    fill(this.sentence, ...sentence.filter(Boolean));
    if (this.server !== null)
      this.sentence.append(
        " Only ",
        element("strong", null, this.store.serverName(this.server)),
        ". ",
        element("a", { href: routeTo("findings") }, "Show all servers"),
      );
  }

  render() {
    const groups = this.shown;
    this.showSentence();
    this.sarif.hidden =
      !(this.store.can("export") && this.store.state.formats.includes("sarif")) || groups.length === 0;
    if (groups.length === 0) {
      this.rows.clear();
      this.fillEmpty(
        this.store.rows.newest === 0
          ? "No messages yet. Findings appear here as soon as a guard reports one."
          : "No findings: every message so far is valid.",
      );
      return;
    }
    const [, keyOf] = BY[this.by];
    const sections = grouped(groups, (each) => keyOf(each, this.store));
    const ordered = [...sections]
      .map(([key, all]) => ({ key, all, count: all.reduce((sum, each) => sum + each.count, 0) }))
      .sort((one, other) => other.count - one.count);
    const focused = document.activeElement;
    const before = this.rows;
    this.rows = new Map();
    fill(this.body, ...ordered.map((each) => this.section(each, before)));
    if (focused?.isConnected && focused !== document.activeElement) focused.focus({ preventScroll: true });
  }

  section({ key, all, count }, before) {
    const rows = all
      .sort((one, other) => other.count - one.count)
      .map((group) => {
        const row = before.get(group.id) ?? new GroupRow(this, group);
        if (row.group !== group) row.update(group);
        this.rows.set(group.id, row);
        return row.node;
      });
    const about = this.by === "rule" ? this.rules[key]?.asks : null;
    return element(
      "div",
      { class: `group by-${this.by}` },
      element(
        "div",
        { class: "group-head" },
        element("h2", null, this.by === "rule" || this.by === "place" ? code(key) : key),
        element("span", { class: "group-count" }, counted(count, "finding")),
      ),
      about && element("p", { class: "group-about" }, about),
      ...rows,
    );
  }
}

function grouped(items, keyOf) {
  const groups = new Map();
  for (const each of items) {
    const key = keyOf(each);
    if (!groups.has(key)) groups.set(key, []);
    groups.get(key).push(each);
  }
  return groups;
}
