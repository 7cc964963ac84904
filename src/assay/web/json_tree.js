/** A message as a tree that can be folded, and as its text; the fault is marked in both. */

import { choice, element, fill, textNodes } from "./dom.js";
import { locate, parse } from "./json_text.js";
import { number } from "./text.js";

const OPEN_ITEMS = 24;
/** Containers with more elements start folded, unless the fault is in them. */

const OPEN_DEPTH = 6;
/** Containers below this depth start folded, unless the fault is in them. */

const LONG = 1200;
/** Characters of a string that are shown at first. */

function stringNode(node) {
  const span = element("span", { class: "json-string" });
  const write = (shown) => fill(span, '"', shown, node.isCut || shown.length < node.value.length ? "…" : '"');
  write(node.value.slice(0, LONG));
  if (node.value.length <= LONG) return span;
  const more = element("button", { type: "button", class: "quiet" }, `show ${number(node.value.length - LONG)} more characters`);
  more.addEventListener("click", () => {
    write(node.value);
    more.remove();
  });
  return [span, " ", more];
}

function scalar(node) {
  if (node.type === "string") return stringNode(node);
  return element("span", { class: `json-${node.type}` }, node.value);
}

const BRACKETS = { object: ["{", "}"], array: ["[", "]"] };
const ELEMENTS = { object: ["member", "members"], array: ["item", "items"] };

function sizeNote(node) {
  return `${number(node.size)} ${ELEMENTS[node.type][node.size === 1 ? 0 : 1]}`;
}

function label(item) {
  if (item.key === undefined) return [element("span", { class: "json-index" }, String(item.index)), " "];
  return [element("span", { class: "json-key" }, item.key.value, item.key.isCut && "…"), ": "];
}

class Tree {
  constructor(root, faults) {
    this.faults = new Map(faults.map((each) => [each.node, each]));
    this.onTheWay = new Set(faults.flatMap((each) => each.path));
    this.root = root;
  }

  isOpen(node, depth) {
    return this.onTheWay.has(node) || (node.size <= OPEN_ITEMS && depth < OPEN_DEPTH);
  }

  mark(made, node) {
    const fault = this.faults.get(node);
    if (fault === undefined) return made;
    made.classList.add("fault");
    if (!fault.isThere) made.classList.add("fault-inside");
    return made;
  }

  value(node, before, depth) {
    if (node.items === undefined) {
      const shown = this.mark(element("span", { class: "json-value" }, scalar(node)), node);
      return element("div", { class: "json-line" }, before, shown);
    }
    const [opening, closing] = BRACKETS[node.type];
    if (node.items.length === 0) {
      const shown = this.mark(element("span", { class: "json-value" }, opening + closing), node);
      return element("div", { class: "json-line" }, before, shown);
    }
    return this.container(node, before, depth, opening, closing);
  }

  container(node, before, depth, opening, closing) {
    const head = this.mark(element("span", { class: "json-value" }, opening), node);
    const note = element("span", { class: "json-note" }, ` ${sizeNote(node)} ${closing}`);
    const inside = element("div", { class: "json-inside" });
    const made = element("details", { class: "json-container" }, element("summary", null, before, head, note), inside);
    const build = () => {
      if (inside.childNodes.length > 0) return;
      fill(inside, ...node.items.map((item) => this.item(item, depth + 1, node)));
      made.append(element("div", { class: "json-closing" }, closing));
    };
    if (this.isOpen(node, depth)) {
      build();
      made.open = true;
    } else made.addEventListener("toggle", build);
    return made;
  }

  item(item, depth, parent) {
    if (item.missing !== undefined) {
      const [one, many] = ELEMENTS[parent.type];
      const text = `… ${number(item.missing)} ${item.missing === 1 ? one : many} left out`;
      return element("div", { class: "json-line json-note" }, text);
    }
    return this.value(item.node, label(item), depth);
  }
}

/** Return *text* with the spans `[start, end]` marked. */
function marked(text, spans) {
  const parts = [];
  let at = 0;
  for (const [start, end] of [...spans].sort((one, other) => one[0] - other[0])) {
    if (start < at) continue;
    parts.push(...textNodes(text.slice(at, start)), element("mark", { class: "fault" }, text.slice(start, end) || " "));
    at = end;
  }
  return element("pre", { class: "raw", tabindex: "0" }, ...parts, ...textNodes(text.slice(at)));
}

/** The whole of a string, number or word; of an object or array, which lacks something, the opening bracket. */
function span(fault) {
  const { node } = fault;
  return [node.start, node.items === undefined ? node.end : node.start + 1];
}

/**
 * Return a view of the JSON *text*, as a tree or as it is.
 *
 * *faults*: `{at, last}` with a JSON Pointer, or `{span}` with positions in text that is not JSON.
 */
export function jsonView(text, faults = []) {
  const root = parse(text);
  const located = root === null ? [] : faults.filter((each) => each.span === undefined).map((each) => locate(root, each.at, each.last));
  const spans = [...faults.filter((each) => each.span).map((each) => each.span), ...located.map(span)];
  const raw = () => marked(text, spans);
  if (root === null) return element("div", { class: "json" }, raw());
  const tree = () => element("div", { class: "tree" }, new Tree(root, located).value(root, [], 0));
  const shown = element("div", null, tree());
  const switched = choice("How the message is shown", [["tree", "Tree"], ["raw", "Raw"]], "tree", (way) =>
    fill(shown, way === "tree" ? tree() : raw()),
  );
  return element("div", { class: "json" }, switched, shown);
}
