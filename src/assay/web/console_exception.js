/** The dialog that makes an exception for a rule: the text to add to the settings of the guard, with an end date. */

import { errorText, send } from "./console_api.js";
import { button, copy, dialog, field, notice } from "./console_parts.js";
import { element, fill, prose } from "./dom.js";
import { sentence } from "./text.js";

function inDays(days) {
  return new Date(Date.now() + days * 86_400_000).toISOString().slice(0, 10);
}

/** Open the dialog for *rule* and the number of a *server*; *tool* is "" if the finding is about no tool. */
export function askForException(rule, tool, server) {
  const forTool = element("input", { type: "checkbox", checked: tool !== "" });
  const reason = element("input", {
    type: "text",
    maxlength: "200",
    placeholder: "such as: fixed in version 2.1",
    required: true,
  });
  const until = element("input", { type: "date", min: inDays(1), value: inDays(30), required: true });
  const answer = element("div", { class: "answer", role: "status" });
  const submit = async (event) => {
    event.preventDefault();
    const asked = { rule, server, reason: reason.value, until: until.value };
    if (tool !== "" && forTool.checked) asked.tool = tool;
    try {
      const { toml, file, notes } = await send("exception", asked);
      fill(
        answer,
        element("p", null, "Add this to the end of ", element("code", null, file), ", and start the guard again:"),
        element("pre", { class: "command", tabindex: "0" }, toml),
        button("Copy", () => copy(toml, "the exception")),
        ...(notes ?? []).map((each) => element("p", { class: "remark" }, prose(sentence(each)))),
      );
    } catch (error) {
      fill(answer, notice("error", errorText(error)));
    }
  };
  const form = element(
    "form",
    { class: "exception", on: { submit } },
    element(
      "p",
      null,
      "For findings of ",
      element("code", null, rule),
      tool && [" in the tool ", element("code", null, tool)],
      ": the guard forwards the message, and records the finding with your reason.",
    ),
    tool !== "" && element("label", { class: "check" }, forTool, " only for this tool"),
    field("Reason", reason),
    field("Last day, in UTC", until),
    element("button", { class: "button primary" }, "Make the exception"),
    answer,
  );
  dialog("Make an exception", form);
  reason.focus();
}
