/**
 * The dialog that calls a tool, with a form from its schema, and shows both verdicts.
 *
 * A guard over HTTP is called as it runs. A server over standard input and output belongs to its client: its program
 * can be started again for the call, if its guard says how; otherwise there is a line for a terminal.
 */

import { ApiError, errorText, send } from "./console_api.js";
import { button, copy, dialog, field, notice, stateTag, took } from "./console_parts.js";
import { choice, code, element, fill } from "./dom.js";
import { jsonView } from "./json_tree.js";
import { FormError, schemaForm } from "./schema_form.js";
import { counted } from "./text.js";

function verdictView(verdict) {
  const { party, accepted, violations } = verdict;
  const rows = violations.map((each) =>
    element(
      "li",
      null,
      code(each.rule),
      " at ",
      each.at ? code(each.at) : "the message as a whole",
      `: expected ${each.expected}, found ${each.found}`,
    ),
  );
  const tone = !accepted ? "error" : violations.length > 0 ? "warning" : "good";
  const text = !accepted
    ? "blocked"
    : violations.length > 0
      ? `accepted, ${counted(violations.length, "finding")}`
      : "valid";
  return element(
    "div",
    { class: "call-verdict" },
    element("strong", null, party === "client" ? "Request: " : "Answer: "),
    stateTag(text, tone),
    rows.length > 0 && element("ul", null, ...rows),
  );
}

function answerView(answer) {
  const response =
    answer.response === null
      ? element("p", { class: "empty" }, "No answer came.")
      : jsonView(JSON.stringify(answer.response), faults(answer, "server"));
  return element(
    "div",
    { class: "call-answer" },
    element("h3", null, `Answered in ${took(answer.latency)}`),
    ...answer.verdicts.map(verdictView),
    answer.others > 0 &&
      element(
        "p",
        { class: "remark" },
        `${counted(answer.others, "finding")} about other messages of the conversation.`,
      ),
    element("h3", null, "Answer"),
    response,
    element(
      "details",
      null,
      element("summary", null, "Request"),
      jsonView(JSON.stringify(answer.request), faults(answer, "client")),
    ),
  );
}

function faults(answer, party) {
  return answer.verdicts
    .filter((each) => each.party === party)
    .flatMap((each) => each.violations.map(({ at }) => ({ at })));
}

function hintsOf(annotations) {
  const known = Object.entries(annotations ?? {}).filter(([, value]) => typeof value === "boolean");
  return known.length > 0 ? known.map(([name, value]) => `${name}: ${value}`).join(", ") : "it has no hints";
}

/** The arguments: a form, or JSON for what a form cannot express. */
class Arguments {
  constructor(schema) {
    this.form = schemaForm(schema);
    this.raw = element("textarea", {
      rows: "8",
      class: "json-input",
      spellcheck: "false",
      "aria-label": "Arguments as JSON",
    });
    this.raw.value = "{}";
    this.way = this.form === null ? "raw" : "form";
    this.place = element("div");
    const choices = [
      ["form", "Form"],
      ["raw", "JSON"],
    ];
    this.node = element(
      "div",
      null,
      this.form !== null && choice("How to give the arguments", choices, this.way, (way) => this.setWay(way)),
      this.place,
    );
    this.show();
  }

  setWay(way) {
    if (way === "raw") {
      try {
        this.raw.value = JSON.stringify(this.form.value(), null, 2);
      } catch {
        // What cannot be read yet stays in the form.
      }
    }
    this.way = way;
    this.show();
  }

  show() {
    fill(this.place, this.way === "form" ? this.form.node : this.raw);
  }

  value() {
    if (this.way === "form") return this.form.value();
    try {
      return JSON.parse(this.raw.value);
    } catch (error) {
      throw new FormError(`Not JSON: ${error.message}`);
    }
  }
}

const MASK = "[redacted]";

function shellWord(text) {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'"'"'`)}'`;
}

/** Return the line that calls the tool from a terminal; parts that are not known are in capitals. */
function terminalLine(server, entry) {
  const call = `${shellWord(entry.name)} '{}'`;
  const known = server.source === "guard" ? server.label : "";
  return known.includes("://") ? `assay call ${known} ${call}` : `assay call ${call} -- ${known || "COMMAND"}`;
}

function whyNot(server) {
  if (server.source !== "guard" || server.state === "ended")
    return "The guard of this server does not run now, so the console cannot call it.";
  const masked = server.label.includes(MASK) ? ", and its command has masked parts" : "";
  return `This server belongs to its client, which talks to it over standard input and output${masked}.`;
}

/** Return how a tool can be called: a button that opens the dialog, or why not, with a line for a terminal. */
export function callControl(server, entry) {
  if (server.callable) return button("Call this tool…", () => openCall(server, entry), { class: "button primary" });
  if (server.start) return button("Call it in a new process…", () => openCall(server, entry));
  const line = terminalLine(server, entry);
  return element(
    "div",
    { class: "no-call" },
    element("p", { class: "quiet-text" }, whyNot(server), " From a terminal:"),
    element("pre", { class: "command", tabindex: "0" }, line),
    button("Copy the command", () => copy(line, "the command")),
  );
}

function changeRemark(entry, annotations) {
  const known = annotations ?? entry.definition.annotations;
  if (known?.readOnlyHint === true) return null;
  return element(
    "p",
    null,
    element("strong", null, "This tool may change something. "),
    `It does not say that it only reads: ${hintsOf(known)}.`,
  );
}

/** What a call that starts a program does, before it is done. */
function startRemark(server, { command, directory }) {
  return [
    element(
      "p",
      null,
      element("strong", null, "This starts a program on this machine. "),
      `It is the command of ${server.name}, as its guard reports it, behind a guard of its own. `,
      "It ends after the answer.",
    ),
    element("pre", { class: "command", tabindex: "0" }, command),
    element(
      "p",
      { class: "remark" },
      "It runs in ",
      code(directory),
      " with the environment of the console: variables that only the client sets are missing.",
    ),
  ];
}

/** Open the dialog for a tool of a server. */
function openCall(server, entry) {
  const given = new Arguments(entry.definition.inputSchema);
  const answer = element("div", { class: "answer", role: "status" });
  const submit = element("button", { class: "button primary" }, "Call");
  const authorization = element("input", { type: "password", autocomplete: "off", placeholder: "Bearer …" });
  const call = async (confirmed, shown = {}) => {
    submit.disabled = true;
    try {
      const body = { server: server.id, tool: entry.name, arguments: given.value(), confirmed };
      // The console refuses the call if these are not those of the guard any more.
      if (confirmed && shown.command !== undefined) {
        body.command = shown.command;
        body.directory = shown.directory;
      }
      if (authorization.value !== "") body.authorization = authorization.value;
      fill(answer, element("p", { class: "remark" }, "Calling…"));
      fill(answer, answerView(await send("call", body)));
      answer.scrollIntoView({ block: "nearest" });
    } catch (error) {
      fill(answer, failure(error));
    } finally {
      submit.disabled = false;
    }
  };
  const failure = (error) => {
    if (error instanceof FormError) return notice("error", error.message);
    if (!(error instanceof ApiError) || error.code !== "confirm") return notice("error", errorText(error));
    const starts = error.detail.command !== undefined;
    const sure = button(starts ? "Start it and call" : "Call it", () => call(true, error.detail), { class: "button primary" });
    requestAnimationFrame(() => sure.focus());
    return element(
      "div",
      { class: "panel tone-warning confirm" },
      starts && startRemark(server, error.detail),
      changeRemark(entry, error.detail.annotations),
      sure,
    );
  };
  const form = element(
    "form",
    { class: "call", on: { submit: (event) => (event.preventDefault(), call(false)) } },
    entry.definition.description && element("p", { class: "tool-description" }, entry.definition.description),
    element(
      "p",
      { class: "remark" },
      server.callable ? "The call goes through the guard of " : "The call goes to a new process of ",
      element("strong", null, server.name),
      server.callable
        ? " and is judged like any other."
        : ": its own belongs to its client, and is not disturbed. The page asks before it starts.",
    ),
    given.node,
    given.node.querySelector(".required") !== null &&
      element("p", { class: "remark" }, element("span", { class: "required" }, "*"), " is required"),
    server.callable &&
      element(
        "details",
        { class: "branch" },
        element("summary", null, "The guard needs a key"),
        field("Header Authorization", authorization),
      ),
    submit,
  );
  dialog(`Call ${entry.name}`, form, answer).classList.add("wide");
}
