/** The keys of the console, and the help that lists them. */

import { dialog } from "./console_parts.js";
import { go } from "./console_router.js";
import { filterHelp } from "./console_stream.js";
import { element } from "./dom.js";
import { isTyping, move } from "./search.js";

const HELP = [
  ["1 – 7", "the screens"],
  ["/", "filter the stream"],
  ["f", "follow new messages"],
  ["p", "pause the stream"],
  ["j k ↓ ↑", "next and previous row"],
  ["PgUp PgDn Home End", "move faster in the stream"],
  ["Enter", "open the row"],
  ["Esc", "close, go back, or clear the filter"],
  ["y", "copy the message"],
  ["m", "pin the message"],
  ["?", "this help"],
];

/** Show the keys and the filter words. */
export function showHelp() {
  const keys = HELP.map(([names, meaning]) => [
    element("dt", null, ...names.split(" ").map((each) => (each === "–" ? " – " : [element("kbd", null, each), " "]))),
    element("dd", null, meaning),
  ]);
  dialog(
    "Keys and filter words",
    element("dl", { class: "words" }, ...keys),
    element("h3", null, "Filter words"),
    element(
      "p",
      { class: "remark" },
      "All words must match. A minus before a word excludes it, and quotes keep spaces: ",
      element("code", null, '-verdict:ok tool:"my tool"'),
      ".",
    ),
    filterHelp(),
  );
}

function rowMoves(key) {
  if (key === "j") return () => move(1);
  return key === "k" ? () => move(-1) : undefined;
}

/** Listen to the keys. *screens* are the fragments of 1 to 7; *current* returns the screen that is shown. */
export function listenToConsoleKeys(screens, current) {
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
    if (document.querySelector("dialog[open]") !== null || isTyping(event.target)) return;
    const own = current()?.keys?.[event.key];
    const action =
      own ??
      (event.key === "?" ? showHelp : screens[event.key] ? () => go(screens[event.key]()) : rowMoves(event.key)) ??
      arrowMove(event) ??
      slash(event, screens);
    if (action === undefined) return;
    // Enter and Space belong to the button or link that has the focus.
    if (event.key === "Enter" && event.target.closest("a, button, summary, [role=button]") !== null) return;
    event.preventDefault();
    action();
  });
}

function arrowMove(event) {
  if (event.target.closest?.("[data-row]") === null) return undefined;
  return { ArrowDown: () => move(1), ArrowUp: () => move(-1) }[event.key];
}

function slash(event, screens) {
  if (event.key !== "/") return undefined;
  return () => {
    addEventListener("hashchange", () => document.getElementById("filter")?.focus(), { once: true });
    go(screens[2]());
  };
}
