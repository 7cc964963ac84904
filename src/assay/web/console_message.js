/** One message: as it was sent and as it was delivered, what is wrong with it, and how to go on. */

import { errorText, exported, read } from "./console_api.js";
import { askForException } from "./console_exception.js";
import {
  afterPress,
  attempt,
  button,
  copy,
  dateAndTime,
  notice,
  screenHead,
  timeOfDay,
  toast,
  took,
} from "./console_parts.js";
import { go, routeTo } from "./console_router.js";
import { ConsoleScreen } from "./console_screen.js";
import { rowOf } from "./console_store.js";
import { code, element, factList, fill, prose } from "./dom.js";
import { compareView, remarksOf, ruleView, todoView } from "./finding_view.js";
import { jsonView } from "./json_tree.js";
import { refill } from "./patch.js";
import { bytes, counted, number, sentence } from "./text.js";
import { verdictBadge } from "./verdict_words.js";
import { diffView } from "./text_diff.js";

const DELIVERED = {
  same: "Delivered as it was sent, byte for byte.",
  changed: "The guard changed the message.",
  replaced: "The receiver got an error in its place.",
  not: "Not delivered.",
};

function textOf(frame) {
  if (frame.text !== null && frame.text !== undefined) return frame.text;
  return frame.base64 ? `(not UTF-8, as Base64)\n${frame.base64}` : null;
}

function faultsOf(violations) {
  return violations
    .filter((each) => !each.entry || each.at)
    .map((each) => ({ at: each.at, last: each.rule === "syntax/duplicate-key" }));
}

function frameView(title, note, frame, faults) {
  const text = textOf(frame);
  return element(
    "section",
    { class: "frame", "aria-label": title },
    element("h2", null, title),
    note && element("p", { class: "remark" }, note),
    text === null
      ? element("p", { class: "empty" }, sentence(frame.why || "There is no text."))
      : jsonView(text, faults),
  );
}

/** Both sides of the message; one, if nothing was changed. */
function bothSides(answer) {
  const { sent, delivered, violations } = answer;
  const faults = faultsOf(violations);
  const left = frameView("As sent", null, sent, faults);
  const note = [
    DELIVERED[delivered.state],
    delivered.state !== "same" &&
      !delivered.exact &&
      textOf(delivered) !== null &&
      "This text is made from the recorded changes.",
  ]
    .filter(Boolean)
    .join(" ");
  if (delivered.state === "same") {
    return [element("div", { class: "sides one-side" }, left), element("p", { class: "remark delivered" }, note)];
  }
  const [before, after] = [textOf(sent), textOf(delivered)];
  const right = frameView("As delivered", note, delivered, []);
  const diff =
    delivered.state === "changed" &&
    before !== null &&
    after !== null &&
    element("section", null, element("h2", null, "The difference"), diffView(before, after));
  return [element("div", { class: "sides" }, left, right), diff];
}

function violationView(violation, row) {
  const entry = violation.entry ? ` in the ${violation.entry.kind ?? "entry"} ${violation.entry.name ?? ""}` : "";
  const schema = violation.schema !== null && violation.schema !== undefined;
  const about = violation.about ?? { id: violation.rule, asks: "This version of assay does not know the rule." };
  return element(
    "article",
    { class: "finding panel" },
    element(
      "h3",
      { class: "sentence" },
      code(violation.rule),
      " at ",
      violation.at ? code(violation.at) : "the message as a whole",
      entry,
    ),
    element(
      "div",
      { class: "finding-body" },
      element(
        "div",
        null,
        compareView(violation),
        todoView(violation.hint),
        ...remarksOf(violation),
        schema &&
          element(
            "details",
            { open: true, class: "branch" },
            element("summary", null, "The part of the schema that it breaks"),
            jsonView(JSON.stringify(violation.schema)),
          ),
        button("Make an exception…", () => askForException(violation.rule, row.tool ?? "", row.server)),
      ),
      ruleView({ ...about, effect: about.action }, { source: violation.source || about.source }),
    ),
  );
}

function httpView(http) {
  if (http === null) return null;
  const headers = Object.entries(http.headers ?? {}).flatMap(([name, value]) =>
    [value].flat().map((each) => [name, each]),
  );
  return element(
    "section",
    null,
    element("h2", null, "HTTP exchange"),
    factList("fact-row", [
      ["Method", http.method],
      ["Route", http.route && code(http.route)],
      ["Status", http.status === null ? null : String(http.status)],
    ]),
    headers.length > 0 &&
      element(
        "dl",
        { class: "headers" },
        ...headers.map(([name, value]) => [element("dt", null, name), element("dd", null, value)]),
      ),
  );
}

/** The error that was sent for the message, or that enforce would send. */
function errorNotice({ error, delivered }, row) {
  const text = `${error.code ?? "error"}: ${error.message ?? ""}`;
  const isSpared = row.verdict === "would block" && delivered.state === "same";
  return isSpared
    ? notice("warning", `Forwarded in audit mode. Enforce mode would answer with ${text}`)
    : notice("error", text);
}

/** Copy the text of a message. */
export function copyMessage(seq) {
  return attempt(async () => {
    const answer = await read(`messages/${seq}`);
    const text = textOf(answer.sent);
    if (text === null) toast(sentence(answer.sent.why));
    else await copy(text, "the message");
  });
}

export class MessageScreen extends ConsoleScreen {
  constructor(store, page) {
    super(store);
    this.page = page;
    this.seq = 0;
    this.answer = null;
    this.node = element("section", { class: "message-screen" });
    this.crumbs = element("nav", { class: "crumbs", "aria-label": "Back" });
    const update = this.whileShown(500, () => this.update());
    store.on("rows", (touched) => this.isTouched(touched) && update());
  }

  show({ argument }) {
    this.isShown = true;
    const seq = Number(argument ?? 0);
    if (seq === this.seq && this.answer !== null) return this.update();
    this.seq = seq;
    return this.load();
  }

  /** The page has loaded everything anew; after a new start of the console, the number is that of another message. */
  restart() {
    if (this.epoch === this.store.state.epoch) return;
    this.answer = null;
    super.restart();
  }

  /** Whether the exchange of the message is one of those with new messages. */
  isTouched(touched) {
    const { rows } = this.store;
    return this.answer !== null && rows.has(this.seq) && touched.has(rows.lineOf(this.seq));
  }

  /** Show what has come to the exchange since the message was opened. All else is left as it is: somebody reads it. */
  async update() {
    const { seq } = this;
    try {
      const { related } = await read(`messages/${seq}`);
      if (seq !== this.seq || this.answer === null) return;
      this.answer.related = related;
      afterPress(() => this.showCrumbs());
    } catch {
      // The console may have dropped the message; what is shown of it is still right.
    }
  }

  showCrumbs() {
    if (this.answer === null) return;
    refill(
      this.crumbs,
      element("a", { href: this.page.last.get("stream") ?? routeTo("stream") }, "← Stream"),
      this.relatedView(this.answer),
    );
  }

  async load() {
    const { seq } = this;
    if (!Number.isInteger(seq) || seq < 1) {
      delete this.node.dataset.seq;
      fill(
        this.node,
        screenHead("Message", "One message: as it was sent, as it was delivered, and what is wrong with it."),
        element(
          "p",
          { class: "empty panel" },
          "Choose a message in ",
          element("a", { href: this.page.last.get("stream") ?? routeTo("stream") }, "the stream"),
          ".",
        ),
      );
      return;
    }
    try {
      const answer = await read(`messages/${seq}`);
      // Another message may have been opened in the meantime.
      if (seq === this.seq) this.render(answer);
    } catch (error) {
      if (seq === this.seq) this.fail(error);
    }
  }

  fail(error) {
    this.answer = null;
    this.node.dataset.seq = this.seq;
    fill(
      this.node,
      screenHead(`Message ${number(this.seq)}`),
      notice("error", errorText(error)),
      element("p", null, element("a", { href: routeTo("stream") }, "Back to the stream")),
    );
  }

  render(answer) {
    this.answer = answer;
    this.node.dataset.seq = answer.row[this.store.columns.indexOf("seq")];
    this.epoch = this.store.state.epoch;
    const row = rowOf(answer.row, this.store.columns);
    const hadFocus = document.activeElement === document.body || this.node.contains(document.activeElement);
    const title = [row.method ?? row.kind, row.tool].filter(Boolean).join(" ");
    const count = answer.violations.length + answer.more;
    this.showCrumbs();
    fill(
      this.node,
      this.crumbs,
      screenHead(title, null, ...this.copyTools(answer, row)),
      element(
        "div",
        { class: "verdict-line" },
        verdictBadge(row.verdict),
        element("span", null, `${row.kind} from the ${row.party}`),
      ),
      this.factsView(answer, row),
      ...answer.notes.map((each) => element("p", { class: "remark" }, prose(sentence(each)))),
      answer.redacted && element("p", { class: "remark" }, "Secrets in this message were masked by the guard."),
      answer.error && errorNotice(answer, row),
      count > 0 && element("h2", null, counted(count, "finding")),
      ...answer.violations.map((each) => violationView(each, row)),
      answer.more > 0 &&
        element(
          "p",
          { class: "remark" },
          `${counted(answer.more, "more finding")} in this message ${answer.more === 1 ? "is" : "are"} not listed.`,
        ),
      this.changesView(answer),
      ...bothSides(answer).filter(Boolean),
      httpView(answer.http),
      element(
        "details",
        { class: "record" },
        element("summary", null, "The record in the journal"),
        jsonView(JSON.stringify(answer.record)),
      ),
    );
    if (hadFocus) this.node.querySelector("h1")?.focus({ preventScroll: true });
    document.scrollingElement.scrollTop = 0;
  }

  factsView(answer, row) {
    const sizes = row.in === row.out ? bytes(row.in) : `${bytes(row.in)} in, ${bytes(row.out)} out`;
    return factList("fact-row", [
      ["Time", `${dateAndTime(row.time)}${timeOfDay(row.time).slice(8)}`],
      ["Server", this.store.serverName(row.server)],
      ["Session", row.session],
      ["Id", row.id === null ? null : code(JSON.stringify(row.id))],
      ["Took", row.latency === null ? null : took(row.latency)],
      ["In the guard", row.guard === null ? null : took(row.guard)],
      ["Size", sizes],
      ["Revision", row.revision],
      ["Principal", row.principal],
      ["Request id", answer.requestId && code(answer.requestId)],
      ["Trace", answer.traceId && code(answer.traceId)],
    ]);
  }

  relatedView(answer) {
    const { rows } = this.store;
    const others = answer.related.filter((seq) => rows.has(seq));
    if (others.length < 2) return null;
    return element(
      "span",
      { class: "related" },
      ...others.slice(0, 20).map((seq) => {
        const row = rows.row(seq);
        const label = row.kind === "notification" ? row.method.replace("notifications/", "") : row.kind;
        return element(
          "a",
          {
            href: routeTo("message", seq),
            "aria-current": seq === this.seq ? "true" : null,
            class: "chip",
            "data-key": seq,
          },
          `${row.party === "client" ? "→" : "←"} ${label}`,
        );
      }),
    );
  }

  changesView(answer) {
    const removed = answer.quarantined.map((each) =>
      element(
        "li",
        null,
        answer.removed ? "Quarantined: " : "Enforce mode would quarantine: ",
        code(each.name ?? each.at ?? ""),
        each.rule ? [" by ", code(each.rule)] : null,
        each.found ? `: ${each.found}` : "",
      ),
    );
    const repairs = answer.repairs.map((each) =>
      element(
        "li",
        null,
        "Repaired: ",
        code(`${each.op ?? "replace"} ${each.path ?? each.at ?? ""}`),
        each.value !== undefined && [" with ", code(JSON.stringify(each.value))],
      ),
    );
    return removed.length + repairs.length > 0 && element("ul", { class: "changes" }, ...removed, ...repairs);
  }

  copyTools(answer, row) {
    const isThere = textOf(answer.sent) !== null;
    const tools = [isThere && button("Copy message", () => copyMessage(this.seq), { title: "Copy the text (y)" })];
    if (row.party === "client" && this.store.server(row.server)?.address)
      tools.push(button("Copy as curl", () => this.copyCurl()));
    if (isThere) tools.push(button("Copy as recording", () => this.copyRecording(answer)));
    return tools;
  }

  copyCurl() {
    return attempt(async () => {
      const { command, notes } = await read(`messages/${this.seq}/curl`);
      await copy(command, ["the command", ...(notes ?? [])].join(". "));
    });
  }

  copyRecording(answer) {
    return attempt(async () => {
      const file = await exported({
        format: "recording",
        seqs: answer.related.length > 0 ? answer.related : [this.seq],
      });
      await copy(
        file.text,
        file.left > 0
          ? `the recording, without ${counted(file.left, "message")} that is not recorded`
          : "the recording",
      );
    });
  }

  get keys() {
    return {
      y: () => copyMessage(this.seq),
      m: () => this.page.screen("stream").views.togglePin(this.seq),
      j: () => this.step(1),
      k: () => this.step(-1),
      Escape: () => go(this.page.last.get("stream") ?? routeTo("stream")),
    };
  }

  step(by) {
    const next = this.page.screen("stream").neighbour(this.seq, by);
    if (next > 0) go(routeTo("message", next));
  }
}
