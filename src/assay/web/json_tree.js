/** A message as a tree that can be folded, and as its text; the fault is marked in both. */

import { choice, element, fill, textNodes } from "./dom.js";
import { locate, parse } from "./json_text.js";
import { number } from "./text.js";
import { asTree, expandable, ITEM } from "./tree_keys.js";

const OPEN_ITEMS = 24;
const OPEN_DEPTH = 6;
/** Without a fault, containers with more elements, or deeper ones, start folded. */

const BESIDE_ITEMS = 6;
const BESIDE_DEPTH = 3;
/** The same for containers that are not on the way to the fault. */

const NEAR = 3;
/** Elements before and after the one with the fault that are shown of a long container, and at its start. */

const LONG = 1200;
const LONG_BESIDE = 160;
/** Characters of a string that are shown at first: of the fault, and of others. */

function stringNode(node, most) {
  const span = element("span", { class: "json-string" });
  const write = (shown) => fill(span, '"', shown, node.isCut || shown.length < node.value.length ? "…" : '"');
  write(node.value.slice(0, most));
  if (node.value.length <= most) return span;
  const more = element(
    "button",
    { type: "button", class: "quiet" },
    `${number(node.value.length - most)} more characters`,
  );
  more.addEventListener("click", () => {
    write(node.value);
    more.remove();
  });
  return [span, " ", more];
}

function scalar(node, most) {
  if (node.type === "string") return stringNode(node, most);
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
    if (this.onTheWay.has(node)) return true;
    if (this.faults.size === 0) return node.size <= OPEN_ITEMS && depth < OPEN_DEPTH;
    return node.size <= BESIDE_ITEMS && depth <= BESIDE_DEPTH;
  }

  /** Split the elements of a container into runs: those to show, and those behind a button. */
  runs(node) {
    const at = node.items.flatMap((item, index) => (item.node && this.onTheWay.has(item.node) ? [index] : []));
    const isShown = (_, index) =>
      node.items.length <= OPEN_ITEMS ||
      index < NEAR ||
      (at.length === 0 && index < OPEN_ITEMS) ||
      at.some((each) => Math.abs(each - index) <= NEAR);
    const runs = [];
    for (const [index, item] of node.items.entries()) {
      const shown = isShown(item, index);
      if (runs.at(-1)?.shown === shown) runs.at(-1).items.push(item);
      else runs.push({ shown, items: [item] });
    }
    return runs;
  }

  run({ shown, items }, depth, node) {
    const build = () => items.map((item) => this.item(item, depth, node));
    if (shown) return build();
    const text = `${number(items.length)} more ${ELEMENTS[node.type][items.length === 1 ? 0 : 1]}`;
    const more = element("button", { type: "button", class: "quiet" }, text);
    const line = element("div", { class: "json-line", ...ITEM }, "… ", more);
    more.addEventListener("click", () => {
      const made = build();
      line.replaceWith(...made);
      made[0].focus();
    });
    return line;
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
      const most = this.faults.size === 0 || this.faults.has(node) ? LONG : LONG_BESIDE;
      const shown = this.mark(element("span", { class: "json-value" }, scalar(node, most)), node);
      return element("div", { class: "json-line", ...ITEM }, before, shown);
    }
    const [opening, closing] = BRACKETS[node.type];
    if (node.items.length === 0) {
      const shown = this.mark(element("span", { class: "json-value" }, opening + closing), node);
      return element("div", { class: "json-line", ...ITEM }, before, shown);
    }
    return this.container(node, before, depth, opening, closing);
  }

  container(node, before, depth, opening, closing) {
    const head = this.mark(element("span", { class: "json-value" }, opening), node);
    const note = element("span", { class: "json-note" }, ` ${sizeNote(node)} ${closing}`);
    const made = element("div", { class: "json-container", ...ITEM });
    made.append(element("div", { class: "json-summary" }, before, head, note));
    const build = () => {
      const inside = this.runs(node).map((run) => this.run(run, depth + 1, node));
      return [
        element("div", { class: "json-inside", role: "group" }, inside),
        element("div", { class: "json-closing", "aria-hidden": "true" }, closing),
      ];
    };
    return expandable(made, build, this.isOpen(node, depth));
  }

  item(item, depth, parent) {
    if (item.missing !== undefined) {
      const [one, many] = ELEMENTS[parent.type];
      const text = `… ${number(item.missing)} ${item.missing === 1 ? one : many} left out`;
      return element("div", { class: "json-line json-note", ...ITEM }, text);
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
  const located =
    root === null
      ? []
      : faults.filter((each) => each.span === undefined).map((each) => locate(root, each.at, each.last));
  const spans = [...faults.filter((each) => each.span).map((each) => each.span), ...located.map(span)];
  const raw = () => marked(text, spans);
  const tree = () =>
    asTree(
      element(
        "div",
        { class: "tree", "aria-label": "The message as a tree" },
        new Tree(root, located).value(root, [], 0),
      ),
    );
  const shown = element("div", null, root === null ? raw() : tree());
  const show = (way) => {
    fill(shown, way === "tree" ? tree() : raw());
    showFault(shown.firstChild);
  };
  const switched =
    root !== null &&
    choice(
      "How the message is shown",
      [
        ["tree", "Tree"],
        ["raw", "Raw"],
      ],
      "tree",
      show,
    );
  requestAnimationFrame(() => showFault(shown.firstChild));
  return element("div", { class: "json" }, switched && element("div", { class: "json-head" }, switched), shown);
}

/** Scroll the fault into the box of the message, and leave the page where it is. */
function showFault(box) {
  const fault = box.querySelector(".fault");
  if (fault === null) return;
  const below = fault.getBoundingClientRect().top - box.getBoundingClientRect().top;
  if (below > box.clientHeight - 40) box.scrollTop += below - box.clientHeight / 3;
}
