/** The conversations of the report: a list, and the timeline of one of them. */

import { activity } from "./charts.js";
import { element, fill, moreButton } from "./dom.js";
import { isEmpty, matches, NOTHING, searchable, searchFor } from "./search.js";
import { counted, duration, number, time } from "./text.js";
import { timelineView } from "./timeline.js";

const PAGE = 60;

function nameOf(talk) {
  const name = talk.number ? `Conversation ${number(talk.number)}` : talk.file.split("/").at(-1);
  return talk.server && talk.number ? `${talk.server}, ${name.toLowerCase()}` : name;
}

function partiesOf(talk) {
  return [talk.client, talk.peer].filter(Boolean).join(" ↔ ");
}

/** What is known of a conversation, without what *isAlike* in all of them. */
function detailOf(talk, isAlike = {}) {
  const place = isAlike.file ? null : talk.number ? talk.file : talk.server;
  return [
    talk.period && time(talk.period[0]),
    !isAlike.parties && partiesOf(talk),
    !isAlike.revision && talk.revision,
    place,
  ]
    .filter(Boolean)
    .join(" · ");
}

function activityChart(data) {
  const { points, width } = data.activity;
  if (points.length < 2) return null;
  const describe = (at) =>
    `${time(points[at][0])} UTC: ${counted(points[at][1], "message")}, ${number(points[at][2])} with findings`;
  return activity(
    `Messages over time (UTC), ${duration(width * 1000)} a bar; those with findings in red`,
    points,
    describe,
  );
}

function entryOf(talk) {
  const titles = talk.rows.map((row) => row[4]).join(" ");
  const fields = { server: talk.server, method: titles, tool: titles };
  return searchable(fields, nameOf(talk), talk.file, talk.client, talk.peer, talk.revision ?? "");
}

function areAlike(talks, valueOf) {
  return new Set(talks.map(valueOf)).size === 1;
}

/** The list of conversations, and the timeline of the chosen one. */
class Conversations {
  constructor(data, openFinding) {
    this.data = data;
    this.openFinding = openFinding;
    this.title = "Conversations";
    this.count = data.totals.conversations;
    this.groups = new Set(data.groups.map((each) => each.id));
    this.isAlike = {
      parties: areAlike(data.talks, partiesOf),
      revision: areAlike(data.talks, (each) => each.revision),
      file: areAlike(data.talks, (each) => each.file),
    };
    this.items = data.talks.map((talk) => ({ talk, entry: entryOf(talk), button: null }));
    this.chosen = null;
    this.most = PAGE;
    this.query = NOTHING;
    this.list = element("ul", { class: "talks" });
    const label = "Timeline of the chosen conversation";
    this.panel = element("div", {
      class: "panel",
      id: "timeline",
      role: "region",
      "aria-label": label,
      tabindex: "-1",
    });
    this.node = this.section();
  }

  section() {
    const box = { class: "talks-box", tabindex: "0", role: "group", "aria-label": "All conversations" };
    return element(
      "section",
      { id: "conversations", "aria-labelledby": "conversations-title" },
      element("h2", { id: "conversations-title" }, "Conversations"),
      activityChart(this.data),
      this.data.talksArePartial && this.sampled(),
      element("div", { class: "conversations" }, element("div", box, this.list), this.panel),
    );
  }

  sampled() {
    const { talks, totals, limits } = this.data;
    const total = `${totals.conversationsAreExact ? "" : "about "}${number(totals.conversations)}`;
    return element(
      "p",
      { class: "remark" },
      `The page has ${number(talks.length)} of ${total} conversations: `,
      "a random sample, always the same for the same recording, and some with findings. ",
      `Of each it has up to ${number(limits.rows)} messages.`,
    );
  }

  /** Return what a click on a row of the timeline does: it opens a finding of its messages; null without one. */
  opener(row) {
    for (const each of [row, row.answer]) {
      const found = each?.groups.find((name) => this.groups.has(name));
      if (found) return () => this.openFinding(found, each.line);
    }
    return null;
  }

  choose(item) {
    this.chosen = item;
    for (const each of this.items) each.button?.setAttribute("aria-pressed", String(each === item));
    fill(
      this.panel,
      element("h3", null, nameOf(item.talk)),
      element("p", { class: "quiet-text" }, detailOf(item.talk)),
      timelineView(item.talk, (row) => this.opener(row)),
    );
  }

  buttonOf(item) {
    const { talk } = item;
    const tone = talk.errors > 0 ? "error" : "warning";
    const found = element("span", { class: `talk-findings tone-${tone}` }, counted(talk.findings, "finding"));
    const pressed = String(item === this.chosen);
    item.button ??= element(
      "button",
      { type: "button", "data-row": true, "aria-pressed": pressed, on: { click: () => this.choose(item) } },
      element("span", { class: "talk-name" }, nameOf(talk)),
      element("span", { class: "talk-counts" }, counted(talk.messages, "message"), talk.findings > 0 && found),
      element("span", { class: "talk-detail" }, detailOf(talk, this.isAlike)),
    );
    return item.button;
  }

  render() {
    const shown = this.items.filter((each) => matches(this.query, each.entry));
    const buttons = shown.slice(0, this.most).map((each) => this.buttonOf(each));
    if (shown.length > this.most) buttons.push(moreButton(`Show all ${number(shown.length)}`, () => this.showAll()));
    fill(this.list, ...buttons.map((each) => element("li", null, each)));
    this.node.hidden = shown.length === 0 && !isEmpty(this.query);
    return shown;
  }

  showAll() {
    this.most = Infinity;
    this.render();
  }

  finish() {
    this.choose(this.render()[0]);
  }

  filter(query) {
    this.query = query;
    const shown = this.render();
    if (shown.length > 0 && !shown.includes(this.chosen)) this.choose(shown[0]);
    return shown.length;
  }

  open(id) {
    const item = this.items.find((each) => each.talk.id === id);
    if (item === undefined) return false;
    if (!matches(this.query, item.entry)) searchFor("");
    this.most = Math.max(this.most, this.items.indexOf(item) + 1);
    this.render();
    this.choose(item);
    this.panel.focus({ preventScroll: true });
    this.node.scrollIntoView({ block: "start" });
    return true;
  }
}

/** Return the section. *openFinding* opens a group of findings. */
export function conversationsSection(data, openFinding) {
  if (data.talks.length === 0) return { node: null, title: "Conversations", count: null };
  return new Conversations(data, openFinding);
}
