/** The conversations of the report: a list, and the timeline of one of them. */

import { activity } from "./charts.js";
import { element, fill } from "./dom.js";
import { isEmpty, matches, searchable } from "./search.js";
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
  return [talk.period && time(talk.period[0]), !isAlike.parties && partiesOf(talk), !isAlike.revision && talk.revision, place].filter(Boolean).join(" · ");
}

function activityChart(data) {
  const { points, width } = data.activity;
  if (points.length < 2) return null;
  const describe = (at) => `${time(points[at][0])} UTC: ${counted(points[at][1], "message")}, ${number(points[at][2])} with findings`;
  return activity(`Messages over time (UTC), ${duration(width * 1000)} a bar; those with findings in red`, points, describe);
}

/** Return the section. *openFinding* opens a group of findings. */
export function conversationsSection(data, openFinding) {
  if (data.talks.length === 0) return { node: null, title: "Conversations", count: null };
  const panel = element("div", { class: "panel", id: "timeline", role: "region", "aria-label": "Timeline of the chosen conversation", tabindex: "-1" });
  const list = element("ul", { class: "talks" });

  const known = new Set(data.groups.map((each) => each.id));
  const opener = (row) => {
    for (const each of [row, row.answer]) {
      const found = each?.groups.find((name) => known.has(name));
      if (found) return () => openFinding(found, each.line);
    }
    return null;
  };

  const differ = (values) => new Set(values).size > 1;
  const isAlike = { parties: !differ(data.talks.map(partiesOf)), revision: !differ(data.talks.map((each) => each.revision)), file: !differ(data.talks.map((each) => each.file)) };
  const entries = data.talks.map((talk) => ({
    talk,
    entry: searchable({ server: talk.server, method: talk.rows.map((row) => row[4]).join(" "), tool: talk.rows.map((row) => row[4]).join(" ") }, nameOf(talk), talk.file, talk.client, talk.peer, talk.revision ?? ""),
  }));
  let chosen = null;
  let most = PAGE;
  let query = { words: [], fields: [] };

  const choose = (item) => {
    chosen = item;
    for (const each of entries) each.button?.setAttribute("aria-pressed", String(each === item));
    fill(panel, element("h3", null, nameOf(item.talk)), element("p", { class: "quiet-text" }, detailOf(item.talk)), timelineView(item.talk, opener));
  };
  const buttonOf = (item) => {
    const { talk } = item;
    item.button ??= element(
      "button",
      { type: "button", "data-row": true, "aria-pressed": "false", "aria-controls": "timeline", on: { click: () => choose(item) } },
      element("span", { class: "talk-name" }, nameOf(talk)),
      element("span", { class: "talk-counts" }, counted(talk.messages, "message"), talk.findings > 0 && element("span", { class: `talk-findings tone-${talk.stopped > 0 ? "error" : "warning"}` }, counted(talk.findings, "finding"))),
      element("span", { class: "talk-detail" }, detailOf(talk, isAlike)),
    );
    return item.button;
  };
  const render = () => {
    const shown = entries.filter((each) => matches(query, each.entry));
    const more = shown.length > most ? element("li", null, element("button", { type: "button", class: "more", on: { click: () => { most += 1000; render(); } } }, `Show all ${number(shown.length)}`)) : null;
    fill(list, ...shown.slice(0, most).map((each) => element("li", null, buttonOf(each))), more);
    return shown.length;
  };

  const total = data.totals.conversations;
  const sampled = data.talksArePartial
    ? element("p", { class: "remark" }, `The page has ${number(data.talks.length)} of ${data.totals.conversationsAreExact ? "" : "about "}${number(total)} conversations: a random sample, always the same for the same recording, and some with findings. Of each it has up to ${number(data.limits.rows)} messages.`)
    : null;
  const node = element(
    "section",
    { id: "conversations", "aria-labelledby": "conversations-title" },
    element("h2", { id: "conversations-title" }, "Conversations"),
    activityChart(data),
    sampled,
    element("div", { class: "conversations" }, element("div", { class: "talks-box", tabindex: "0", role: "group", "aria-label": "All conversations" }, list), panel),
  );
  return {
    node,
    title: "Conversations",
    count: total,
    finish() {
      render();
      choose(entries[0]);
    },
    filter(wanted) {
      query = wanted;
      const count = render();
      node.hidden = count === 0 && !isEmpty(wanted);
      const first = entries.find((each) => matches(query, each.entry));
      if (first !== undefined && (chosen === null || !matches(query, chosen.entry))) choose(first);
      return count;
    },
    open(id) {
      const item = entries.find((each) => each.talk.id === id);
      if (item === undefined) return false;
      query = { words: [], fields: [] };
      most = Math.max(most, entries.indexOf(item) + 1);
      node.hidden = false;
      render();
      choose(item);
      panel.focus({ preventScroll: true });
      node.scrollIntoView({ block: "start" });
      return true;
    },
  };
}
