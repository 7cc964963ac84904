/** A finding as people see it: what is wrong, where, by which rule, and what to do; and an exception for it. */

import { errorText, send } from "./api.js";
import { Button, copy, dialog, Facts, Notice, Outside, prose } from "./parts.js";
import { sentence } from "./text.js";
import { html, useState } from "./view.js";

const EFFECTS = { refuse: "blocks", drop: "drops", quarantine: "quarantines", report: "reports", repair: "repairs" };

/** What a rule asks, why, and where it comes from. */
export function RuleFacts({ rule, source }) {
  return html`<section class="rule" aria-label="The rule ${rule.id}">
    <h3><${Outside} address=${rule.page}><code>${rule.id}</code><//></h3>
    <${Facts} kind="facts" facts=${[
      ["Requirement", rule.asks && prose(rule.asks)],
      ["Why", rule.why && prose(rule.why)],
      ["Source", source || rule.source],
      ["Example violation", rule.example && html`<code>${rule.example}</code>`],
      ["Enforce mode", EFFECTS[rule.action] ?? rule.action],
    ]} />
  </section>`;
}

/** What was expected beside what was found. */
export function Compare({ expected, found, label = "Found" }) {
  return html`<div class="compare">
    <div><span class="label">Expected</span>${prose(expected)}</div>
    <div><span class="label">${label}</span>${prose(found)}</div>
  </div>`;
}

/** What to do about a finding. */
export function Fix({ hint }) {
  return hint ? html`<p class="fix"><strong>Fix: </strong>${prose(hint)}</p>` : null;
}

function inDays(days) {
  return new Date(Date.now() + days * 86_400_000).toISOString().slice(0, 10);
}

function Answer({ answer }) {
  if (answer === null) return null;
  if (answer.error) return html`<${Notice} tone="error">${answer.error}<//>`;
  return html`
    <p>Add this to the end of <code>${answer.file}</code>, and start the guard again:</p>
    <pre class="command" tabindex="0">${answer.toml}</pre>
    <${Button} onClick=${() => copy(answer.toml, "the exception")}>Copy<//>
    ${(answer.notes ?? []).map((each) => html`<p class="quiet-text">${prose(sentence(each))}</p>`)}`;
}

function ExceptionForm({ rule, tool, server }) {
  const [answer, setAnswer] = useState(null);
  const submit = async (event) => {
    event.preventDefault();
    const given = new FormData(event.target);
    const asked = { rule, server, reason: given.get("reason"), until: given.get("until") };
    if (given.has("tool")) asked.tool = tool;
    try {
      setAnswer(await send("exception", asked));
    } catch (error) {
      setAnswer({ error: errorText(error) });
    }
  };
  return html`<form class="exception" onSubmit=${submit}>
    <p>For findings of <code>${rule}</code>${tool && html`${" in the tool "}<code>${tool}</code>`}: the guard forwards the
      message, and records the finding with your reason.</p>
    ${tool && html`<label class="check"><input type="checkbox" name="tool" defaultChecked /> only for this tool</label>`}
    <label class="field"><span class="label">Reason</span>
      <input type="text" name="reason" maxlength="200" placeholder="such as: fixed in version 2.1" required data-first /></label>
    <label class="field"><span class="label">Last day, in UTC</span>
      <input type="date" name="until" min=${inDays(1)} defaultValue=${inDays(30)} required /></label>
    <button class="button primary">Make the exception</button>
    <div class="answer" role="status"><${Answer} answer=${answer} /></div>
  </form>`;
}

/** Return the tool that an exception can be limited to, for a finding in *entry* of a list, such as `tool search`. */
export function toolOf(tool, entry) {
  // A long name is cut.
  return tool || (/^tool (.*[^…])$/s.exec(entry ?? "")?.[1] ?? "");
}

/** Open the dialog for *rule* and the number of a *server*; *tool* is "" if the finding is about no tool. */
export function askForException(rule, tool, server) {
  dialog("Make an exception", html`<${ExceptionForm} rule=${rule} tool=${tool} server=${server} />`);
}
