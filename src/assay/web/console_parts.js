/** Small parts that several screens of the console use. */

import { errorText, exported } from "./console_api.js";
import { element, fill, svg } from "./dom.js";
import { counted, duration } from "./text.js";

/** Return a button. */
export function button(label, click, attributes = {}) {
  return element("button", { type: "button", class: "button", on: { click }, ...attributes }, label);
}

/** Return a head of a screen: its title, what it is about, and its buttons. */
export function screenHead(title, about, ...tools) {
  return element(
    "div",
    { class: "screen-head" },
    element("div", null, element("h1", { tabindex: "-1" }, title), about && element("p", { class: "intro" }, about)),
    element("div", { class: "tools" }, ...tools),
  );
}

/** Let the rows of a table become cards on a narrow screen: each cell knows its title. */
export function withCards(made) {
  const titles = [...made.querySelectorAll("thead th")].map((each) => each.textContent);
  for (const row of made.querySelectorAll("tbody tr")) {
    for (const [at, cell] of [...row.children].entries()) cell.dataset.title = titles[at];
  }
  made.classList.add("cards");
  return made;
}

/** Return a note that stands out. */
export function notice(tone, ...children) {
  return element("p", { class: `banner tone-${tone}` }, ...children);
}

/** Return a word about a state; its colour only repeats the word. */
export function stateTag(text, tone, attributes = {}) {
  return element("span", { class: `state tone-${tone}`, ...attributes }, text);
}

/** Return a control with its label. */
export function field(label, control) {
  return element("label", { class: "field" }, element("span", { class: "label" }, label), control);
}

/** Return a small picture of counts over time; *meaning* says the same in words. */
export function sparkline(counts, meaning) {
  const most = Math.max(1, ...counts);
  const width = 100 / Math.max(1, counts.length);
  const bars = counts.map((count, at) => {
    const height = count === 0 ? 2 : Math.max(8, (100 * count) / most);
    return svg("rect", {
      class: count === 0 ? "nothing" : null,
      x: at * width,
      y: 100 - height,
      width: width * 0.8,
      height,
    });
  });
  return svg(
    "svg",
    { class: "spark", viewBox: "0 0 100 100", preserveAspectRatio: "none", role: "img", "aria-label": meaning },
    ...bars,
  );
}

/** A duration in milliseconds; a dash if it is unknown. */
export function took(milliseconds) {
  return milliseconds === null || milliseconds === undefined || Number.isNaN(milliseconds)
    ? "–"
    : duration(milliseconds * 1000);
}

const HOUR = 3600;

/** The time since a moment, both in seconds: "12 s ago". */
export function ago(then, now = Date.now() / 1000) {
  const seconds = Math.max(0, now - then);
  if (seconds < 2) return "now";
  if (seconds < 60) return `${Math.round(seconds)} s ago`;
  if (seconds < HOUR) return `${Math.round(seconds / 60)} min ago`;
  if (seconds < 48 * HOUR) return `${Math.round(seconds / HOUR)} h ago`;
  return counted(Math.round(seconds / (24 * HOUR)), "day") + " ago";
}

/** The local time of day with milliseconds; the title of a cell has the date. */
export function timeOfDay(seconds) {
  const date = new Date(seconds * 1000);
  const pad = (value, digits = 2) => String(value).padStart(digits, "0");
  return `${pad(date.getHours())}:${pad(date.getMinutes())}:${pad(date.getSeconds())}.${pad(date.getMilliseconds(), 3)}`;
}

/** A local date and time: "2026-07-24 02:03:14". */
export function dateAndTime(seconds) {
  const date = new Date(seconds * 1000);
  const pad = (value) => String(value).padStart(2, "0");
  return `${date.getFullYear()}-${pad(date.getMonth() + 1)}-${pad(date.getDate())} ${timeOfDay(seconds).slice(0, 8)}`;
}

let toastTimer = null;

/** Show a short text at the edge of the page, for people and for screen readers. */
export function toast(text) {
  const host = document.getElementById("toast");
  fill(host, text);
  host.classList.add("shown");
  clearTimeout(toastTimer);
  toastTimer = setTimeout(() => host.classList.remove("shown"), 4000);
}

/** Copy *text*; where the browser does not allow it, show it selected. */
export async function copy(text, what) {
  try {
    await navigator.clipboard.writeText(text);
    toast(`Copied ${what}.`);
  } catch {
    const area = element("textarea", { rows: "12", readonly: true, "aria-label": what });
    area.value = text;
    dialog(
      `Copy ${what}`,
      area,
      element("p", { class: "remark" }, "The browser does not allow the page to copy: press Ctrl+C."),
    );
    area.select();
  }
}

/** Do *work*; an error is shown at the edge of the page. */
export async function attempt(work) {
  try {
    await work();
  } catch (error) {
    toast(errorText(error));
  }
}

/** Export rows, as `POST api/export` describes *request*, and save the file. */
export function saveExport(request) {
  return attempt(async () => {
    const file = await exported(request);
    save(file.name, file.text);
    const left = file.left > 0 ? `; ${counted(file.left, "message")} could not be exported` : "";
    toast(`Saved ${file.name}${left}.`);
  });
}

/** Save *text* as a file. */
function save(name, text) {
  const address = URL.createObjectURL(new Blob([text]));
  element("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}

/** Open a dialog; Esc and its button close it, and the focus returns to where it was, or to the title of the screen. */
export function dialog(title, ...children) {
  const before = document.activeElement;
  const head = element(
    "div",
    { class: "dialog-head" },
    element("h2", { id: "dialog-title" }, title),
    button("Close", () => made.close()),
  );
  const made = element("dialog", { "aria-labelledby": "dialog-title" }, head, ...children);
  made.addEventListener("close", () => {
    made.remove();
    // What was there may have been made anew since.
    (before?.isConnected ? before : document.querySelector("main h1"))?.focus({ preventScroll: true });
  });
  document.body.append(made);
  made.showModal();
  return made;
}

let pressed = false;
const waiting = new Set();

function release() {
  if (!pressed) return;
  pressed = false;
  // The click comes after the release.
  setTimeout(() => {
    const all = [...waiting];
    waiting.clear();
    for (const each of all) each();
  });
}

addEventListener("pointerdown", ({ button: which }) => which === 0 && (pressed = true), true);
for (const end of ["pointerup", "pointercancel", "contextmenu", "keydown"]) addEventListener(end, release, true);
// A menu or a list of choices of the browser may keep the release for itself.
addEventListener("pointermove", ({ buttons }) => buttons === 0 && release(), true);
addEventListener("blur", ({ target }) => target === window && release());

/** Call *work* now, or once when no button of the mouse is down: a click on what is drawn anew meanwhile is lost. */
export function afterPress(work) {
  if (pressed) waiting.add(work);
  else work();
}

/** Call *work* at most once in *milliseconds*; a call in between is made up for at the end. */
export function throttled(milliseconds, work) {
  let [last, timer] = [0, null];
  return () => {
    if (timer !== null) return;
    const wait = Math.max(0, last + milliseconds - performance.now());
    timer = setTimeout(() => {
      timer = null;
      last = performance.now();
      work();
    }, wait);
  };
}
