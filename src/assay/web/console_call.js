/** The dialog that calls a tool through the guard, with a form from its schema, and shows both verdicts. */

import { ApiError, errorText, send } from "./console_api.js";
import { button, dialog, field, notice, stateTag, took } from "./console_parts.js";
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
    ? "refused"
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

/** Open the dialog for a tool of a server. */
export function openCall(server, entry) {
  const given = new Arguments(entry.definition.inputSchema);
  const answer = element("div", { class: "answer", role: "status" });
  const submit = element("button", { class: "button primary" }, "Call");
  const authorization = element("input", { type: "password", autocomplete: "off", placeholder: "Bearer …" });
  const call = async (confirmed) => {
    submit.disabled = true;
    try {
      const body = { server: server.id, tool: entry.name, arguments: given.value(), confirmed };
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
    const sure = button("Call it", () => call(true), { class: "button primary" });
    requestAnimationFrame(() => sure.focus());
    return element(
      "div",
      { class: "panel tone-warning confirm" },
      element(
        "p",
        null,
        element("strong", null, "This tool may change something. "),
        `It does not say that it only reads: ${hintsOf(error.detail.annotations ?? entry.definition.annotations)}.`,
      ),
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
      "The call goes through the guard of ",
      element("strong", null, server.name),
      " and is judged like any other.",
    ),
    given.node,
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
