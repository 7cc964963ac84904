/** One message, beside the stream: what is wrong with it, as it was sent, and as it was delivered. */

import { errorText, exported, read, REPORT } from "./api.js";
import { askForException, Compare, Fix, RuleFacts, toolOf } from "./finding.js";
import { JsonView } from "./json_view.js";
import { attempt, Button, copy, Facts, Notice, prose, toast, VerdictBadge } from "./parts.js";
import { serverName, serverOf, stream, touched } from "./store.js";
import { bytes, counted, dateAndTime, number, sentence, took } from "./text.js";
import { TextDiff } from "./text_diff.js";
import { html, useEffect, useLayoutEffect, useRef, useState } from "./view.js";

const DELIVERED = {
  same: "Delivered as it was sent, byte for byte.",
  judged: null,
  changed: "The guard changed the message.",
  replaced: "The receiver got an error in its place.",
  not: "Not delivered.",
};

function textOf(frame) {
  if (frame.text !== null && frame.text !== undefined) return frame.text;
  return frame.base64 ? `(not UTF-8, as Base64)\n${frame.base64}` : null;
}

function Frame({ title, note, frame, faults = [] }) {
  const text = textOf(frame);
  return html`<section class="frame" aria-label=${title}>
    <h3>${title}</h3>
    ${note && html`<p class="quiet-text">${note}</p>`}
    ${text === null
      ? html`<p class="empty">${prose(sentence(frame.why || "There is no text."))}</p>`
      : html`<${JsonView} text=${text} faults=${faults} />`}
  </section>`;
}

/** The message as it was sent and as it was delivered; once, if nothing was changed. */
function Frames({ answer }) {
  const { sent, delivered, violations } = answer;
  const faults = violations
    .filter((each) => !each.entry || each.at)
    .map((each) => ({ at: each.at, last: each.rule === "syntax/duplicate-key" }));
  const isSame = delivered.state === "same" || delivered.state === "judged";
  const isMade = !isSame && textOf(delivered) !== null;
  const note = DELIVERED[delivered.state] && `${DELIVERED[delivered.state]}${isMade ? " This text is made from the recorded changes." : ""}`;
  const isChanged = delivered.state === "changed" && textOf(sent) !== null && textOf(delivered) !== null;
  return html`
    <${Frame} title="As sent" frame=${sent} faults=${faults} note=${isSame ? note : null} />
    ${isChanged && html`<section><h3>What the guard changed</h3><${TextDiff} before=${textOf(sent)} after=${textOf(delivered)} /></section>`}
    ${!isSame && html`<${Frame} title="As delivered" note=${note} frame=${delivered} />`}`;
}

function Violation({ violation, row }) {
  const about = violation.about ?? { id: violation.rule, asks: "This version of assay does not know the rule." };
  const { entry, schema } = violation;
  const hasSchema = schema !== null && schema !== undefined;
  const tone = violation.stops && row.verdict === "blocked" ? "error" : "warning";
  return html`<article class="finding tone-${tone}">
    <h3>${prose(violation.says)}</h3>
    <p class="quiet-text"><code>${violation.at || "the message as a whole"}</code>
      ${entry && ` in the ${entry.kind} ${entry.name}`}</p>
    <${Fix} hint=${violation.hint} />
    <${Compare} ...${violation} />
    ${violation.reason && html`<p class="quiet-text">Passed by an exception: ${violation.reason}</p>`}
    ${hasSchema && html`<details class="branch"><summary>The part of the schema that it breaks</summary>
      <${JsonView} text=${JSON.stringify(schema)} /></details>`}
    <details class="branch"><summary>The rule <code>${violation.rule}</code></summary>
      <${RuleFacts} rule=${about} source=${violation.source} /></details>
    ${REPORT === null && html`<${Button} onClick=${() => askForException(violation.rule, toolOf(row.tool, entry && `${entry.kind} ${entry.name}`), row.server)}>Make an exception…<//>`}
  </article>`;
}

function Http({ http }) {
  const headers = Object.entries(http.headers ?? {}).flatMap(([name, value]) => [value].flat().map((each) => [name, each]));
  return html`<details class="branch"><summary>HTTP exchange</summary>
    <${Facts} facts=${[["Method", http.method], ["Route", http.route], ["Status", http.status]]} />
    ${headers.length > 0 && html`<dl class="headers">${headers.map(([name, value]) => html`<dt>${name}</dt><dd>${value}</dd>`)}</dl>`}
  </details>`;
}

function Changes({ answer }) {
  const removed = answer.quarantined.map((each) => html`<li>${answer.removed ? "Quarantined: " : "Enforce mode would quarantine: "}
    <code>${each.name}</code></li>`);
  const repairs = answer.repairs.map((each) => html`<li>Repaired: <code>${each.op ?? "replace"} ${each.path ?? each.at ?? ""}</code>
    ${each.value !== undefined && html`${" with "}<code>${JSON.stringify(each.value)}</code>`}</li>`);
  return removed.length + repairs.length > 0 && html`<ul class="changes">${removed}${repairs}</ul>`;
}

/** The error that was sent for the message, or that enforce mode would send. */
function ErrorNotice({ error, delivered }, row) {
  const text = `${error.code ?? "error"}: ${error.message ?? ""}`;
  if (row.verdict === "would block") {
    const why = delivered.state === "judged" ? "" : "Forwarded in audit mode. ";
    return html`<${Notice} tone="warning">${why}Enforce mode would answer with ${text}<//>`;
  }
  if (row.verdict === "blocked") return html`<${Notice} tone="error">Blocked with ${text}<//>`;
  return html`<${Notice} tone="failed">${row.kind === "missing" ? "No response" : `The ${row.party} answered with`} ${text}<//>`;
}

/** Copy the text of a message. */
export function copyMessage(seq) {
  return attempt(async () => {
    const { sent } = await read(`messages/${seq}`);
    const text = textOf(sent);
    if (text === null) toast(sentence(sent.why));
    else await copy(text, "the message");
  });
}

function copyCurl(seq) {
  return attempt(async () => {
    const { command, notes } = await read(`messages/${seq}/curl`);
    await copy(command, ["the command", ...(notes ?? [])].join(". "));
  });
}

function copyRecording(answer, seq) {
  return attempt(async () => {
    const file = await exported({ format: "recording", seqs: answer.related.length > 0 ? answer.related : [seq] });
    const left = file.left > 0 ? `, without ${counted(file.left, "message")} that is not recorded` : "";
    await copy(file.text, `the recording${left}`);
  });
}

function Tools({ answer, row, seq, pin }) {
  const isThere = textOf(answer.sent) !== null;
  const isClient = row.party === "client" && serverOf(row.server)?.address;
  return html`<div class="tools">
    ${isThere && html`<${Button} title="Copy the text (y)" onClick=${() => copyMessage(seq)}>Copy message<//>`}
    ${REPORT === null && isClient && html`<${Button} onClick=${() => copyCurl(seq)}>Copy as curl<//>`}
    ${REPORT === null && isThere && html`<${Button} onClick=${() => copyRecording(answer, seq)}>Copy as recording<//>`}
    <${Button} title="Keep it at hand (m)" onClick=${pin}>Pin<//>
  </div>`;
}

/** The messages of the same exchange. */
function Related({ answer, seq, show }) {
  const { rows } = stream.value;
  const others = answer.related.filter((each) => rows.has(each));
  if (others.length < 2) return null;
  return html`<div class="chips" role="group" aria-label="The messages of this exchange">
    ${others.slice(0, 20).map((each) => {
      const row = rows.row(each);
      const label = row.kind === "notification" ? row.method.replace("notifications/", "") : row.kind;
      return html`<button type="button" class="chip" key=${each} aria-pressed=${String(each === seq)} onClick=${() => show(each)}>
        ${row.party === "client" ? "→" : "←"} ${label}${row.verdict !== "ok" && ` (${row.verdict})`}</button>`;
    })}
  </div>`;
}

function Content({ answer, seq, show, pin }) {
  const { columns } = stream.value;
  const row = Object.fromEntries(columns.map((name, at) => [name, answer.row[at]]));
  const sizes = row.in === row.out ? bytes(row.in) : `${bytes(row.in)} in, ${bytes(row.out)} out`;
  const more = answer.more;
  return html`
    <p class="verdict-line"><${VerdictBadge} word=${row.verdict} /> ${row.kind} from the ${row.party}${row.id !== null && ` #${row.id}`}</p>
    <${Related} answer=${answer} seq=${seq} show=${show} />
    ${answer.error && ErrorNotice(answer, row)}
    ${answer.violations.map((each, at) => html`<${Violation} key=${at} violation=${each} row=${row} />`)}
    ${more > 0 && html`<p class="quiet-text">${counted(more, "more finding")} in this message ${more === 1 ? "is" : "are"} not listed.</p>`}
    <${Changes} answer=${answer} />
    ${answer.notes.map((each) => html`<p class="quiet-text">${prose(sentence(each))}</p>`)}
    <${Frames} answer=${answer} />
    <${Tools} answer=${answer} row=${row} seq=${seq} pin=${pin} />
    <${Facts} facts=${[
      ["Time", row.time > 0 && dateAndTime(row.time, true)],
      ["Server", serverName(row.server)],
      ["File", answer.file],
      ["Line", answer.line > 0 && number(answer.line)],
      ["Session", row.session],
      ["Took", row.latency === null ? null : took(row.latency)],
      ["In the guard", row.guard === null ? null : took(row.guard)],
      ["Size", sizes],
      ["Revision", row.revision],
      ["Principal", row.principal],
      ["Request id", answer.requestId && html`<code>${answer.requestId}</code>`],
      ["Trace", answer.traceId && html`<code>${answer.traceId}</code>`],
    ]} />
    ${answer.http !== null && html`<${Http} http=${answer.http} />`}
    ${answer.record !== null && html`<details class="branch"><summary>The record in the journal</summary><${JsonView} text=${JSON.stringify(answer.record)} /></details>`}`;
}

/** The panel. *show* goes to another message of the same exchange. */
export function MessagePanel({ seq, close, show, pin }) {
  const [answer, setAnswer] = useState(null);
  const [why, setWhy] = useState("");
  const panel = useRef(null);
  const { rows, loads } = stream.value;
  const line = rows.has(seq) ? rows.lineOf(seq) : seq;
  const isTouched = touched.value.has(line) ? touched.value : null;
  useEffect(() => {
    let isOver = false;
    read(`messages/${seq}`).then(
      (found) => isOver || (setAnswer({ ...found, seq }), setWhy("")),
      (error) => isOver || (answer?.seq === seq ? null : setWhy(errorText(error))),
    );
    return () => {
      isOver = true;
    };
    // Again when a message comes to the same exchange.
  }, [seq, loads, isTouched]);
  useLayoutEffect(() => {
    panel.current.scrollTop = 0;
    panel.current.querySelector("h2").focus({ preventScroll: true });
  }, [seq]);
  const row = rows.has(seq) ? rows.row(seq) : null;
  const title = row === null ? `Message ${number(seq)}` : [row.method || row.kind, row.tool].filter(Boolean).join(" ");
  const isThere = answer !== null && answer.seq === seq;
  return html`<aside class="message-panel" aria-label="The message" data-seq=${isThere ? seq : null} ref=${panel}>
    <div class="panel-head"><h2 tabindex="-1">${title}</h2><${Button} aria-label="Close the message" onClick=${close}>✕<//></div>
    ${why !== "" && !isThere && html`<${Notice} tone="note">${why}<//>`}
    ${isThere && html`<${Content} key=${seq} answer=${answer} seq=${seq} show=${show} pin=${pin} />`}
  </aside>`;
}
