/** Small parts that several screens use. */

import { errorText, exported } from "./api.js";
import { counted, number } from "./text.js";
import { verdictParts } from "./verdict_words.js";
import { html, render, signal, useEffect, useRef } from "./view.js";

/** A button. */
export function Button({ kind = "button", children, ...rest }) {
  return html`<button type="button" class=${kind} ...${rest}>${children}</button>`;
}

/** The head of a screen: its title, what it is about, and its controls. */
export function ScreenHead({ title, about, children }) {
  return html`<div class="screen-head">
    <div><h1 tabindex="-1">${title}</h1>${about && html`<p class="quiet-text">${about}</p>`}</div>
    <div class="tools">${children}</div>
  </div>`;
}

/** A note that stands out. */
export function Notice({ tone, children }) {
  return html`<p class="banner tone-${tone}">${children}</p>`;
}

/** What a screen shows as long as it has nothing else. */
export function Empty({ children }) {
  return html`<div class="empty panel">${children}</div>`;
}

/** What a screen shows as long as no guard has judged anything, with a command that changes that. */
export function NothingYet({ children }) {
  return html`<${Empty}><p>${children} To see how that looks, run:</p><${Command}>assay demo<//><//>`;
}

/** A word about a state; its colour only repeats the word. */
export function Tag({ tone = "note", title, children }) {
  return html`<span class="state tone-${tone}" title=${title}>${children}</span>`;
}

/** The word for what became of a message, as a label. */
export function VerdictBadge({ word }) {
  const [mark, meaning, tone] = verdictParts(word);
  return html`<${Tag} tone=${tone} title=${meaning}>${mark} ${word}<//>`;
}

/** Our own text with what is between backticks as code. */
export function prose(text) {
  return text.split(/`([^`]+)`/).map((part, at) => (at % 2 === 1 ? html`<code>${part}</code>` : part));
}

/** Text that may break after a slash, an underscore, a hyphen or a dot: a path, or the name of a tool. */
export function breakable(text) {
  return String(text)
    .split(/(?<=[/_.-])(?=[^/_.-])/)
    .flatMap((part, at) => (at === 0 ? [part] : [html`<wbr />`, part]));
}

/** Names with their values; what has no value is left out. */
export function Facts({ kind = "fact-row", facts }) {
  const kept = facts.filter(([, value]) => value !== null && value !== undefined && value !== "" && value !== false);
  return html`<dl class=${kind}>
    ${kept.map(([name, value]) => html`<div key=${name}><dt>${name}</dt><dd>${value}</dd></div>`)}
  </dl>`;
}

/** A link to a page elsewhere, which gets nothing of this one; plain text without an address. */
export function Outside({ address, children }) {
  if (!address || !/^https?:\/\//.test(address)) return html`<span>${children}</span>`;
  return html`<a href=${address} target="_blank" rel="noopener noreferrer">${children}</a>`;
}

/** A number for a cell; a zero is quiet, so that the others stand out. */
export function Amount({ value }) {
  return html`<span class=${value === 0 ? "zero" : null}>${number(value)}</span>`;
}

/**
 * A table. On a narrow screen each row is a card, whose cells have their titles.
 *
 * *columns*: `[title, {number, class, about}]`; *rows*: `{key, cells, below}`: *below* is a line under the row, of its
 * full width.
 */
export function Table({ caption, columns, rows, place }) {
  const kinds = columns.map(([, options]) => [options?.number && "number", options?.class].filter(Boolean).join(" "));
  const cell = (each, at) =>
    at === 0
      ? html`<th scope="row" class=${kinds[at] || null} data-title=${columns[at][0]}>${each}</th>`
      : html`<td class=${kinds[at] || null} data-title=${columns[at][0]}>${each}</td>`;
  return html`<div class="table cards" tabindex="0" role="group" aria-label=${caption} ref=${place}>
    <table>
      <caption class="unseen">${caption}</caption>
      <thead><tr>
        ${columns.map(([title, options], at) => html`<th scope="col" class=${kinds[at] || null} title=${options?.about}>${title}</th>`)}
      </tr></thead>
      <tbody>
        ${rows.map(({ key, cells, below, ...rest }) => [
          html`<tr key=${key} data-key=${key} ...${rest}>${cells.map(cell)}</tr>`,
          below && html`<tr key="${key} below" class="below"><td colspan=${columns.length}>${below}</td></tr>`,
        ])}
      </tbody>
    </table>
  </div>`;
}

/** Buttons of which one is pressed. *choices*: `[value, label]`; *choose* gets the new value. */
export function Choice({ label, choices, chosen, choose }) {
  return html`<div class="choice" role="group" aria-label=${label}>
    ${choices.map(
      ([value, name]) =>
        html`<button type="button" key=${value} aria-pressed=${String(value === chosen)} onClick=${() => choose(value)}>${name}</button>`,
    )}
  </div>`;
}

/** A small picture of counts over time; *meaning* says the same in words. */
export function Spark({ counts, meaning }) {
  const most = Math.max(1, ...counts);
  const width = 100 / Math.max(1, counts.length);
  return html`<svg class="spark" viewBox="0 0 100 100" preserveAspectRatio="none" role="img" aria-label=${meaning}>
    ${counts.map((count, at) => {
      const height = count === 0 ? 2 : Math.max(8, (100 * count) / most);
      const kind = count === 0 ? "nothing" : null;
      return html`<rect class=${kind} x=${at * width} y=${100 - height} width=${width * 0.8} height=${height} />`;
    })}
  </svg>`;
}

/** A command to type. */
export function Command({ children }) {
  return html`<pre class="command" tabindex="0">${children}</pre>`;
}

// ── notes at the edge, dialogs, copies ───────────────────────────────────────────────────────────────────────────────

const toasted = signal({ text: "", isShown: false });
let toastTimer = null;

/** Show a short text at the edge of the page, for people and for screen readers. */
export function toast(text) {
  toasted.value = { text, isShown: true };
  clearTimeout(toastTimer);
  toastTimer = setTimeout(() => (toasted.value = { text, isShown: false }), 4000);
}

/** The place of short texts. */
export function Toast() {
  const { text, isShown } = toasted.value;
  return html`<div id="toast" role="status" aria-live="polite" class=${isShown ? "shown" : null}>${text}</div>`;
}

/** Do *work*; an error is shown at the edge of the page. */
export async function attempt(work) {
  try {
    await work();
  } catch (error) {
    toast(errorText(error));
  }
}

function Modal({ title, before, close, children }) {
  const own = useRef(null);
  useEffect(() => {
    own.current.showModal();
    own.current.querySelector("[data-first]")?.focus();
  }, []);
  const closed = () => {
    close();
    (before?.isConnected ? before : document.querySelector("main h1"))?.focus({ preventScroll: true });
  };
  return html`<dialog aria-labelledby="dialog-title" ref=${own} onClose=${closed}>
    <div class="dialog-head">
      <h2 id="dialog-title">${title}</h2>
      <${Button} onClick=${() => own.current.close()}>Close<//>
    </div>
    ${children}
  </dialog>`;
}

/** Open a dialog; Esc and its button close it, and the focus returns to where it was, or to the title of the screen. */
export function dialog(title, content) {
  const place = document.createElement("div");
  document.body.append(place);
  const close = () => {
    render(null, place);
    place.remove();
  };
  render(html`<${Modal} title=${title} before=${document.activeElement} close=${close}>${content}<//>`, place);
}

/** Copy *text*; where the browser does not allow it, show it to be copied. */
export async function copy(text, what) {
  try {
    await navigator.clipboard.writeText(text);
    toast(`Copied ${what}.`);
  } catch {
    const chosen = (node) => node?.select();
    dialog(
      `Copy ${what}`,
      html`<textarea rows="12" readonly aria-label=${what} value=${text} ref=${chosen} data-first></textarea>
        <p class="quiet-text">The browser does not allow the page to copy: press Ctrl+C.</p>`,
    );
  }
}

/** Export rows, as `POST api/export` describes *request*, and save the file. */
export function saveExport(request) {
  return attempt(async () => {
    const file = await exported(request);
    const address = URL.createObjectURL(new Blob([file.text]));
    const link = document.createElement("a");
    Object.assign(link, { href: address, download: file.name }).click();
    setTimeout(() => URL.revokeObjectURL(address), 1000);
    const left = file.left > 0 ? `; ${counted(file.left, "message")} could not be exported` : "";
    toast(`Saved ${file.name}${left}.`);
  });
}
