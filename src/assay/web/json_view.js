/** A message as a tree that can be folded, and as its text; the faults are marked in both. */

import { locate, parse } from "./json_text.js";
import { Choice } from "./parts.js";
import { number } from "./text.js";
import { html, useLayoutEffect, useMemo, useRef, useState } from "./view.js";

const OPEN_ITEMS = 24;
const OPEN_DEPTH = 6;
/** Without a fault, containers with more elements, or deeper ones, start folded. */

const BESIDE_ITEMS = 6;
const BESIDE_DEPTH = 3;
/** The same for containers that are not on the way to a fault. */

const NEAR = 3;
/** Elements before and after the one with the fault that are shown of a long container, and at its start. */

const LONG = 1200;
const LONG_BESIDE = 160;
/** Characters of a string that are shown at first: of a fault, and of others. */

const BRACKETS = { object: ["{", "}"], array: ["[", "]"] };
const ELEMENTS = { object: ["member", "members"], array: ["item", "items"] };

function sized(count, type) {
  return `${number(count)} ${ELEMENTS[type][count === 1 ? 0 : 1]}`;
}

function Label({ item }) {
  if (item?.index === undefined) return null;
  if (item.key === undefined) return html`<span class="json-index">${item.index}</span>${" "}`;
  return html`<span class="json-key">${item.key.value}</span>${": "}`;
}

function Scalar({ node, most }) {
  const [isWhole, setWhole] = useState(false);
  if (node.type !== "string") return html`<span class="json-${node.type}">${node.value}</span>`;
  const rest = node.value.length - most;
  const isCut = rest > 0 && !isWhole;
  const text = isCut ? node.value.slice(0, most) : node.value;
  return html`<span class="json-string">${'"'}${text}${isCut ? "…" : '"'}</span>${isCut &&
  html`${" "}<button type="button" class="link" onClick=${() => setWhole(true)}>${number(rest)} more characters</button>`}`;
}

/** What is marked: faults by node, and the nodes on the way to them. */
class Marks {
  constructor(faults) {
    this.faults = new Map(faults.map((each) => [each.node, each]));
    this.onTheWay = new Set(faults.flatMap((each) => each.path));
  }

  isOpen(node, depth) {
    if (this.onTheWay.has(node)) return true;
    if (this.faults.size === 0) return node.size <= OPEN_ITEMS && depth < OPEN_DEPTH;
    return node.size <= BESIDE_ITEMS && depth <= BESIDE_DEPTH;
  }

  kind(node) {
    const fault = this.faults.get(node);
    if (fault === undefined) return "json-value";
    return fault.isThere ? "json-value fault" : "json-value fault fault-inside";
  }

  most(node) {
    return this.faults.size === 0 || this.faults.has(node) ? LONG : LONG_BESIDE;
  }

  /** Split the elements of a container into runs: those to show, and those behind a button. */
  runs(node) {
    const at = node.items.flatMap((item, index) => (this.onTheWay.has(item.node) ? [index] : []));
    const isShown = (index) =>
      node.items.length <= OPEN_ITEMS ||
      index < NEAR ||
      (at.length === 0 && index < OPEN_ITEMS) ||
      at.some((each) => Math.abs(each - index) <= NEAR);
    const runs = [];
    for (const [index, item] of node.items.entries()) {
      const shown = isShown(index);
      if (runs.at(-1)?.shown === shown) runs.at(-1).items.push(item);
      else runs.push({ shown, items: [item] });
    }
    return runs;
  }
}

function Item({ item, node, depth, marks }) {
  const [isOpen, setOpen] = useState(() => node?.items !== undefined && marks.isOpen(node, depth));
  const [opening, closing] = BRACKETS[node.type] ?? [];
  if (!node.items?.length)
    return html`<div class="json-line" role="treeitem" tabindex="-1">
      <${Label} item=${item} /><span class=${marks.kind(node)}>
        ${node.items ? opening + closing : html`<${Scalar} node=${node} most=${marks.most(node)} />`}
      </span>
    </div>`;
  return html`<div class="json-container" role="treeitem" tabindex="-1" aria-expanded=${String(isOpen)}
    onToggleItem=${(event) => {
      event.stopPropagation();
      setOpen(event.detail ?? !isOpen);
    }}>
    <div class="json-summary">
      <${Label} item=${item} /><span class=${marks.kind(node)}>${opening}</span>
      ${!isOpen && html`<span class="json-note"> ${sized(node.size, node.type)} ${closing}</span>`}
    </div>
    ${isOpen &&
    html`<div class="json-inside" role="group">
        ${marks.runs(node).map((run, at) => html`<${Run} key=${at} ...${run} node=${node} depth=${depth + 1} marks=${marks} />`)}
      </div>
      <div class="json-closing" aria-hidden="true">${closing}</div>`}
  </div>`;
}

function Run({ shown, items, node, depth, marks }) {
  const [isShown, setShown] = useState(shown);
  const first = useRef(null);
  useLayoutEffect(() => {
    // What the button stood for has the focus after it.
    if (isShown && !shown) first.current?.nextElementSibling?.focus();
  }, [isShown]);
  if (isShown)
    return html`<span ref=${first} hidden></span>${items.map(
      (item, at) => html`<${Item} key=${at} item=${item} node=${item.node} depth=${depth} marks=${marks} />`,
    )}`;
  return html`<div class="json-line" role="treeitem" tabindex="-1">
    … <button type="button" class="link" onClick=${() => setShown(true)}>${number(items.length)} more
    ${` ${ELEMENTS[node.type][items.length === 1 ? 0 : 1]}`}</button>
  </div>`;
}

// ── the keys of a tree ───────────────────────────────────────────────────────────────────────────────────────────────

const TREE_ITEM = '[role="treeitem"]';

function goTo(tree, item) {
  if (!item) return;
  for (const each of tree.querySelectorAll(`${TREE_ITEM}[tabindex="0"]`)) each.setAttribute("tabindex", "-1");
  item.setAttribute("tabindex", "0");
  item.focus();
}

function toggle(item, detail) {
  item.dispatchEvent(new CustomEvent("ToggleItem", { detail }));
}

function step(tree, at, by) {
  const all = [...tree.querySelectorAll(TREE_ITEM)];
  goTo(tree, all[all.indexOf(at) + by]);
}

const MOVES = {
  ArrowDown: (tree, at) => step(tree, at, 1),
  ArrowUp: (tree, at) => step(tree, at, -1),
  Home: (tree) => goTo(tree, tree.querySelector(TREE_ITEM)),
  End: (tree) => goTo(tree, [...tree.querySelectorAll(TREE_ITEM)].at(-1)),
  ArrowRight: (tree, at) => (at.getAttribute("aria-expanded") === "false" ? toggle(at, true) : step(tree, at, 1)),
  ArrowLeft: (tree, at) =>
    at.getAttribute("aria-expanded") === "true" ? toggle(at, false) : goTo(tree, at.parentElement.closest(TREE_ITEM)),
  Enter: (_, at) => toggle(at),
  " ": (_, at) => toggle(at),
};

function treeKey(event) {
  const move = MOVES[event.key];
  const isChord = event.ctrlKey || event.altKey || event.metaKey;
  // A button inside an item keeps its keys.
  if (move === undefined || isChord || !event.target.matches(TREE_ITEM)) return;
  event.preventDefault();
  event.stopPropagation();
  move(event.currentTarget, event.target);
}

function treeClick(event) {
  const line = event.target.closest(".json-summary");
  if (line === null || String(getSelection())) return;
  const item = line.closest(TREE_ITEM);
  goTo(event.currentTarget, item);
  toggle(item);
}

function Tree({ root, marks, place }) {
  useLayoutEffect(() => place.current.querySelector(TREE_ITEM)?.setAttribute("tabindex", "0"), [root]);
  return html`<div class="tree" role="tree" aria-label="The message as a tree" ref=${place} onKeyDown=${treeKey} onClick=${treeClick}>
    <${Item} node=${root} depth=${0} marks=${marks} />
  </div>`;
}

/** The text with the spans `[start, end]` marked. */
function Raw({ text, spans, place }) {
  const parts = [];
  let at = 0;
  for (const [start, end] of [...spans].sort((one, other) => one[0] - other[0])) {
    if (start < at) continue;
    parts.push(text.slice(at, start), html`<mark class="fault">${text.slice(start, end) || " "}</mark>`);
    at = end;
  }
  return html`<pre class="raw" tabindex="0" ref=${place}>${parts}${text.slice(at)}</pre>`;
}

/** The whole of a string, number or word; of an object or array, which lacks something, the opening bracket. */
function spanOf({ node }) {
  return [node.start, node.items === undefined ? node.end : node.start + 1];
}

/** The JSON *text*, as a tree or as it is. *faults*: `{at, last}` with a JSON Pointer. */
export function JsonView({ text, faults = [] }) {
  const [way, setWay] = useState("tree");
  const place = useRef(null);
  const { root, marks, spans } = useMemo(() => {
    const parsed = parse(text);
    const located = parsed === null ? [] : faults.map((each) => locate(parsed, each.at, each.last));
    return { root: parsed, marks: new Marks(located), spans: located.map(spanOf) };
  }, [text, JSON.stringify(faults)]);
  useLayoutEffect(() => showFault(place.current), [way, root]);
  const isTree = root !== null && way === "tree";
  return html`<div class="json">
    ${root !== null &&
    html`<div class="json-head">
      <${Choice} label="How the message is shown" choices=${[["tree", "Tree"], ["raw", "Raw"]]} chosen=${way} choose=${setWay} />
    </div>`}
    ${isTree
      ? html`<${Tree} key=${text} root=${root} marks=${marks} place=${place} />`
      : html`<${Raw} text=${text} spans=${spans} place=${place} />`}
  </div>`;
}

/** Scroll the fault into the box of the message, and leave the page where it is. */
function showFault(box) {
  const fault = box?.querySelector(".fault");
  if (!fault) return;
  const below = fault.getBoundingClientRect().top - box.getBoundingClientRect().top;
  if (below > box.clientHeight - 40) box.scrollTop += below - box.clientHeight / 3;
}
