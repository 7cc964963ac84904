/** One conversation: who sent what and when. A request and its answer are one row, with a bar from one to the other. */

import { element } from "./dom.js";
import { bytes, clock, counted, duration, number } from "./text.js";
import { verdictMark, verdictParts, worstOf } from "./verdict_words.js";

/** Positions on the axis: by time, or by order if the recording has no times. */
class Scale {
  constructor(rows) {
    const points = rows.flatMap((row) => [row.time, row.answer?.time ?? null]).filter((each) => each !== null);
    this.isTimed = points.length > 0 && rows.every((row) => row.time !== null);
    this.first = this.isTimed ? Math.min(...points) : 0;
    this.last = this.isTimed ? Math.max(...points) : rows.length;
    this.span = Math.max(this.last - this.first, this.isTimed ? 0.001 : 1);
  }

  at(time, order) {
    const value = this.isTimed ? time - this.first : order;
    return Math.min(100, Math.max(0, (100 * value) / this.span));
  }

  /** The start and the end of a row, in percent. */
  bar(row, order) {
    const start = this.at(row.time, order);
    const ended = this.isTimed ? (row.answer?.time ?? row.time) : null;
    const end = row.answer ? this.at(ended, order + 1) : start;
    return [start, Math.max(end, start)];
  }
}

/** Return a row of the page's data as an object. */
function read([line, time, party, kind, title, size, outcome, answer, groups]) {
  const [answerLine, answerTime, answerKind, answerSize, answerOutcome, answerGroups] = answer ?? [];
  return {
    line,
    time,
    party: party === "c" ? "client" : "server",
    kind,
    title,
    size,
    outcome,
    answer: answer && {
      line: answerLine,
      time: answerTime,
      kind: answerKind,
      size: answerSize,
      outcome: answerOutcome,
      groups: answerGroups,
    },
    groups,
  };
}

function worst(row) {
  return worstOf([row.outcome, row.answer?.outcome]);
}

function barOf(row, scale, order) {
  const [start, end] = scale.bar(row, order);
  const isOpen = row.kind === "request" && !row.answer;
  const kind = row.answer || isOpen ? "bar" : "dot";
  const style = { "--from": `${start.toFixed(3)}%`, "--length": `${(end - start).toFixed(3)}%` };
  const [, , tone] = verdictParts(worst(row));
  return element(
    "span",
    { class: "track", "aria-hidden": "true" },
    element("span", { class: `${kind} tone-${tone}${isOpen ? " open-end" : ""}`, style }),
  );
}

function took(row, scale) {
  if (!row.answer) return row.kind === "request" ? "no answer" : "";
  return scale.isTimed && row.answer.time !== null ? duration(Math.max(0, row.answer.time - row.time) * 1000) : "";
}

function rowView(row, order, scale, open) {
  const lane = element(
    "span",
    { class: `lane lane-${row.party}` },
    element(
      "span",
      { class: "arrow", role: "img", "aria-label": `from the ${row.party}` },
      row.party === "client" ? "→" : "←",
    ),
    " ",
    element("span", { class: "title" }, row.title),
  );
  const size = row.answer
    ? `${bytes(row.size)} · ${bytes(row.answer.size)}`
    : row.kind === "missing"
      ? ""
      : bytes(row.size);
  const shown = worst(row);
  const lines = [row.line, row.answer?.line].filter(Boolean).map(number).join(", ");
  const cells = [
    element("span", { class: "when" }, scale.isTimed ? clock(row.time) : `line ${lines || "–"}`),
    lane,
    barOf(row, scale, order),
    element("span", { class: "took" }, took(row, scale)),
    element("span", { class: "size" }, size),
    verdictMark(shown),
  ];
  const opened = shown === "ok" ? null : open(row);
  if (opened === null) return element("li", { class: "step", title: lines ? `line ${lines}` : null }, ...cells);
  return element(
    "li",
    null,
    element("button", { type: "button", class: "step has-finding", "data-row": true, on: { click: opened } }, ...cells),
  );
}

function notes(talk, scale) {
  return [
    !scale.isTimed && "The recording has no times: messages are in their order, and bars have no length.",
    talk.since && "Of this conversation, the page has the messages from its first finding on.",
    talk.left > 0 && `${counted(talk.left, "later message")} without findings, or beyond the limit, left out.`,
  ].filter(Boolean);
}

/** Return the timeline of *talk*. *open* gets a row with findings, and returns what a click does; null for nothing. */
export function timelineView(talk, open) {
  const rows = talk.rows.map(read);
  const scale = new Scale(rows);
  const axis = scale.isTimed
    ? element(
        "div",
        { class: "axis", "aria-hidden": "true" },
        element("span", null, "0"),
        element("span", null, duration(scale.span * 1000)),
      )
    : null;
  const head = element(
    "div",
    { class: "step step-head", "aria-hidden": "true" },
    element("span", { class: "when" }, scale.isTimed ? "time (UTC)" : "place"),
    element("span", { class: "lanes" }, element("span", null, "client →"), element("span", null, "← server")),
    element("span", { class: "track-head" }, axis),
    element("span", { class: "took" }, "took"),
    element("span", { class: "size" }, "size"),
    element("span", null, ""),
  );
  return element(
    "div",
    { class: "timeline" },
    ...notes(talk, scale).map((each) => element("p", { class: "remark" }, each)),
    head,
    element("ol", { class: "steps" }, ...rows.map((row, order) => rowView(row, order, scale, open))),
  );
}
