/** Findings and messages as people see them: what is wrong, where, by which rule, and what to do. */

import { code, element, factList, link, prose } from "./dom.js";
import { jsonView } from "./json_tree.js";
import { bytes, clock, counted, number, time } from "./text.js";
import { verdictMark } from "./verdict_words.js";

const LEVELS = { error: "error", warning: "warning" };

/** Return the level of a finding as a small label; its colour only repeats the word. */
export function levelBadge(level) {
  return element("span", { class: `badge badge-${LEVELS[level] ?? "note"}` }, LEVELS[level] ?? level);
}

/** Return the place of a message in its recording: "session.jsonl, line 12". */
export function whereOf(message) {
  return `${message.file}, ${message.line ? `line ${number(message.line)}` : "the end"}`;
}

/** Rules about text that is not JSON have a position; the others have a place. */
function faultOf(finding) {
  if (finding.span) return { span: finding.span };
  return { at: finding.at, last: finding.rule === "syntax/duplicate-key" };
}

const NO_TEXT = {
  missing: "There is no message: this is a request that was never answered.",
  lacks: "The recording does not have this message in full.",
  budget: "The text of this message was left out, to keep the page small.",
};

/** Return a message: its sender, place and size, and its content with *finding* marked. */
export function messageView(message, finding) {
  const sent = message.time === null ? "" : ` at ${time(message.time).slice(0, 10)} ${clock(message.time)} UTC`;
  const conversation = message.conversation ? `, conversation ${number(message.conversation)}` : "";
  const server = message.server ? `, server ${message.server}` : "";
  const size = message.kind === "missing" ? "" : `, ${bytes(message.size)}`;
  const head = element(
    "p",
    { class: "message-head" },
    verdictMark(message.outcome),
    " ",
    element("strong", null, message.title),
    element(
      "span",
      { class: "quiet-text" },
      ` from the ${message.party}${sent}${size}; ${whereOf(message)}${server}${conversation}`,
    ),
  );
  const notes = [];
  if (message.lacks) notes.push(`As the guard judged it: ${message.lacks}.`);
  if (message.cut) notes.push("The message is long: parts that are not near a fault are left out (…).");
  if (message.text === "")
    notes.push(NO_TEXT[message.kind === "missing" ? "missing" : message.absent] ?? NO_TEXT.lacks);
  const faults = finding ? [faultOf(finding)] : message.findings.map(faultOf);
  return element(
    "section",
    { class: "message", "aria-label": "The message" },
    head,
    ...notes.map((each) => element("p", { class: "remark" }, each)),
    message.text !== "" && jsonView(message.text, faults),
  );
}

const EFFECTS = { refuse: "blocks", drop: "drops", quarantine: "quarantines", report: "reports", repair: "repairs" };

/** Return what enforce mode does: "blocks; as an error -32602 …". */
function effectOf({ effect }) {
  return effect?.replace(/^[a-z]+/, (action) => EFFECTS[action] ?? action);
}

/** Return what a rule asks, why, where it comes from and what to do. */
export function ruleView(rule, finding) {
  const source = finding?.source ?? rule.source;
  const address = finding ? finding.sourceUrl : rule.sourceUrl;
  return element(
    "section",
    { class: "rule", "aria-label": `The rule ${rule.id}` },
    element("h4", null, link(rule.page, code(rule.id))),
    factList("facts", [
      ["Requirement", prose(rule.asks)],
      ["Why", prose(rule.why)],
      ["Source", link(address, source)],
      ["Example violation", rule.example ? code(rule.example) : null],
      ["Enforce mode", effectOf(rule)],
    ]),
  );
}

/** Return what was expected beside what was found; *label* names the latter. */
export function compareView({ expected, found }, label = "Found") {
  const side = (name, ...text) => element("div", null, element("span", { class: "label" }, name), ...text);
  return element("div", { class: "compare" }, side("Expected", prose(expected)), side(label, found));
}

/** Return what to do about a finding; null if its rule has no hint. */
export function todoView(hint) {
  return hint ? element("p", { class: "todo" }, element("strong", null, "To do: "), prose(hint)) : null;
}

/** Return why a finding was passed, and its place in the schema, as far as it has them. */
export function remarksOf(finding) {
  return [
    finding.reason && element("p", { class: "remark" }, `Passed by an exception: ${finding.reason}`),
    finding.schemaAt && element("p", { class: "quiet-text" }, "Place in the schema: ", code(finding.schemaAt)),
  ];
}

/** Return one finding: what is expected and found, the message, and the rule. */
export function findingView(finding, message, rule, extra = []) {
  const entry = finding.entry ? [" in the ", finding.entry] : [];
  const place = finding.at ? code(finding.at) : "the message as a whole";
  return element(
    "article",
    { class: "finding" },
    element(
      "div",
      { class: "finding-head" },
      element("p", { class: "sentence" }, levelBadge(finding.level), " ", place, ...entry),
      compareView(finding),
      todoView(finding.hint),
      ...remarksOf(finding),
      message.more > 0 &&
        element("p", { class: "remark" }, `The message has at least ${counted(message.more, "more finding")}.`),
      ...extra,
    ),
    element("div", { class: "finding-body" }, messageView(message, finding), ruleView(rule, finding)),
  );
}
